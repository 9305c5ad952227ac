//! Data movement through the network: [`Kind::Pingpong`] (a message there and back) and
//! [`Kind::Flow`] (a stream whose receiver touches what came with a stride and a reuse
//! distance), over the kernel's TCP, unix sockets and UDP, and over a [`Port`] that sends and
//! receives Ethernet frames without the kernel.
//!
//! The two ends are a server ([`Server`]) and a client ([`Client`]); where they run is up to
//! the caller. They talk over a control connection of the kernel's, and move the data beside
//! it. A cell ([`Job`]) is measured in phases (warm-up, then the measured one): the client
//! sends, both stop, and the server waits for what is under way, so that sent, received and
//! lost are of the same messages. Every end counts the CPU time of its own threads; a
//! [`Meter`] of the caller's is begun and ended around each end's threads.

mod client;
mod clock;
mod content;
mod control;
mod acceptor;
#[cfg(feature = "dpdk")]
mod dpdk;
mod error;
mod ether;
mod flow;
mod frames;
mod job;
mod outcome;
mod pingpong;
mod listener;
mod server;
mod sockets;
mod touch;
mod wait;
mod workers;

pub use client::{Client, CellConfig};
pub use error::NetError;
pub use ether::{Mac, NoPort, Port};
pub use job::{NetJob, Kind, LARGEST_DATAGRAM, ServerLimits, Stack, Transport};
pub use outcome::{EndOutcome, NetLatency, MeasuredCell, EndMeter, NoMeter};
pub use listener::Listener;
pub use server::Server;

/// Whether DPDK was built in.
pub const DPDK: bool = cfg!(feature = "dpdk");

/// Has the kernel end this process when the one that started it ends, however that happens.
pub fn end_with_parent() {
    // Where it is refused, the other end's silence ends it.
    let _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGTERM);
}
