//! Events of the kernel's performance counters (`perf_event_open(2)`): how an
//! event is written for a machine ([`encode`], [`user_event`]), which events a
//! CPU has ([`Table`]), what may be counted ([`Privilege`]), and how groups of
//! them are counted ([`Session`]) through a [`Kernel`] that tests can replace.

mod encoding;
mod kernel;
mod plan;
mod privilege;
mod session;
mod table;

pub(crate) use encoding::PMUS;
pub use encoding::{EncodedEvent, cpumask, encode, event, named, pmus, user_event};
pub use kernel::{PerfCount, Errno, PerfEvent, PerfHandle, PerfKernel, RunningKernel, PerfTarget};
pub(crate) use plan::targets;
pub use plan::{UserEvent, CounterPlan, PlannedGroup, EventRole, plan};
pub use privilege::Privilege;
pub(crate) use session::did_not_move;
pub use session::{CountedEvent, EventGroup, Refused, PerfSession, GroupCounts};
pub use table::{CoreEvents, LastLevel, PerfQuantity, RawEvent, EventTable, core};
