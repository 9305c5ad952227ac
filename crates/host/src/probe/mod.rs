//! Probes read signals around a run. A probe is one file here and one line in
//! [`PROBES`].

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

use model::{Reading, Series, Unavailable};

use crate::root::Root;

pub use choice::{ProbeChoice, UnknownProbe};
pub use counter_choice::{CounterChoice, CounterScope};
pub use model::{Signal, SignalWindow};
pub use sampler::{Gauge, SamplerTask};
pub use units::{NewKernel, PerDuration};
pub use watch::{PreparedWatch, RunWatch, WatchReadings};

/// Every probe. They start in this order and stop in reverse, so that the last
/// one is the innermost and its window excludes the cost of the others.
pub const PROBES: &[ProbeSpec] = &energy_first();

/// Every probe but those sources of energy that are sampled ([`energy::SOURCES`]).
const OTHER_PROBES: &[ProbeSpec] = &[
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

const fn energy_first() -> [ProbeSpec; energy::SOURCES.len() + OTHER_PROBES.len()] {
    let mut all = [cpu::SPEC; energy::SOURCES.len() + OTHER_PROBES.len()];
    let (sources, others) = all.split_at_mut(energy::SOURCES.len());
    sources.copy_from_slice(energy::SOURCES);
    others.copy_from_slice(OTHER_PROBES);
    all
}

/// The probes that count through [`PerfKernel`](crate::perf::PerfKernel), with a
/// constructor over another kernel, for tests on recorded machines.
pub const COUNTING: &[(&str, PerDuration)] = &[
    (events::SPEC.name, events::over),
    (software::SPEC.name, software::over),
    (frequency::SPEC.name, frequency::over),
    (states::SPEC.name, states::over),
    (dram::SPEC.name, dram::over),
    (energy::RAPL.name, energy::rapl_over),
];

/// What probes need to know about the run.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The folder of the store that is measured, if it has one on this machine.
    pub store_path: Option<PathBuf>,
    /// The folders of further stores of the same run, on other devices.
    pub further_store_paths: Vec<PathBuf>,
    /// The CPUs on which the load runs; empty where it runs anywhere. The sampler avoids them.
    pub cpus: Vec<u32>,
    /// The processes of the servers on this machine, empty for an embedded store.
    pub server_pids: Vec<u32>,
    /// The probes that run.
    pub choice: ProbeChoice,
    /// The sampling interval, instead of each probe's own.
    pub every: Option<Duration>,
    /// Settings of energy sources.
    pub energy: energy::EnergySettings,
    /// What the hardware counters count.
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

    /// Checks that a probe is chosen and that its settings are valid.
    fn check_chosen(&self, spec: &ProbeSpec) -> Result<(), Unavailable> {
        self.choice.takes(spec, self.energy.configured(spec.name))?;
        if spec.reads_energy() {
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

/// The description of a probe, and its constructor.
#[derive(Debug, Clone, Copy)]
pub struct ProbeSpec {
    pub name: &'static str,
    /// Every signal that it reads, whether it is available here or not.
    pub signals: &'static [Signal],
    /// Signals of parts that only the machine or the user can name, behind those in its readings.
    pub parts: &'static [Signal],
    /// The files or calls that it reads at both ends of a run. [`RunWatch`] measures
    /// their cost and reports it as `probe.NAME.cost`.
    pub reads: &'static str,
    /// Makes the probe, or says why it cannot work on this machine.
    pub init: Init,
    /// Whether it may measure another machine than the one that reads it.
    may_be_elsewhere: bool,
    /// The largest error of its readings as a share of them, where the maker states one.
    stated_error: Option<f64>,
}

impl ProbeSpec {
    const fn new(
        name: &'static str,
        signals: &'static [Signal],
        reads: &'static str,
        init: Init,
    ) -> Self {
        let (may_be_elsewhere, stated_error) = (false, None);
        ProbeSpec { name, signals, parts: &[], reads, init, may_be_elsewhere, stated_error }
    }

    const fn with_parts(mut self, parts: &'static [Signal]) -> Self {
        self.parts = parts;
        self
    }

    const fn may_be_elsewhere(mut self) -> Self {
        self.may_be_elsewhere = true;
        self
    }

    const fn with_stated_error(mut self, share: f64) -> Self {
        self.stated_error = Some(share);
        self
    }

    fn reads_energy(&self) -> bool {
        self.signals.iter().any(|signal| signal.name.starts_with("energy."))
    }

    /// The probe for a run, or why there is none: it is not chosen, or cannot work here.
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
    /// Begins the window. `stop` reports failures of this call.
    fn start(&mut self);

    /// Ends the window: one reading for each signal of the probe's [`ProbeSpec`], in
    /// order, followed by those whose names depend on the machine (one package, an
    /// idle state, a raw event). `window` is the time since `start`.
    fn stop(&mut self, window: Duration) -> Vec<Reading>;

    /// Looks at the window while it is open, without ending it: counts since `start`, present
    /// values of gauges. Empty where a probe has nothing to show before its end. It must neither
    /// wait nor disturb what `stop` will read.
    fn peek(&mut self, window: Duration) -> Vec<Reading> {
        let _ = window;
        Vec::new()
    }

    /// Sets the window of the run itself, which begins when every probe has started and ends before
    /// the first one stops; called right before `stop`. For probes that sample in between.
    fn set_run_window(&mut self, opened: Instant, closed: Instant) {
        let _ = (opened, closed);
    }

    /// The sampler's tasks for this probe. Called once, before `start`.
    fn tasks(&mut self) -> Vec<SamplerTask> {
        Vec::new()
    }

    /// The sampled series, after `stop`. `opened` is time zero.
    fn series(&self, opened: Instant) -> Vec<Series> {
        let _ = opened;
        Vec::new()
    }
}
