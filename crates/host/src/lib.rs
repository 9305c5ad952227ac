//! The machine that is measured: what it is ([`facts`], [`storage`]), what
//! happens on it around a run ([`Watch`]), what of it can be turned ([`knob`]),
//! where load threads may run ([`cpus`]), and what makes a measurement on it
//! doubtful ([`doctor`]).
//!
//! Everything is read through one swappable [`Root`], so a recorded `/proc`
//! and `/sys` stands in for hardware that is not at hand.

#![deny(unsafe_code)]

mod affinity;
mod confined;
mod bus_error;
pub mod cachegrind;
mod capacity;
mod doctor;
mod facts;
mod format;
mod kernel_log;
pub mod knob;
mod parse;
pub mod perf;
pub mod probe;
pub mod recorded;
mod root;
mod stat;
mod storage;
mod timer;
mod unavailable;

pub use affinity::{AffinityError, CpuOrder, cpus, cpus_of, pin_current};
pub use bus_error::report_bus_errors;
pub use capacity::{Capacity, capacity};
pub use doctor::{DoctorCheck, CheckState, doctor};
pub use facts::cache::{CpuCache, caches};
pub use facts::facts;
pub use facts::memory::available_bytes as memory_available_bytes;
pub use facts::memory::total_bytes as memory_total_bytes;
pub use kernel_log::KernelLog;
pub use parse::cpu_list;
pub use probe::energy::{EnergySettings, IdlePower, idle_power};
pub use probe::quiet::{QuietCheck, THROTTLED, Throttled, neighbours_doubt, steal_doubt, throttled};
pub use probe::{
    ProbeChoice, Context, CounterChoice, CounterScope, Gauge, WatchReadings, PROBES, PreparedWatch, Probe,
    ProbeSpec, Signal, SamplerTask, RunWatch,
};
pub use root::{Root, RootError};
pub use storage::{free_bytes, storage, volume_of};
pub use timer::wake_promptly;
pub use unavailable::Unavailable;
