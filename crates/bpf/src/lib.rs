//! Small BPF programs at tracepoints: assembled here, loaded by bpf(2), with their maps.
//!
//! Tracepoints, their arguments and the fields of the kernel's structures are found in the kernel's
//! own type information. Nothing is pinned: programs and maps belong to descriptors of this process
//! and go with it, also when it is killed.
//!
//! Needs Linux 5.8 with type information (`CONFIG_DEBUG_INFO_BTF`) and the capabilities `CAP_BPF`
//! and `CAP_PERFMON`, or root.

pub mod asm;
mod btf;
mod error;
pub mod helper;
mod log_linear;
mod sys;

pub use btf::{Argument, Btf, BtfError, Field, Tracepoint};
pub use error::BpfError;
pub use log_linear::LogLinear;
pub use sys::{
    Attached, HashMap, Program, Ring, RunTime, Scratch, SharedMemory, enable_statistics,
    list_programs,
};
