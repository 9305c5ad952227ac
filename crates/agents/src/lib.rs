//! Several client machines: a coordinator, and agents that do its work together.
//!
//! An agent ([`serve`]) waits for a coordinator, serves it alone, prepares an assignment, begins it at
//! a given instant of its own clock and returns the outcome. A coordinator ([`AgentGroup`]) prepares
//! all of its agents or none, starts them together and collects their outcomes. Assignments and
//! outcomes are opaque here: see [`AgentTask`]. `docs/agents.md` is the user's guide.
#![forbid(unsafe_code)]

mod agent;
mod clock;
mod credentials;
mod error;
pub mod flags;
#[doc(hidden)]
pub mod fuzz;
mod group;
mod messages;
mod pieces;
mod refusal;
mod silence_timer;
mod task;

pub use agent::{AgentLogEvent, serve};
pub use credentials::{Credentials, TlsFiles, Token};
pub use error::{AgentError, CertificateFault};
pub use group::{AgentClock, AgentGroup, AgentInfo, Started};
pub use pieces::{LARGEST_ASSIGNMENT, LARGEST_OUTCOME};
pub use task::{
    AgentTask, DEFAULT_CONNECTIONS, HeartbeatTiming, PeerOptions, PreparedTask, TaskProgress,
};

/// The default port of agents.
pub const DEFAULT_PORT: u16 = 9377;

/// HTTP/2 flow control: wide enough that a histogram does not wait for the round trip.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
