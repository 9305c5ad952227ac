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
pub use encoding::{Encoded, cpumask, encode, event, named, pmus, user_event};
pub use kernel::{Count, Errno, Event, Handle, Kernel, Live, Target};
pub(crate) use plan::targets;
pub use plan::{Extra, Plan, Planned, Slot, plan};
pub use privilege::Privilege;
pub(crate) use session::still;
pub use session::{Counted, Group, Refused, Session, Tally};
pub use table::{Core, LastLevel, Quantity, Raw, Table, core};
