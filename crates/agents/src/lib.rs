//! Several client machines: a coordinator, and agents that do its work together.
//!
//! An agent ([`serve`]) waits for a coordinator, is held by it, prepares an assignment, begins it
//! at a told instant of its own clock and gives back the outcome. A coordinator ([`Fleet`])
//! prepares all of its agents or none, starts them together and gathers what they give. What is
//! asked and given is opaque here: see [`Work`]. `docs/agents.md` tells users the same.
#![forbid(unsafe_code)]

mod agent;
mod clock;
mod credentials;
mod error;
pub mod flags;
mod fleet;
#[doc(hidden)]
pub mod fuzz;
mod messages;
mod pieces;
mod refusal;
mod silence;
mod work;

pub use agent::{AgentLogEvent, serve};
pub use credentials::{Credentials, TlsFiles, Token};
pub use error::{AgentError, CertificateFault};
pub use fleet::{AgentClock, AgentGroup, AgentInfo, Started};
pub use pieces::{LARGEST_ASSIGNMENT, LARGEST_OUTCOME};
pub use work::{
    AgentTask, DEFAULT_CONNECTIONS, HeartbeatTiming, PeerOptions, PreparedTask, TaskProgress,
};

/// Where agents listen unless they are told another port.
pub const DEFAULT_PORT: u16 = 9377;

/// HTTP/2 flow control: wide enough that a histogram does not wait for the round trip.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
