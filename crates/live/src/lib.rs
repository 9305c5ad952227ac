//! The page and the metrics of a measurement while it runs: a small HTTP server that shows what it
//! is fed and changes nothing.
//!
//! Data flow one way: the measuring side feeds [`RunEvent`]s, a board keeps what
//! viewers need of them, and each viewer takes the newest when it has read the last. The feeding
//! side never waits.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access;
mod address;
mod board;
mod event;
mod metrics;
mod page;
mod placement;
mod server;
mod service;
mod viewers;

pub use access::{MAX_TOKEN_CHARS, MIN_TOKEN_CHARS, ViewToken};
pub use address::ListenAddress;
pub use event::{
    LatencyNow, OpLatencies, PresentReading, RunEnd, RunEvent, RunProgress, bucket_bounds,
};
pub use metrics::BUCKETS_S;
pub use page::Title;
pub use server::{Feed, LiveConfig, LiveServer};

/// Why a page cannot be served. Each is the user's to change.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The address cannot be parsed, or is not allowed.
    #[error("{0}")]
    Address(String),
    /// Nothing can listen there.
    #[error("{address}: {why}")]
    Listen { address: std::net::SocketAddr, why: String },
    #[error("{0}")]
    Token(String),
    /// The server's thread cannot be started.
    #[error("the page's server cannot start: {0}")]
    Start(#[from] std::io::Error),
}
