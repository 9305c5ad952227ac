//! DPDK as far as the network benchmarks need it: the environment (`Eal`), ports that are
//! driven by one thread each (`Port`), and their frames (`Frame`).
//!
//! DPDK inlines its bursts and keeps large structures in its headers, so a thin shim in C
//! stands between. `rte_eal_init` can be called once in a process, pins the calling thread,
//! and may end the process: call `Eal::start` in a process that may end, and give what it
//! wrote to standard error to `explain`.
//!
//! Without the feature `link` the crate is empty and needs no library.
#![cfg(feature = "link")]
#![deny(unsafe_code)]

mod eal;
mod error;
mod explain;
mod ffi;
mod frame;
mod port;
mod thread;

pub use eal::{Config, Eal};
pub use error::DpdkError;
pub use explain::explain;
pub use frame::Frame;
pub use port::{Counts, Port};
