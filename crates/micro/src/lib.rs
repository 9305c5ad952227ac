//! Microbenchmarks of the machine, without a store.
//!
//! Memory: [`stream`] (bandwidth), [`latency`] (a chain of dependent loads), [`hog`] (a co-runner
//! that takes bandwidth at a given rate). The kernel: [`clock`], [`syscall`], [`switch`].
//! The network: [`net`] (ping-pong and flow). Devices: [`precondition`].
//! Nothing here but [`precondition`], which must know what is in use, reads `/sys`: CPUs and sizes
//! are given.

#![deny(unsafe_code)]

mod barrier;
mod batches;
pub mod clock;
pub mod error;
pub mod hog;
pub mod job;
pub mod latency;
pub mod net;
pub mod pin;
pub mod precondition;
pub mod region;
pub mod stream;
pub mod switch;
pub mod syscall;
pub mod window;

pub use batches::BatchSpread;
pub use error::MicroError;
