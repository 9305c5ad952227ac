//! Every run in its order, from a study or from one measurement.

mod cells;
mod checks;
mod document;
mod estimate;
mod order;
mod sections;
mod sequence;
mod size;
mod stores;
mod study;

use std::path::Path;

use host::Root;
use model::{Bytes, Design, Op, Phase, PlannedRun, Run, RunSettings};
use store::StoreUrl;
use workload::WorkloadSpec;

use crate::agents_config::AgentsConfig;
use crate::bench::Bench;
use crate::calibrate::{Calibration, Maximum};
use crate::co_runner::CoRunner;
use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::load::LoadConfig;
use crate::probes::ProbesConfig;
use crate::server_spec::ServerSpec;
use crate::settings::settings;
use crate::study_text::StudyText;
use crate::trace::TraceSource;

pub(crate) use checks::check_needs_servers;
pub use checks::check_store;
pub use estimate::Estimates;
pub(crate) use size::{MAX_CELLS, check_runs};

/// Assumed speed of a store that has not been measured yet.
const GUESSED_BYTES_S: f64 = 60e6;

const GUESSED_OPS_S: f64 = 100e3;

/// Every run of a study, in the order in which they will happen.
#[derive(Debug, Clone)]
pub struct Plan {
    pub name: String,
    pub question: Option<String>,
    pub seed: u64,
    /// The study's text as it is run; empty where there is none.
    pub text: String,
    pub segments: Vec<Segment>,
    /// The machines that generate the load instead of this one.
    pub agents: Option<AgentsConfig>,
    pub probes: ProbesConfig,
    /// How often each cell runs, without spare repeats; the least of it where repeats are adaptive.
    pub repeats: u32,
    /// What it varies, checks and asks.
    pub design: Design,
}

/// Runs that share one open store and its data: from one `clear` to the next.
#[derive(Debug, Clone)]
pub struct Segment {
    pub store: StoreUrl,
    /// The server that is started for it, and ended with it.
    pub server: Option<ServerSpec>,
    /// The directory is deleted when the study has ended.
    pub temporary: bool,
    pub steps: Vec<Step>,
    /// How data is loaded when a step needs it and no step of the segment has loaded it.
    pub preparing: LoadConfig,
    /// The levels of the machine's knobs under which it runs.
    pub knobs: KnobLevels,
    /// The data loaded for it is needed again after it was changed, so it is copied.
    pub copies: bool,
}

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
                (load, load.load_config.until.operations)
            }
        };
        let StoreLoad { workload, load_config, .. } = &**load;
        let data = match self.settings.get("store").map(String::as_str) {
            Some("null") => Bytes(0),
            _ if self.activity.trace().is_some() => Bytes(0),
            _ => Bytes(workload.data_bytes()),
        };
        let paced = operations.map(|operations| load_config.paced_seconds(operations));
        let (window, guessed) = match (load_config.until.time, paced) {
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

impl Plan {
    /// A plan of these segments with defaults.
    pub fn new(name: &str, segments: Vec<Segment>) -> Plan {
        Plan {
            name: name.to_owned(),
            question: None,
            seed: 0,
            text: String::new(),
            segments,
            agents: None,
            probes: ProbesConfig::default(),
            repeats: 1,
            design: Design::default(),
        }
    }

    /// The same on a machine whose knobs are at these levels.
    pub fn with_knobs(mut self, levels: KnobLevels) -> Plan {
        for segment in &mut self.segments {
            for step in &mut segment.steps {
                levels.settings(&mut step.settings);
            }
            segment.knobs = levels.clone();
        }
        self
    }

    /// Every set of levels under which runs happen, in the order of the first of them.
    pub fn knobs(&self) -> Vec<&KnobLevels> {
        let mut all: Vec<&KnobLevels> = Vec::new();
        for segment in &self.segments {
            if !all.contains(&&segment.knobs) {
                all.push(&segment.knobs);
            }
        }
        all
    }

    /// The levels around all of it, where they are the same everywhere.
    pub fn common_knobs(&self) -> Option<KnobLevels> {
        match self.knobs()[..] {
            [] => Some(KnobLevels::default()),
            [levels] => Some(levels.clone()),
            _ => None,
        }
    }

    /// How often the knobs are turned from one set of levels to another, the first time included.
    pub fn knob_changes(&self) -> usize {
        let mut last = &KnobLevels::default();
        let mut changes = 0;
        for segment in &self.segments {
            changes += usize::from(segment.knobs != *last && !segment.knobs.is_empty());
            last = &segment.knobs;
        }
        changes
    }

    /// Whether it runs only if other runs of its cell are invalid.
    pub fn is_spare(&self, step: &Step) -> bool {
        self.design.spare_repeats > 0 && step.repeat > self.repeats
    }

    pub fn steps(&self) -> impl Iterator<Item = (&Segment, &Step)> {
        self.segments.iter().flat_map(|segment| segment.steps.iter().map(move |s| (segment, s)))
    }

    /// A plan without a study: one run for each load configuration and repeat. The data is loaded first
    /// unless it exists.
    pub fn single(
        (store, server): (StoreUrl, Option<ServerSpec>),
        name: &str,
        workload: WorkloadSpec,
        phase: Phase,
        load_configs: &[LoadConfig],
        repeats: u32,
    ) -> Result<Plan, StudyError> {
        store.check()?;
        check_store(&store, &workload)?;
        check_runs("--repeat", repeats, load_configs.len())?;
        let mut segments = Vec::new();
        let mut ordinal = 0;
        for repeat in 1..=repeats {
            let mut steps = Vec::new();
            for (unit, load_config) in load_configs.iter().enumerate() {
                ordinal += 1;
                let at = (ordinal, unit as u32, repeat);
                let target = (&store, server.as_ref());
                steps.push(step(target, name, &workload, phase, load_config, at)?);
            }
            // Runs share one open store, but each load begins with an empty one.
            let together = if phase == Phase::Load { 1 } else { steps.len().max(1) };
            segments.extend(steps.chunks(together).map(|steps| Segment {
                store: store.clone(),
                server: server.clone(),
                temporary: false,
                steps: steps.to_vec(),
                preparing: load_configs[0].preparing(),
                knobs: KnobLevels::default(),
                copies: false,
            }));
        }
        let seed = workload.seed;
        Ok(Plan { seed, repeats, ..Plan::new("bench", segments) })
    }

    /// The same, with one more setting of every run.
    pub fn with_setting(mut self, key: &str, value: &str) -> Plan {
        for step in self.segments.iter_mut().flat_map(|segment| &mut segment.steps) {
            step.settings.insert(key.to_owned(), value.to_owned());
        }
        self
    }

    /// Every run of a study on the machine of `root`. Stores without a path get a folder of
    /// their own under `data`.
    pub fn of(source: &StudyText, data: &Path, root: &Root) -> Result<Plan, StudyError> {
        study::of(source, data, root)
    }
}

/// One run of a store without a study; `at` is its ordinal, unit and repeat.
pub fn step(
    (store, server): (&StoreUrl, Option<&ServerSpec>),
    name: &str,
    workload: &WorkloadSpec,
    phase: Phase,
    load_config: &LoadConfig,
    (ordinal, unit, repeat): (u32, u32, u32),
) -> Result<Step, StudyError> {
    let load_config = match phase {
        Phase::Load => load_config.clone(),
        Phase::Measure | Phase::Simulate => load_config.clone().with_default_length(),
    };
    checks::check_workload(workload, &load_config, phase)?;
    check_needs_servers(store, &load_config)?;
    let settings = settings((store, server), name, workload, &load_config, repeat);
    let load = Box::new(StoreLoad::new(workload.clone(), load_config));
    let activity = match phase {
        Phase::Load => Activity::Load(load),
        Phase::Measure | Phase::Simulate => Activity::Measure(load),
    };
    Ok(Step { ordinal, unit, repeat, label: label(store, name), activity, settings })
}

pub(crate) fn label(store: &StoreUrl, workload: &str) -> String {
    format!("{} {workload}", store.scheme)
}
