//! The machine that is measured: its facts ([`facts`], [`storage`]), readings
//! around a run ([`RunWatch`]), settings that can be turned ([`knob`]), CPUs for
//! load threads ([`cpus`]), and what makes a measurement doubtful ([`doctor`]).
//!
//! Everything is read through one swappable [`Root`], so that a recorded `/proc`
//! and `/sys` can stand in for hardware that is not at hand.

#![deny(unsafe_code)]

mod bus_error;
pub mod cachegrind;
mod capacity;
mod confined;
mod cpu_order;
mod doctor;
mod facts;
mod format;
mod kernel_log;
pub mod knob;
mod parse;
pub mod perf;
pub mod probe;
pub mod recorded;
mod recording_notes;
mod root;
mod stat;
mod storage;
mod timer;
mod unavailable;

pub use bus_error::report_bus_errors;
pub use capacity::{Capacity, capacity};
pub use cpu_order::{CpuOrder, CpuOrderError, cpus};
pub use doctor::{DoctorCheck, DoctorState, doctor};
pub use facts::cache::{CpuCache, caches};
pub use facts::facts;
pub use facts::memory::available_bytes as memory_available_bytes;
pub use facts::memory::total_bytes as memory_total_bytes;
pub use facts::numa::node_cpus;
pub use kernel_log::KernelLog;
pub use probe::energy::{EnergySettings, IdlePower, idle_power};
pub use probe::quiet::{
    QuietCheck, THROTTLED, Throttled, neighbours_doubt, steal_doubt, throttled,
};
pub use probe::{
    Context, CounterChoice, CounterScope, Gauge, PROBES, PreparedWatch, Probe, ProbeChoice,
    ProbeSpec, RunWatch, SamplerTask, Signal, UnknownProbe, WatchReadings,
};
pub use root::{Root, RootError};
pub use storage::{free_bytes, storage, volume_of};
pub use timer::wake_promptly;
