//! The client's side of a network connection to a store: connecting ([`Stream`]: TCP, unix sockets,
//! TLS), and requests over many connections from one thread without blocking ([`Reactor`]: epoll or
//! io_uring, the same results from both).
//!
//! The reactor is the hot path of a load generator: one `send` and one receive a request, no
//! allocation once the buffers have grown (but what TLS itself allocates), and the kernel's
//! timestamp of each answer where available.
#![deny(unsafe_code)]

mod available;
mod borrowed_buffer;
mod connect;
mod connect_error;
mod connection;
mod counters;
mod engine;
mod epoll;
mod gather;
mod incoming;
mod reactor;
mod session;
mod shared;
mod socket;
mod stamps;
mod stream;
mod sys;
mod uring;

pub use available::{available, cheapest};
pub use connect_error::ConnectError;
pub use connection::{ConnectionFailure, ConnectionState};
pub use counters::Counters;
pub use engine::{EngineOptions, EngineUnavailable};
pub use gather::Gather;
pub use reactor::Reactor;
pub use stamps::stamps_available;
pub use stream::Stream;
pub use tls::{Tls, TlsConfig, TlsError, TlsFailure};
