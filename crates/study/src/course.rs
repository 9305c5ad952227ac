//! Which of the planned runs are done: a budget of time drops repeats before it drops cells, and
//! adaptive repeats end where the interval is narrow enough, and spare ones make up for invalid
//! runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use analyse::{Metric, describe};
use model::Span;
use record::design::AdaptiveRepeats;
use record::{Phase, Run};

use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::plan::{Plan, Step};

/// What becomes of a planned run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Run,
    /// Its cell needs no more repeats.
    Skip,
    /// The budget is spent: neither it nor what is behind it.
    Stop,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionEnd {
    /// Everything was done that was to be done.
    Whole,
    /// It was stopped; the rest can be resumed.
    Stopped,
}

/// What gets the runs that a budget dropped.
const MORE_TIME: &str = "--resume goes on with them, with a longer --max-time or without";

/// A cell on one store, by what its runs share.
type Unit = u32;

/// Decides, run by run. What it decided is told by [`Course::notes`].
pub struct RepeatPolicy {
    /// What is known of each planned run: unit, repeat and estimated seconds, in their order.
    planned: Vec<(Unit, u32, f64)>,
    labels: BTreeMap<Unit, String>,
    done: BTreeSet<u32>,
    least: u32,
    adaptive: Option<(AdaptiveRepeats, Metric)>,
    /// The metric's values of each unit by the label of the run.
    values: BTreeMap<(Unit, String), Vec<f64>>,
    lacking: BTreeMap<Unit, String>,
    /// Valid runs of each unit by the label of the run; 0 of one that was never valid.
    valid: BTreeMap<(Unit, String), u32>,
    decided: BTreeMap<(Unit, u32), Decision>,
    budget: Option<TimeBudget>,
    units: BTreeMap<u32, Unit>,
    unturned: Vec<String>,
}

struct TimeBudget {
    limit: Duration,
    elapsed: Box<dyn Fn() -> Duration>,
    /// Estimated seconds of what was done in this invocation.
    done_s: f64,
    /// Repeats that were found to fit.
    fits: BTreeSet<u32>,
    /// The repeat before which it ended.
    spent_before: Option<(u32, usize)>,
}

impl RepeatPolicy {
    /// Of a plan, of which `kept` was done by an earlier invocation; `limit` is the time that
    /// this one may take, from now on.
    ///
    /// # Errors
    /// The metric of adaptive repeats names no figure.
    pub fn new(
        plan: &Plan,
        kept: &[Run],
        limit: Option<Duration>,
    ) -> Result<RepeatPolicy, StudyError> {
        let begun = Instant::now();
        RepeatPolicy::timed(plan, kept, limit, Box::new(move || begun.elapsed()))
    }

    fn timed(
        plan: &Plan,
        kept: &[Run],
        limit: Option<Duration>,
        elapsed: Box<dyn Fn() -> Duration>,
    ) -> Result<RepeatPolicy, StudyError> {
        let adaptive = match &plan.design.adaptive {
            None => None,
            Some(adaptive) => {
                let named = Metric::parse(&adaptive.metric)
                    .map_err(|error| StudyError::Request(error.to_string()))?;
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
        let mut course = RepeatPolicy {
            planned: Vec::new(),
            labels: BTreeMap::new(),
            done: kept.iter().filter(|run| !run.is_trial()).map(|run| run.ordinal).collect(),
            least: plan.repeats,
            adaptive,
            values: BTreeMap::new(),
            lacking: BTreeMap::new(),
            valid: BTreeMap::new(),
            decided: BTreeMap::new(),
            budget,
            units: BTreeMap::new(),
            unturned: Vec::new(),
        };
        for (_, step) in plan.steps() {
            course.planned.push((step.unit, step.repeat, step.estimate().seconds));
            course.units.insert(step.ordinal, step.unit);
            course.labels.entry(step.unit).or_insert_with(|| label(plan, step));
            if course.done.contains(&step.ordinal) {
                // What was begun is ended, so that no repeat has half a sequence.
                course.decided.insert((step.unit, step.repeat), Decision::Run);
            }
        }
        for run in kept.iter().filter(|run| !run.is_trial()) {
            course.take(run);
        }
        Ok(course)
    }

    /// What becomes of this run. The same for every run of one unit in one repeat.
    pub(crate) fn decide(&mut self, step: &Step) -> Decision {
        let key = (step.unit, step.repeat);
        if let Some(go) = self.decided.get(&key) {
            return *go;
        }
        let go = match self.has_enough(step.unit, step.repeat) {
            true => Decision::Skip,
            false => self.afford(step),
        };
        self.decided.insert(key, go);
        go
    }

    /// A run has ended.
    pub(crate) fn kept(&mut self, step: &Step, run: &Run) {
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
                self.lacking.insert(*unit, reason.to_string());
            }
        }
    }

    /// Whether a unit needs no further repeat: each of its workloads is known well enough (or
    /// its metric cannot be read, so that more of them would be in vain), or has as many valid runs
    /// as there are repeats.
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
        // Looked for in all that is planned: only where there is a budget.
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
        // As fast as until now, as far as that is known.
        let pace = if budget.done_s > 0.0 { elapsed / budget.done_s } else { 1.0 };
        let (seconds, units) = rest;
        if elapsed + seconds * pace <= budget.limit.as_secs_f64() || !cells_done {
            budget.fits.insert(step.repeat);
            return Decision::Run;
        }
        budget.spent_before = Some((step.repeat, units));
        Decision::Stop
    }

    /// What is decided on together: a whole repeat, but of the first only the next cell. In
    /// seconds, with the number of units that are left of the repeat.
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

    /// A trial of a calibration has ended, which takes of the budget too.
    pub(crate) fn tried(&mut self, step: &Step, run: &Run) {
        if let Some(budget) = &mut self.budget {
            budget.done_s += step.manner.seconds_before() + run.seconds;
        }
    }

    /// No maximum was found of which the rate of this step would be a share.
    pub(crate) fn uncalibrated(&mut self, step: &Step, why: &str) {
        let label = self.labels.get(&step.unit).map_or("", String::as_str);
        let note = format!("{} was not run on {label}: {why}", step.label);
        if !self.unturned.contains(&note) {
            self.unturned.push(note);
        }
    }

    /// The knobs could not be turned after all.
    pub(crate) fn unturned(&mut self, levels: &KnobLevels, why: &StudyError) {
        let levels: Vec<String> =
            levels.0.iter().map(|(knob, level)| format!("{knob}={level}")).collect();
        self.unturned.push(format!("nothing was run at {}: {why}", levels.join(", ")));
    }

    /// What was done otherwise than planned, in sentences; nothing if all was done as planned.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.unturned.clone();
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

    /// Spare repeats that were made, and where they were not enough.
    fn note_on_spares(&self) -> Vec<String> {
        let spare = |(unit, repeat): &(Unit, u32)| (*repeat > self.least).then_some(*unit);
        let made = self.decided.iter().filter(|(_, go)| **go == Decision::Run);
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
                "; {short} of them with fewer than {} valid runs even so: quieten the machine, or \
                 give `spare_repeats` of [design] more",
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
            match (widest, self.lacking.get(unit)) {
                (Some(width), None) if !widths.is_empty() && width <= adaptive.width => narrow += 1,
                (Some(width), None) if !widths.is_empty() => {
                    wide.push(format!("{label} is known to ±{:.1} %", width * 100.0));
                }
                (_, Some(reason)) => wide.push(format!("{label}: {reason}")),
                (..) => wide.push(format!("{label}: too few repeats for an interval")),
            }
        }
        let mut notes = vec![format!(
            "repeats went on until {} was within ±{percent:.1} % of its median: so it is in {narrow} \
             of {} cells",
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

/// A unit in words: its store and the levels of the factors.
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
mod tests;
