//! The names under which `kvmeter` takes credentials, so that errors can name them.

/// File with the authorities' certificates that the other side must be signed by.
pub const CA: &str = "--agent-ca";
/// File with one's own certificate.
pub const CERT: &str = "--agent-cert";
/// File with the key of that certificate.
pub const KEY: &str = "--agent-key";
/// File with the shared token.
pub const TOKEN_FILE: &str = "--agent-token-file";
/// Environment variable with the shared token.
pub const TOKEN_VARIABLE: &str = "KVMETER_AGENT_TOKEN";
/// Where an agent listens.
pub const LISTEN: &str = "--listen";
/// The agents of a coordinator.
pub const AGENTS: &str = "--agents";
