//! Decides which of the planned runs are done: a time budget drops repeats before cells, adaptive
//! repeats end when the interval is narrow enough, spare repeats replace invalid runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use analyse::{Metric, describe};
use model::design::AdaptiveRepeats;
use model::{Phase, Run, Span};
use study::{KnobLevels, Plan, Step};

use crate::error::ExecuteError;

/// The decision on a planned run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Run,
    /// Its cell needs no more repeats.
    Skip,
    /// The budget is spent: neither it nor any run after it.
    Stop,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionEnd {
    /// All runs were done.
    Whole,
    /// It was stopped; the rest can be resumed.
    Stopped,
}

/// Advice on runs that a budget dropped.
const MORE_TIME: &str = "run the rest with --resume, and with a longer --max-time or none";

/// A cell on one store, by what its runs share.
type Unit = u32;

/// Decides run by run; [`RepeatPolicy::notes`] reports what differs from the plan.
pub struct RepeatPolicy {
    /// Unit, repeat and estimated seconds of each planned run, in their order.
    planned: Vec<(Unit, u32, f64)>,
    labels: BTreeMap<Unit, String>,
    done: BTreeSet<u32>,
    least: u32,
    adaptive: Option<(AdaptiveRepeats, Metric)>,
    /// The metric's values of each unit by the label of the run.
    values: BTreeMap<(Unit, String), Vec<f64>>,
    missing_metric: BTreeMap<Unit, String>,
    /// Number of valid runs of each unit by the label of the run.
    valid: BTreeMap<(Unit, String), u32>,
    decided: BTreeMap<(Unit, u32), Decision>,
    budget: Option<TimeBudget>,
    units: BTreeMap<u32, Unit>,
    not_run: Vec<String>,
}

struct TimeBudget {
    limit: Duration,
    elapsed: Box<dyn Fn() -> Duration>,
    /// Estimated seconds of the runs done in this invocation.
    done_s: f64,
    /// Repeats that fit into the budget.
    fits: BTreeSet<u32>,
    /// The repeat before which it ended.
    spent_before: Option<(u32, usize)>,
}

impl RepeatPolicy {
    /// For a plan of which `kept` was done by an earlier invocation; `limit` is the time budget of
    /// this invocation, from now on.
    ///
    /// # Errors
    /// The metric of adaptive repeats names no figure.
    pub fn new(
        plan: &Plan,
        kept: &[Run],
        limit: Option<Duration>,
    ) -> Result<RepeatPolicy, ExecuteError> {
        let begun = Instant::now();
        RepeatPolicy::timed(plan, kept, limit, Box::new(move || begun.elapsed()))
    }

    fn timed(
        plan: &Plan,
        kept: &[Run],
        limit: Option<Duration>,
        elapsed: Box<dyn Fn() -> Duration>,
    ) -> Result<RepeatPolicy, ExecuteError> {
        let adaptive = match &plan.design.adaptive {
            None => None,
            Some(adaptive) => {
                let named = Metric::parse(&adaptive.metric)
                    .map_err(|error| ExecuteError::Request(error.to_string()))?;
                Some((adaptive.clone(), named))
            }
        };
        let budget = limit.map(|limit| TimeBudget {
            limit,
            elapsed,
            done_s: 0.0,
            fits: BTreeSet::new(),
            spent_before: None,
        });
        let mut policy = RepeatPolicy {
            planned: Vec::new(),
            labels: BTreeMap::new(),
            done: kept.iter().filter(|run| !run.is_trial()).map(|run| run.ordinal).collect(),
            least: plan.repeats,
            adaptive,
            values: BTreeMap::new(),
            missing_metric: BTreeMap::new(),
            valid: BTreeMap::new(),
            decided: BTreeMap::new(),
            budget,
            units: BTreeMap::new(),
            not_run: Vec::new(),
        };
        for (_, step) in plan.steps() {
            policy.planned.push((step.unit, step.repeat, step.estimate().seconds));
            policy.units.insert(step.ordinal, step.unit);
            policy.labels.entry(step.unit).or_insert_with(|| label(plan, step));
            if policy.done.contains(&step.ordinal) {
                // A repeat that was begun is completed, so that no sequence is partial.
                policy.decided.insert((step.unit, step.repeat), Decision::Run);
            }
        }
        for run in kept.iter().filter(|run| !run.is_trial()) {
            policy.take(run);
        }
        Ok(policy)
    }

    /// The decision on this run. It is the same for every run of one unit in one repeat.
    pub(crate) fn decide(&mut self, step: &Step) -> Decision {
        let key = (step.unit, step.repeat);
        if let Some(decision) = self.decided.get(&key) {
            return *decision;
        }
        let decision = match self.has_enough(step.unit, step.repeat) {
            true => Decision::Skip,
            false => self.afford(step),
        };
        self.decided.insert(key, decision);
        decision
    }

    /// A run has ended.
    pub(crate) fn saved(&mut self, step: &Step, run: &Run) {
        if let Some(budget) = &mut self.budget {
            budget.done_s += step.estimate().seconds;
        }
        self.done.insert(run.ordinal);
        self.take(run);
    }

    fn take(&mut self, run: &Run) {
        let Some(unit) = self.units.get(&run.ordinal) else { return };
        if run.phase == Phase::Load {
            return;
        }
        *self.valid.entry((*unit, run.label.clone())).or_default() += u32::from(run.valid());
        let Some((_, named)) = &self.adaptive else { return };
        if !run.valid() {
            return;
        }
        match named.value(run) {
            Ok(value) => {
                self.values.entry((*unit, run.label.clone())).or_default().push(value);
            }
            Err(reason) => {
                self.missing_metric.insert(*unit, reason.to_string());
            }
        }
    }

    /// Whether a unit needs no further repeat: the interval of each of its workloads is narrow
    /// enough, its metric cannot be read at all, or it has as many valid runs as repeats.
    fn has_enough(&self, unit: Unit, repeat: u32) -> bool {
        if repeat <= self.least {
            return false;
        }
        let of_unit = (unit, String::new())..(unit + 1, String::new());
        match &self.adaptive {
            Some((adaptive, _)) => {
                self.widths(unit).iter().all(|width| width.is_some_and(|w| w <= adaptive.width))
            }
            None => self.valid.range(of_unit).all(|(_, valid)| *valid >= self.least),
        }
    }

    /// Half of the 95 % interval's width as a share of the median, of each workload of a unit;
    /// None where there is no interval yet.
    fn widths(&self, unit: Unit) -> Vec<Option<f64>> {
        let of_unit = self.values.range((unit, String::new())..(unit + 1, String::new()));
        of_unit.map(|(_, values)| half_width(values)).collect()
    }

    fn afford(&mut self, step: &Step) -> Decision {
        // Scans the whole plan, so only with a budget.
        let rest = if self.budget.is_some() { self.left_of(step) } else { Default::default() };
        let cells_done = !self.done.is_empty();
        let Some(budget) = &mut self.budget else { return Decision::Run };
        if budget.spent_before.is_some() {
            return Decision::Stop;
        }
        if budget.fits.contains(&step.repeat) && step.repeat > 1 {
            return Decision::Run;
        }
        let elapsed = (budget.elapsed)().as_secs_f64();
        // Assumes the ratio of actual to estimated time so far.
        let pace = if budget.done_s > 0.0 { elapsed / budget.done_s } else { 1.0 };
        let (seconds, units) = rest;
        if elapsed + seconds * pace <= budget.limit.as_secs_f64() || !cells_done {
            budget.fits.insert(step.repeat);
            return Decision::Run;
        }
        budget.spent_before = Some((step.repeat, units));
        Decision::Stop
    }

    /// What is decided together: a whole repeat, but of the first repeat only the next cell. Returns
    /// the seconds, and the number of units left of the repeat.
    fn left_of(&self, step: &Step) -> (f64, usize) {
        let mut seconds = 0.0;
        let mut units = BTreeSet::new();
        for (unit, repeat, estimate) in &self.planned {
            let undecided = !self.decided.contains_key(&(*unit, *repeat));
            if *repeat != step.repeat || !undecided || self.has_enough(*unit, *repeat) {
                continue;
            }
            units.insert(*unit);
            if step.repeat > 1 || *unit == step.unit {
                seconds += estimate;
            }
        }
        (seconds, units.len())
    }

    /// A trial of a calibration has ended; it counts towards the budget.
    pub(crate) fn tried(&mut self, step: &Step, run: &Run) {
        if let Some(budget) = &mut self.budget {
            budget.done_s +=
                step.activity.load().map_or(0.0, |load| load.load_config.seconds_before())
                    + run.seconds;
        }
    }

    /// Calibration found no maximum for the rate of this step.
    pub(crate) fn uncalibrated(&mut self, step: &Step, why: &str) {
        let label = self.labels.get(&step.unit).map_or("", String::as_str);
        let note = format!("{} was not run on {label}: {why}", step.label);
        if !self.not_run.contains(&note) {
            self.not_run.push(note);
        }
    }

    /// The knobs could not be turned.
    pub(crate) fn not_run(&mut self, levels: &KnobLevels, why: &ExecuteError) {
        let levels: Vec<String> =
            levels.0.iter().map(|(knob, level)| format!("{knob}={level}")).collect();
        self.not_run.push(format!("nothing was run at {}: {why}", levels.join(", ")));
    }

    /// Sentences on what differs from the plan; empty if nothing does.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.not_run.clone();
        let all = self.planned.iter().map(|(_, repeat, _)| *repeat).max().unwrap_or(0);
        if let Some(TimeBudget { limit, spent_before: Some((repeat, units)), .. }) = &self.budget {
            let limit = Span(*limit);
            notes.push(match repeat {
                1 => format!(
                    "the budget of {limit} was spent in the first repeat: {units} of {} cells \
                     were not measured; {MORE_TIME}",
                    self.labels.len()
                ),
                _ => format!(
                    "the budget of {limit} allowed {} of {all} repeats of every cell; {MORE_TIME}",
                    repeat - 1
                ),
            });
        }
        if let Some((adaptive, _)) = &self.adaptive {
            notes.extend(self.note_on_repeats(adaptive));
        }
        notes.extend(self.note_on_spares());
        notes
    }

    /// Reports spare repeats, and where they were not enough.
    fn note_on_spares(&self) -> Vec<String> {
        let spare = |(unit, repeat): &(Unit, u32)| (*repeat > self.least).then_some(*unit);
        let made = self.decided.iter().filter(|(_, decision)| **decision == Decision::Run);
        let made: Vec<Unit> = made.filter_map(|(key, _)| spare(key)).collect();
        if self.adaptive.is_some() || made.is_empty() {
            return Vec::new();
        }
        let cells: BTreeSet<Unit> = made.iter().copied().collect();
        let s = if made.len() == 1 { " was" } else { "s were" };
        let of = if cells.len() == 1 { "" } else { "s" };
        let mut words = format!(
            "{} spare repeat{s} made, of {} cell{of}, because runs were invalid",
            made.len(),
            cells.len()
        );
        let short = cells.iter().filter(|unit| !self.has_enough(**unit, u32::MAX)).count();
        if short > 0 {
            words += &format!(
                "; {short} of them still without {} valid runs: quieten the machine, or raise \
                 `spare_repeats` of [design]",
                self.least
            );
        }
        vec![words]
    }

    fn note_on_repeats(&self, adaptive: &AdaptiveRepeats) -> Vec<String> {
        let percent = adaptive.width * 100.0;
        let mut narrow = 0;
        let mut wide = Vec::new();
        for (unit, label) in &self.labels {
            let widths = self.widths(*unit);
            let widest = widths.iter().copied().try_fold(0.0_f64, |most, w| Some(most.max(w?)));
            match (widest, self.missing_metric.get(unit)) {
                (Some(width), None) if !widths.is_empty() && width <= adaptive.width => narrow += 1,
                (Some(width), None) if !widths.is_empty() => {
                    wide.push(format!("{label} is known to ±{:.1} %", width * 100.0));
                }
                (_, Some(reason)) => wide.push(format!("{label}: {reason}")),
                (..) => wide.push(format!("{label}: too few repeats for an interval")),
            }
        }
        let mut notes = vec![format!(
            "cells were repeated until {} was within ±{percent:.1} % of its median: it is in \
             {narrow} of {} cells",
            adaptive.metric,
            self.labels.len()
        )];
        notes.extend(wide);
        notes
    }
}

/// Half of the 95 % interval's width as a share of the median.
fn half_width(values: &[f64]) -> Option<f64> {
    let described = describe(values).ok()?;
    let interval = described.interval().ok()?;
    let median = described.median.abs();
    (median > 0.0).then(|| (interval.high - interval.low) / 2.0 / median)
}

/// A label of a unit: its store and the levels of the factors.
fn label(plan: &Plan, step: &Step) -> String {
    let store = step.settings.get("store").map_or("", String::as_str);
    let levels = plan.design.levels_of(&step.settings);
    let levels: Vec<String> =
        levels.iter().map(|(name, level)| format!("{name}={level}")).collect();
    match levels.is_empty() {
        true => store.to_owned(),
        false => format!("{store} at {}", levels.join(", ")),
    }
}

#[cfg(test)]
pub(crate) mod tests;
