//! Server-side request latency of a running, unmodified process, from the system
//! calls that it makes, by two small BPF programs.
//!
//! What is timed: on a connection's socket, from the return of the read (`read`,
//! `readv`, `recvfrom`, `recvmsg`, `recvmmsg`) that brought bytes to the entry of
//! the next write (`write`, `writev`, `sendto`, `sendmsg`, `sendmmsg`) on the same
//! descriptor, by whichever threads. The programs see no payload: requests that
//! arrive in one read, a pipelined batch, count as one.
//!
//! [`ReadCapture`] copies what such a process reads from its clients, by two more programs.
//!
//! Nothing is installed permanently: programs and memory belong to descriptors of this process and
//! go with it, also when it is killed.
//!
//! ```no_run
//! use syscall_trace::Tracer;
//! let tracer = Tracer::attach(1234)?;
//! let before = tracer.snapshot();
//! // ... load ...
//! let during = tracer.snapshot().since(&before);
//! println!("{} requests, p99 {:?} ns", during.requests(), during.latency.quantile_ns(0.99));
//! # Ok::<(), syscall_trace::UnavailableReason>(())
//! ```
//!
//! Needs Linux 5.8 with type information (`CONFIG_DEBUG_INFO_BTF`) and the
//! capabilities `CAP_BPF` and `CAP_PERFMON`, or root.

mod arch;
mod capture;
mod histogram;
mod layout;
mod loading;
mod programs;
mod snapshot;
mod sys;
mod target;
mod tracer;
mod unavailable;

pub use arch::name_of;
pub use bpf::BpfError;
pub use capture::{LostReads, ReadCapture, SocketRead};
pub use histogram::Histogram;
pub use snapshot::Snapshot;
pub use tracer::{Cost, CostWatch, Tracer, available, loaded_programs};
pub use unavailable::UnavailableReason;
