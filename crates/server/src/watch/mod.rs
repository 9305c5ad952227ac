//! Resource usage of a server process, whether kvmeter started it or not.
//!
//! A [`Process`] is found by its pid or by the address that it listens at; two
//! [`Usage`] snapshots of it make a [`UsageDelta`], whose figures carry their source.
//! Everything but the process CPU clock is read through the swappable [`host::Root`].

mod figure;
mod listener;
mod process;
mod same_machine;
mod sockets;
mod stat;
mod usage;
mod usage_delta;

pub use figure::Figure;
pub use process::Process;
pub use usage::{ThreadUsage, Usage};
pub use usage_delta::{ThreadUsageDelta, UsageDelta};
