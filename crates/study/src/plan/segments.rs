//! Every run in its order, in segments that share a store.

use model::Design;
use store::StoreUrl;

use super::step::Step;
use crate::agents_config::AgentsConfig;
use crate::knobs::KnobLevels;
use crate::load::LoadConfig;
use crate::probes::ProbesConfig;
use crate::server_spec::ServerSpec;

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

    /// The same, with one more setting of every run.
    pub fn with_setting(mut self, key: &str, value: &str) -> Plan {
        for step in self.segments.iter_mut().flat_map(|segment| &mut segment.steps) {
            step.settings.insert(key.to_owned(), value.to_owned());
        }
        self
    }
}
