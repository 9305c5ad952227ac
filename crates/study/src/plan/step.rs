//! One run of a plan, and what it does.

use model::{Bytes, Op, Phase, PlannedRun, Run, RunSettings};
use store::StoreUrl;
use workload::WorkloadSpec;

use super::bench::Bench;
use super::calibrate::{Calibration, Maximum};
use super::co_runner::CoRunner;
use super::trace::TraceSource;
use crate::load::LoadConfig;

/// Assumed speed of a store that has not been measured yet.
pub(super) const GUESSED_BYTES_S: f64 = 60e6;

const GUESSED_OPS_S: f64 = 100e3;

/// One run.
#[derive(Debug, Clone)]
pub struct Step {
    pub ordinal: u32,
    /// Runs that are repeats of one cell on one store have the same.
    pub unit: u32,
    /// Counted from 1.
    pub repeat: u32,
    pub label: String,
    pub activity: Activity,
    pub settings: RunSettings,
}

/// What a run does.
#[derive(Debug, Clone)]
pub enum Activity {
    /// Fills a store.
    Load(Box<StoreLoad>),
    /// Issues a workload's operations.
    Measure(Box<StoreLoad>),
    /// Replays a trace.
    Replay(Box<StoreLoad>, TraceSource),
    /// A microbenchmark or a simulation: it has no store.
    Bench(Bench),
}

/// A load on a store.
#[derive(Debug, Clone)]
pub struct StoreLoad {
    /// Of a replay only the seed counts.
    pub workload: WorkloadSpec,
    pub load_config: LoadConfig,
    /// The co-runner.
    pub co_runner: Option<CoRunner>,
    /// How the maximum is found of which its rate is a share.
    pub calibrate: Option<Calibration>,
    /// That maximum, once it is known.
    pub maximum: Option<Maximum>,
}

impl StoreLoad {
    pub(crate) fn new(workload: WorkloadSpec, load_config: LoadConfig) -> StoreLoad {
        StoreLoad { workload, load_config, co_runner: None, calibrate: None, maximum: None }
    }

    /// Whether it inserts or deletes records, as a measured workload.
    pub fn changes_records(&self) -> bool {
        [Op::Insert, Op::Delete].into_iter().any(|op| self.workload.mix.contains(op))
    }
}

impl Activity {
    pub const fn phase(&self) -> Phase {
        match self {
            Activity::Load(_) => Phase::Load,
            Activity::Measure(_) | Activity::Replay(..) => Phase::Measure,
            Activity::Bench(bench) => bench.phase(),
        }
    }

    /// The load on a store, if it is one.
    pub fn load(&self) -> Option<&StoreLoad> {
        match self {
            Activity::Load(load) | Activity::Measure(load) | Activity::Replay(load, _) => {
                Some(load)
            }
            Activity::Bench(_) => None,
        }
    }

    pub fn load_mut(&mut self) -> Option<&mut StoreLoad> {
        match self {
            Activity::Load(load) | Activity::Measure(load) | Activity::Replay(load, _) => {
                Some(load)
            }
            Activity::Bench(_) => None,
        }
    }

    /// The trace that is replayed.
    pub fn trace(&self) -> Option<&TraceSource> {
        match self {
            Activity::Replay(_, trace) => Some(trace),
            _ => None,
        }
    }
}

/// The estimated cost of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub seconds: f64,
    /// The time is guessed, not given.
    pub guessed: bool,
    /// Bytes of keys and values that the store holds then.
    pub data: Bytes,
}

impl Step {
    /// Whether it is a trial of a calibration rather than a result.
    pub fn is_trial(&self) -> bool {
        self.settings.contains_key(Run::TRIAL_FOR)
    }

    pub fn planned(&self) -> PlannedRun {
        PlannedRun {
            ordinal: self.ordinal,
            label: self.label.clone(),
            settings: self.settings.clone(),
        }
    }

    pub fn phase(&self) -> Phase {
        self.activity.phase()
    }

    pub fn estimate(&self) -> Estimate {
        let (load, operations) = match &self.activity {
            Activity::Bench(bench) => {
                return Estimate { seconds: bench.seconds(), guessed: true, data: Bytes(0) };
            }
            Activity::Load(load) => (load, Some(load.workload.records.0)),
            Activity::Measure(load) | Activity::Replay(load, _) => {
                (load, load.load_config.shape.until.operations)
            }
        };
        let StoreLoad { workload, load_config, .. } = &**load;
        let data = match self.settings.get("store").map(String::as_str) {
            Some("null") => Bytes(0),
            _ if self.activity.trace().is_some() => Bytes(0),
            _ => Bytes(workload.data_bytes()),
        };
        let paced = operations.map(|operations| load_config.paced_seconds(operations));
        let (window, guessed) = match (load_config.shape.until.time, paced) {
            (Some(time), Some(paced)) => (time.as_secs_f64().min(paced.max(1e-3)), paced == 0.0),
            (Some(time), None) => (time.as_secs_f64(), false),
            (None, Some(paced)) => (paced, true),
            (None, None) => (0.0, true),
        };
        // The speed of the store is not known beforehand.
        let at_least = match (guessed, self.phase()) {
            (false, _) => 0.0,
            (true, Phase::Load) => {
                (data.0 as f64 / GUESSED_BYTES_S).max(workload.records.0 as f64 / GUESSED_OPS_S)
            }
            (true, Phase::Measure | Phase::Simulate) => {
                operations.unwrap_or_default() as f64 / GUESSED_OPS_S
            }
        };
        let seconds = load_config.seconds_before() + window.max(at_least);
        Estimate { seconds, guessed, data }
    }
}

pub(crate) fn label(store: &StoreUrl, workload: &str) -> String {
    format!("{} {workload}", store.scheme)
}
