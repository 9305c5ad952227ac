//! The probes of a study: their choice, context and required signals.

mod flag;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use host::{Context, CounterChoice, EnergySettings, ProbeChoice, Root};

use crate::profiling::Profiling;
use crate::simulation::Simulation;

pub(crate) use flag::every;

/// How long the idle machine is measured where a source of energy is there.
pub const IDLE_TIME: Duration = Duration::from_secs(5);

/// The probes of every run of a plan. The default takes what works here.
#[derive(Debug, Clone)]
pub struct ProbesConfig {
    /// The machine; a recorded one in tests.
    pub root: Root,
    pub choice: ProbeChoice,
    /// Interval of the sampler; each probe's own where it is not given.
    pub every: Option<Duration>,
    pub energy: EnergySettings,
    pub counters: CounterChoice,
    /// How long the idle machine is measured before the first run; zero for not at all.
    pub idle: Duration,
    /// Signals without which a run is of no use.
    pub require: Vec<String>,
    /// Simulated counters, from a separate pass.
    pub simulation: Option<Simulation>,
    /// The pass that says where the time goes.
    pub profiling: Option<Profiling>,
    /// The program and arguments that run a pass of the simulation, whose file is
    /// appended; empty where there is none.
    pub pass: Vec<OsString>,
}

impl Default for ProbesConfig {
    fn default() -> Self {
        ProbesConfig {
            root: Root::live(),
            choice: ProbeChoice::default(),
            every: None,
            energy: EnergySettings::default(),
            counters: CounterChoice::default(),
            idle: IDLE_TIME,
            require: Vec::new(),
            simulation: None,
            profiling: None,
            pass: Vec::new(),
        }
    }
}

impl ProbesConfig {
    /// The context of a run's probes. `cpus` are those to which the load is pinned, if any.
    pub fn context(&self, stores: &[PathBuf], cpus: Vec<u32>, server_pids: Vec<u32>) -> Context {
        Context {
            store_path: stores.first().cloned(),
            further_store_paths: stores.iter().skip(1).cloned().collect(),
            cpus,
            server_pids,
            choice: self.choice.clone(),
            every: self.every,
            energy: self.energy.clone(),
            counters: self.counters.clone(),
        }
    }
}
