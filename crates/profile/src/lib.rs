//! Where processes spend time: samples of their stacks, with the names of the functions.
//!
//! The kernel interrupts each thread so many times a second of CPU time (`perf_event_open(2)`), by
//! the counter of cycles or, where there is none, by its software clock. It notes the stack inside
//! the kernel and copies registers and the top of the stack of the program, which is unwound here
//! by the tables for exceptions (`.eh_frame`): release builds have no frame pointers. The same is
//! done for some of the switches away from a CPU, of which each is timed. Meanwhile small programs
//! in the kernel count how long threads wait for a CPU, block devices take and softirqs last, and
//! the kernel is queried for the processes' TCP connections. Nothing is changed in the processes.

mod error;
mod kernel;
mod maps;
mod off_cpu;
mod record;
mod sampler;
mod stacks;
mod symbols;
mod sys;
mod tcp;
mod unwind;

pub use error::ProfileError;
pub use sampler::{Profiler, Target, check};
