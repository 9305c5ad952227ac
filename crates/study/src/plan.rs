//! Every run in its order, from a study or from one measurement.

mod cells;
mod checks;
mod document;
mod estimate;
mod order;
mod sections;
mod size;
mod stores;
mod study;

use std::path::Path;

use host::Root;
use model::Bytes;
use record::{Design, Phase, PlannedRun, Run, RunSettings};
use store::StoreUrl;
use workload::WorkloadSpec;

use crate::asking::LoadConfig;
use crate::bench::Activity;
use crate::beside::CoRunner;
use crate::calibrate::{Calibration, Maximum};
use crate::error::StudyError;
use crate::fleet::AgentsConfig;
use crate::knobs::KnobLevels;
use crate::probes::ProbesConfig;
use crate::settings::settings;
use crate::source::StudyText;
use crate::started::ServerSpec;
use crate::trace::TraceSource;

pub(crate) use checks::{check_manner, check_store};
pub use estimate::Estimates;
pub(crate) use size::{MOST_CELLS, check_runs};

/// A rough guess for how fast a store is that nobody has measured yet.
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
    /// The machines that ask instead of this one.
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
    /// The directory is ours to delete when the study has ended.
    pub temporary: bool,
    pub steps: Vec<Step>,
    /// How data is loaded when a step needs it and no step of the segment has loaded it.
    pub preparing: LoadConfig,
    /// The levels of the machine's knobs under which it runs.
    pub knobs: KnobLevels,
    /// The data that is loaded for it is wanted again later, after it was changed: a copy is
    /// kept beside it.
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
    pub phase: Phase,
    pub workload: WorkloadSpec,
    /// What is replayed instead of the workload, which is then of no meaning.
    pub trace: Option<TraceSource>,
    pub manner: LoadConfig,
    /// What is done instead of asking a store; workload and manner are then of no meaning.
    pub bench: Option<Activity>,
    /// What else keeps the machine busy meanwhile.
    pub beside: Option<CoRunner>,
    /// How the maximum is found of which its rate is a share.
    pub calibrate: Option<Calibration>,
    /// That maximum, once it is known.
    pub maximum: Option<Maximum>,
    pub settings: RunSettings,
}

/// What a run will take, as far as that can be said beforehand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub seconds: f64,
    /// The time is guessed, not given.
    pub guessed: bool,
    /// Bytes of keys and values that the store holds then.
    pub data: Bytes,
}

impl Step {
    /// Made to find a maximum, and no result of the study.
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

    pub fn estimate(&self) -> Estimate {
        if let Some(bench) = &self.bench {
            return Estimate { seconds: bench.seconds(), guessed: true, data: Bytes(0) };
        }
        let data = match self.settings.get("store").map(String::as_str) {
            Some("null") => Bytes(0),
            _ if self.trace.is_some() => Bytes(0),
            _ => Bytes(self.workload.data_bytes()),
        };
        let operations = match self.phase {
            Phase::Load => Some(self.workload.records.0),
            Phase::Measure | Phase::Simulate => self.manner.until.operations,
        };
        let paced = operations.map(|operations| self.manner.paced_seconds(operations));
        let (window, guessed) = match (self.manner.until.time, paced) {
            (Some(time), Some(paced)) => (time.as_secs_f64().min(paced.max(1e-3)), paced == 0.0),
            (Some(time), None) => (time.as_secs_f64(), false),
            (None, Some(paced)) => (paced, true),
            (None, None) => (0.0, true),
        };
        // Nobody knows beforehand how fast a store is: a rough guess, said to be one.
        let at_least = match (guessed, self.phase) {
            (false, _) => 0.0,
            (true, Phase::Load) => (data.0 as f64 / GUESSED_BYTES_S)
                .max(self.workload.records.0 as f64 / GUESSED_OPS_S),
            (true, Phase::Measure | Phase::Simulate) => {
                operations.unwrap_or_default() as f64 / GUESSED_OPS_S
            }
        };
        let seconds = self.manner.seconds_before() + window.max(at_least);
        Estimate { seconds, guessed, data }
    }
}

impl Plan {
    /// Of these runs, with nothing more said.
    pub(crate) fn new(name: &str, segments: Vec<Segment>) -> Plan {
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

    /// Whether it is run only if others of its cell turn out invalid.
    pub fn is_spare(&self, step: &Step) -> bool {
        self.design.spare_repeats > 0 && step.repeat > self.repeats
    }

    pub fn steps(&self) -> impl Iterator<Item = (&Segment, &Step)> {
        self.segments.iter().flat_map(|segment| segment.steps.iter().map(move |s| (segment, s)))
    }

    /// Measurements without a study, one for each manner and repeat: the data is loaded first
    /// unless it is there.
    pub fn single(
        (store, server): (StoreUrl, Option<ServerSpec>),
        name: &str,
        workload: WorkloadSpec,
        phase: Phase,
        manners: &[LoadConfig],
        repeats: u32,
    ) -> Result<Plan, StudyError> {
        store.check()?;
        check_store(&store, &workload)?;
        check_runs("--repeat", repeats, manners.len())?;
        let mut segments = Vec::new();
        let mut ordinal = 0;
        for repeat in 1..=repeats {
            let mut steps = Vec::new();
            for (unit, manner) in manners.iter().enumerate() {
                ordinal += 1;
                let at = (ordinal, unit as u32, repeat);
                let whom = (&store, server.as_ref());
                steps.push(step(whom, name, &workload, phase, manner, at)?);
            }
            // One after the other on the same open store; but a load begins with nothing.
            let together = if phase == Phase::Load { 1 } else { steps.len().max(1) };
            segments.extend(steps.chunks(together).map(|steps| Segment {
                store: store.clone(),
                server: server.clone(),
                temporary: false,
                steps: steps.to_vec(),
                preparing: steps[0].manner.preparing(),
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
pub(crate) fn step(
    (store, server): (&StoreUrl, Option<&ServerSpec>),
    name: &str,
    workload: &WorkloadSpec,
    phase: Phase,
    manner: &LoadConfig,
    (ordinal, unit, repeat): (u32, u32, u32),
) -> Result<Step, StudyError> {
    let manner = match phase {
        Phase::Load => manner.clone(),
        Phase::Measure | Phase::Simulate => manner.clone().with_default_length(),
    };
    checks::check_workload(workload, &manner, phase)?;
    check_manner(store, &manner)?;
    let settings = settings((store, server), name, workload, &manner, repeat);
    let (label, workload) = (label(store, name), workload.clone());
    Ok(Step {
        ordinal,
        unit,
        repeat,
        label,
        phase,
        workload,
        trace: None,
        manner,
        bench: None,
        beside: None,
        calibrate: None,
        maximum: None,
        settings,
    })
}

pub(crate) fn label(store: &StoreUrl, workload: &str) -> String {
    format!("{} {workload}", store.scheme)
}
