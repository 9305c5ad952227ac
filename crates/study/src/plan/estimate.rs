//! What a plan will take, as far as that can be said before it starts.

use std::collections::BTreeMap;
use std::path::Path;

use model::{Bytes, Op};
use record::Phase;

use super::{Plan, Segment, Step};

/// What turning the knobs and putting them back takes, proof and idle power aside: a guess.
const TURNING_S: f64 = 3.0;
/// What starting a server and ending it takes: a guess.
const SERVER_S: f64 = 1.0;
/// As [`Step::estimate`] guesses it.
const LOADED_BYTES_S: f64 = super::GUESSED_BYTES_S;

/// The estimate of a whole plan.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimates {
    pub runs: usize,
    /// Runs, loads between them, servers and knobs.
    pub seconds: f64,
    /// Part of the time is guessed.
    pub guessed: bool,
    /// The most that the stores hold at once: the data and what a log-structured store merges
    /// beside it.
    pub disk: Bytes,
    /// How often data is loaded, measured or not.
    pub loads: usize,
    pub knob_changes: usize,
}

impl Plan {
    /// Of the runs that `wanted` takes.
    pub fn estimate(&self, wanted: impl Fn(&Step) -> bool) -> Estimates {
        let mut all = Estimates::default();
        // What each directory holds when a segment ends; none where a run has changed it.
        let mut held: BTreeMap<&Path, Option<String>> = BTreeMap::new();
        let mut largest: BTreeMap<&Path, u64> = BTreeMap::new();
        let mut knobs = None;
        for segment in &self.segments {
            let steps: Vec<&Step> = segment.steps.iter().filter(|step| wanted(step)).collect();
            let Some(first) = steps.first() else { continue };
            if !segment.knobs.is_empty() && knobs != Some(&segment.knobs) {
                all.knob_changes += 1;
                all.seconds += TURNING_S;
            }
            knobs = Some(&segment.knobs);
            all.seconds += if segment.server.is_some() { SERVER_S } else { 0.0 };
            let path = segment.store.path.as_path();
            let dataset = first.workload.dataset().to_string();
            let there = segment.server.is_none() && held.get(path) == Some(&Some(dataset.clone()));
            if first.phase == Phase::Measure && first.trace.is_none() && keeps(segment) && !there {
                all.loads += 1;
                all.guessed = true;
                all.seconds += first.estimate().data.0 as f64 / LOADED_BYTES_S;
            }
            for step in &steps {
                let estimate = step.estimate();
                all.runs += 1;
                all.loads += usize::from(step.phase == Phase::Load);
                all.seconds += estimate.seconds;
                all.guessed |= estimate.guessed;
                if segment.server.is_none() && !path.as_os_str().is_empty() {
                    let most = largest.entry(path).or_default();
                    *most = (*most).max(estimate.data.0.saturating_add(estimate.data.0 / 2));
                }
            }
            held.insert(path, (!steps.iter().any(|step| grows(step))).then_some(dataset));
        }
        all.disk = Bytes(largest.values().sum());
        all
    }
}

/// Whether data has to be loaded for it at all.
fn keeps(segment: &Segment) -> bool {
    segment.store.scheme != "null"
}

/// Whether a run leaves other records than it found.
fn grows(step: &Step) -> bool {
    let changes = [Op::Insert, Op::Delete].into_iter().any(|op| step.workload.mix.asks(op));
    step.trace.is_some() || (step.phase == Phase::Measure && changes)
}
