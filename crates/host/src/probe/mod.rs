//! What happens on the machine around a run. A probe is one file here and one
//! line in [`PROBES`].

mod counters;
mod cpu;
mod device;
pub mod energy;
mod io;
mod machine;
mod memory;
mod pressure;
mod sampler;
mod signal;
mod usage;
mod watch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::{Reading, Series};

use crate::root::Root;
use crate::unavailable::Unavailable;

pub use sampler::{Gauge, Task};
pub use signal::{Covers, Signal};
pub use watch::{Observed, Prepared, Watch};

/// Every probe. They start in this order and stop in the other, so the last is
/// the innermost: what the others cost lies outside its window.
pub const PROBES: &[ProbeSpec] = &[
    energy::COMMAND,
    energy::PLUG,
    energy::DCMI,
    energy::METER,
    energy::NVML,
    energy::HWMON,
    energy::BATTERY,
    energy::MODEL,
    energy::RAPL,
    pressure::SPEC,
    device::SPEC,
    machine::SPEC,
    memory::SPEC,
    io::SPEC,
    cpu::SPEC,
];

/// What a probe needs to know of the run.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The folder of the store that is measured, if it has one on this machine.
    pub store_path: Option<PathBuf>,
    /// The CPUs on which the load runs, if it is pinned: the sampler keeps off them.
    pub cpus: Vec<u32>,
    /// The processes of a networked store's server on this machine.
    pub server_pids: Vec<u32>,
    /// Where energy is read from.
    pub energy: energy::EnergySettings,
}

/// Makes a probe, or says why it cannot work here.
pub type Init = fn(&Root, &Context) -> Result<Box<dyn Probe>, Unavailable>;

/// A probe as it is listed: what it would say, and how to make it.
#[derive(Debug, Clone, Copy)]
pub struct ProbeSpec {
    pub name: &'static str,
    /// Every signal that it reads, whether it is available here or not.
    pub signals: &'static [Signal],
    /// The files or calls of one look, two looks a run. [`Watch`] measures
    /// what they cost and reports it as `probe.NAME.cost`.
    pub looks_at: &'static str,
    /// Makes the probe, or says why it cannot work on this machine.
    pub init: Init,
}

/// Something that can be read around a run.
pub trait Probe: Send {
    /// The first look. What fails here is told by `stop`.
    fn start(&mut self);

    /// The second look: one reading for each signal of the probe's
    /// [`ProbeSpec`], in its order, and behind them readings of parts, called
    /// `SIGNAL.PART`. `window` is the time since `start`.
    fn stop(&mut self, window: Duration) -> Vec<Reading>;

    /// What the sampler thread shall do for this probe. Asked for once, before `start`.
    fn tasks(&mut self) -> Vec<Task> {
        Vec::new()
    }

    /// What was sampled, after `stop`. `opened` is time zero.
    fn series(&self, opened: Instant) -> Vec<Series> {
        let _ = opened;
        Vec::new()
    }
}
