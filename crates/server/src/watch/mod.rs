//! What the machine knows of a server process, whether kvmeter started it or not.
//!
//! A [`Process`] is found by its pid or by the address that it listens at; two
//! [`Usage`] snapshots of it make a [`Used`], whose figures carry their source.
//! Everything but the process CPU clock is read through a swappable [`Root`].

mod figure;
mod listener;
mod process;
mod root;
mod same_machine;
mod sockets;
mod stat;
mod usage;
mod used;

pub use figure::{Figure, Unavailable};
pub use process::Process;
pub use root::Root;
pub use same_machine::client_of_same_machine;
pub use usage::{ThreadUsage, Usage};
pub use used::{ThreadUsed, Used};
