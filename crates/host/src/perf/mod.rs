//! Events of the kernel's performance counters (`perf_event_open(2)`): encoding
//! an event for a machine ([`encode`], [`user_event`]), the events of a CPU
//! ([`EventTable`]), privileges ([`Privilege`]), top-down analysis ([`TopDownPlan`]), and counting
//! groups of events ([`PerfSession`]) through a [`PerfKernel`] that tests can replace.

mod encoding;
mod kernel;
mod plan;
mod privilege;
mod session;
mod table;
mod top_down;

pub(crate) use encoding::PMUS;
pub use encoding::{EncodedEvent, cpumask, encode, event, named, pmus, user_event};
pub use kernel::{Errno, PerfCount, PerfEvent, PerfHandle, PerfKernel, PerfTarget, RunningKernel};
pub(crate) use plan::targets;
pub use plan::{CounterPlan, EventRole, PlannedGroup, UserEvent, plan};
pub use privilege::Privilege;
pub use session::{CountedEvent, EventGroup, GroupCounts, PerfSession, Refused};
pub use table::{CoreEvents, EventTable, LastLevel, PerfQuantity, RawEvent, core};
pub use top_down::{
    CountedProcess, TopDownCounts, TopDownPlan, TopDownSession, TopDownTable, shares,
};
