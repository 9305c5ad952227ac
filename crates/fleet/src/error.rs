//! Errors of hosts and of the connections to them.

use std::time::Duration;

/// The request was wrong, or a host did not do its part.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// What was given cannot be used; says the place and the way out.
    #[error("{0}")]
    Request(String),
    /// A host cannot be reached, or lost its connection.
    #[error("{host}: {why}")]
    Unreachable { host: String, why: String },
    /// A command failed on a host.
    #[error("{host}: {what}: {why}")]
    Failed { host: String, what: &'static str, why: String },
    /// A command took too long on a host.
    #[error("{host}: {what}: no end within {} s", limit.as_secs())]
    TimedOut { host: String, what: &'static str, limit: Duration },
    /// The user stopped it before it had hosts.
    #[error("stopped while it waited for nodes; its jobs are cancelled")]
    Stopped,
    /// Something on this machine.
    #[error("{0}")]
    Here(String),
}

impl FleetError {
    /// Whether the user's request has to change.
    pub fn is_request(&self) -> bool {
        matches!(self, FleetError::Request(_))
    }
}
