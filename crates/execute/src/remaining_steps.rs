use std::collections::BTreeSet;

use model::Run;
use study::{Segment, Step};

use crate::repeat_policy::{Decision, RepeatPolicy};

/// The remaining selected steps of a segment.
pub(crate) struct RemainingSteps<'a> {
    left: Vec<&'a Step>,
    next: usize,
    preloads: bool,
    pub(crate) policy: &'a mut RepeatPolicy,
}

impl<'a> RemainingSteps<'a> {
    pub(crate) fn new(
        segment: &'a Segment,
        done: &BTreeSet<u32>,
        policy: &'a mut RepeatPolicy,
    ) -> RemainingSteps<'a> {
        let preloads = segment
            .steps
            .iter()
            .filter_map(|step| step.activity.load())
            .any(|load| load.load_config.server_timing.preloads(load.load_config.is_open()));
        let left = segment.steps.iter().filter(|step| !done.contains(&step.ordinal)).collect();
        RemainingSteps { left, next: 0, preloads, policy }
    }

    pub(crate) fn first(&mut self) -> Option<Step> {
        while let Some(step) = self.left.get(self.next) {
            self.next += 1;
            if self.policy.decide(step) == Decision::Run {
                return Some((*step).clone());
            }
        }
        None
    }

    /// A run of these steps has ended.
    pub(crate) fn saved(&mut self, run: &Run) {
        let step = self.left[..self.next].iter().rfind(|step| step.ordinal == run.ordinal);
        if let Some(step) = step {
            self.policy.saved(step, run);
        }
    }

    pub(crate) fn preloads(&self) -> bool {
        self.preloads
    }
}
