//! What happens on the machine around a run. A probe is one file here and one
//! line in [`PROBES`].

mod choice;
mod counter_choice;
mod counters;
mod cpu;
mod device;
mod dram;
pub mod energy;
mod events;
mod frequency;
mod io;
mod limits;
mod llc;
mod machine;
mod memory;
mod network;
mod pressure;
pub mod quiet;
mod quota;
mod residency;
mod sampler;
mod signal;
mod software;
mod states;
mod switches;
mod thermal;
mod units;
mod usage;
mod volume;
mod watch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::{Reading, Series};

use crate::root::Root;
use crate::unavailable::Unavailable;

pub use choice::{ProbeChoice, UnknownProbe};
pub use counter_choice::{CounterChoice, CounterScope};
pub use sampler::{Gauge, SamplerTask};
pub use signal::{SignalWindow, Signal};
pub use units::{NewKernel, PerDuration};
pub use watch::{WatchReadings, PreparedWatch, RunWatch};

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
    dram::SPEC,
    llc::SPEC,
    thermal::SPEC,
    frequency::SPEC,
    states::SPEC,
    residency::SPEC,
    network::SPEC,
    switches::SPEC,
    events::SPEC,
    software::SPEC,
    pressure::SPEC,
    device::SPEC,
    volume::SPEC,
    limits::SPEC,
    quota::SPEC,
    machine::SPEC,
    memory::SPEC,
    io::SPEC,
    energy::RAPL,
    cpu::SPEC,
];

/// The probes that count through [`Kernel`](crate::perf::Kernel), with how to
/// make each over another one: a recorded machine can then be counted on.
pub const COUNTING: &[(&str, PerDuration)] = &[
    (events::SPEC.name, events::over),
    (software::SPEC.name, software::over),
    (frequency::SPEC.name, frequency::over),
    (states::SPEC.name, states::over),
    (dram::SPEC.name, dram::over),
    (energy::RAPL.name, energy::rapl_over),
];

/// What a probe needs to know of the run.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The folder of the store that is measured, if it has one on this machine.
    pub store_path: Option<PathBuf>,
    /// The folders of further stores that are asked at the same time, on other devices.
    pub further_store_paths: Vec<PathBuf>,
    /// The CPUs on which the load runs; empty where it runs anywhere. The sampler keeps off them.
    pub cpus: Vec<u32>,
    /// The processes of the servers on this machine, empty for an embedded store.
    pub server_pids: Vec<u32>,
    /// The probes that run.
    pub choice: ProbeChoice,
    /// How often the sampler looks, where a probe is not to say it.
    pub every: Option<Duration>,
    /// Where energy is read from.
    pub energy: energy::EnergySettings,
    /// What the hardware counters shall count.
    pub counters: CounterChoice,
}

impl Context {
    /// The folders of all stores that are measured.
    pub(crate) fn store_paths(&self) -> Vec<PathBuf> {
        self.store_path.iter().chain(&self.further_store_paths).cloned().collect()
    }

    /// How often to sample.
    fn every(&self, otherwise: Duration) -> Duration {
        self.every.unwrap_or(otherwise)
    }

    /// Whether a probe is to run with settings that it can work with, or why not.
    fn check_chosen(&self, spec: &ProbeSpec) -> Result<(), Unavailable> {
        self.choice.takes(spec, self.energy.configured(spec.name))?;
        if energy::NAMES.contains(&spec.name) {
            let broken = |error: energy::SettingError| {
                Unavailable::new(error.to_string(), "change that setting")
            };
            self.energy.check().map_err(broken)?;
        }
        Ok(())
    }
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
    pub reads: &'static str,
    /// Makes the probe, or says why it cannot work on this machine.
    pub init: Init,
}

impl ProbeSpec {
    /// The probe for a run, or why there is none: it was not asked for, or cannot work here.
    ///
    /// # Errors
    /// The reason and what to do about it.
    pub fn make(&self, root: &Root, context: &Context) -> Result<Box<dyn Probe>, Unavailable> {
        context.check_chosen(self)?;
        (self.init)(root, context)
    }
}

/// Something that can be read around a run.
pub trait Probe: Send {
    /// The first look. What fails here is told by `stop`.
    fn start(&mut self);

    /// The second look: one reading for each signal of the probe's
    /// [`ProbeSpec`], in its order, and behind them those that only this machine
    /// can name (a part such as one package, an idle state, a raw event).
    /// `window` is the time since `start`.
    fn stop(&mut self, window: Duration) -> Vec<Reading>;

    /// The window of the run itself, which begins when every probe has started and ends before
    /// the first one stops; told right before `stop`. Of use to a probe that knows what was in
    /// between its looks.
    fn set_run_window(&mut self, opened: Instant, closed: Instant) {
        let _ = (opened, closed);
    }

    /// What the sampler thread shall do for this probe. Asked for once, before `start`.
    fn tasks(&mut self) -> Vec<SamplerTask> {
        Vec::new()
    }

    /// What was sampled, after `stop`. `opened` is time zero.
    fn series(&self, opened: Instant) -> Vec<Series> {
        let _ = opened;
        Vec::new()
    }
}
