//! Data movement through the network: [`Kind::Pingpong`] (a message there and back) and
//! [`Kind::Flow`] (a stream whose receiver touches the data with a stride and a reuse distance),
//! over the kernel's TCP, unix sockets and UDP, and over a [`Port`] that sends and receives
//! Ethernet frames without the kernel.
//!
//! The two ends are a server ([`Server`]) and a client ([`Client`]); where they run is up to
//! the caller. They talk over a control connection of the kernel's, and move the data over others.
//! A cell ([`NetJob`]) is measured in phases (warm-up, then the measured one): the client sends,
//! both stop, and the server waits for messages in flight, so that sent, received and lost are of
//! the same messages. Every end counts the CPU time of its own threads; the caller's [`EndMeter`] is
//! begun and ended around each end's threads.

mod acceptor;
mod client;
mod clock;
mod content;
mod control;
#[cfg(feature = "dpdk")]
mod dpdk;
mod error;
mod ether;
mod flow;
mod frames;
mod job;
mod listener;
mod outcome;
mod pingpong;
mod server;
mod sockets;
mod summary;
mod touch;
mod wait;
mod workers;

pub use client::{CellConfig, Client};
pub use error::NetError;
pub use ether::{Mac, NoPort, Port};
pub use job::{Kind, LARGEST_DATAGRAM, NetJob, ServerLimits, Stack, Transport};
pub use listener::Listener;
pub use outcome::{EndMeter, EndOutcome, MeasuredCell, NetLatency, NoMeter};
pub use server::Server;

/// Whether DPDK was built in.
pub const DPDK: bool = cfg!(feature = "dpdk");

/// Has the kernel end this process when its parent ends, however that happens.
pub fn end_with_parent() {
    // Where it is refused, the timeout on the other end ends the process.
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGTERM);
}
