//! Runs that differ only in the rate: curves of latency over load.

use std::collections::{BTreeSet, HashMap};

use model::{Execution, LoopKind, Run};

use crate::cells::{self, CellKey, PacingKey, ReportCell, ReportFactor};

/// The fewest rates of a curve.
const MIN_RATES: usize = 3;
/// The settings that differ between points of a curve: the rate, and the length of a run.
const CURVE_KEYS: [&str; 3] = ["rate", "time", "operations"];
/// The setting that holds the latency objective.
const OBJECTIVE_KEY: &str = "slo";

/// One store under one workload at several rates.
pub struct RateCurve<'a> {
    pub category: String,
    /// The store, and what distinguishes it in the figure.
    pub series: String,
    /// One cell a rate, rising.
    pub points: Vec<ReportCell<'a>>,
}

impl<'a> RateCurve<'a> {
    /// By rising rate.
    pub fn runs(&self) -> impl Iterator<Item = &'a Run> {
        self.points.iter().flat_map(|cell| cell.runs.iter().copied())
    }

    /// The latency objective of its runs, if they have a valid one.
    pub fn objective(&self) -> Option<analyse::slo::Objective> {
        let first = self.points.first()?.runs.first()?;
        first.settings.get(OBJECTIVE_KEY)?.parse().ok()
    }
}

/// The settings of a search, which its trials have beside those of what they measure.
const SEARCH_KEYS: [&str; 3] = ["search", OBJECTIVE_KEY, Run::TRIAL_FOR];

/// Open loops of one machine that differ only in the rate, as one cell each: searches, sweeps, and
/// their repeats in whatever execution. In the order in which their first run was planned.
pub fn open_loops<'a>(runs: &[(&'a Execution, &'a Run)]) -> Vec<ReportCell<'a>> {
    let besides: Vec<&str> = CURVE_KEYS.into_iter().chain(SEARCH_KEYS).collect();
    let scope = |execution: &'a Execution| execution.machine.id.as_str();
    let mut whole = cells::group_within(runs, scope, |run| match &run.pacing {
        LoopKind::Open { arrivals, .. } => {
            Some(CellKey::new(run, PacingKey::AnyRate { arrivals }, &besides))
        }
        LoopKind::Closed { .. } => None,
    });
    cells::disambiguate(&mut whole, &ReportFactor::LoopDetails);
    whole
}

/// All curves, in the order in which their first run was planned.
pub fn curves<'a>(runs: &[(&'a Execution, &'a Run)]) -> Vec<RateCurve<'a>> {
    let mut whole = cells::group(runs, |run| match &run.pacing {
        LoopKind::Open { arrivals, .. } => {
            Some(CellKey::new(run, PacingKey::AnyRate { arrivals }, &CURVE_KEYS))
        }
        LoopKind::Closed { .. } => None,
    });
    whole.retain(|cell| rates(cell).len() >= MIN_RATES);
    cells::disambiguate(&mut whole, &ReportFactor::LoopDetails);
    whole.into_iter().map(curve).collect()
}

/// The ids of the runs that are points of a curve.
pub fn run_ids<'r>(runs: &[(&'r Execution, &'r Run)]) -> BTreeSet<&'r str> {
    curves(runs).iter().flat_map(RateCurve::runs).map(|run| run.id.as_str()).collect()
}

/// The runs with those of a curve together and by rising rate, in place of the first of them.
pub fn curves_together<'a>(runs: &[(&'a Execution, &'a Run)]) -> Vec<(&'a Execution, &'a Run)> {
    let curves = curves(runs);
    let mut of: HashMap<&str, usize> = HashMap::new();
    for (nth, curve) in curves.iter().enumerate() {
        of.extend(curve.runs().map(|run| (run.id.as_str(), nth)));
    }
    let mut ordered: Vec<(&Execution, &Run)> = Vec::with_capacity(runs.len());
    let mut drawn: BTreeSet<usize> = BTreeSet::new();
    for (execution, run) in runs {
        match of.get(run.id.as_str()) {
            Some(nth) if drawn.insert(*nth) => {
                ordered.extend(curves[*nth].runs().map(|point| (*execution, point)));
            }
            Some(_) => {}
            None => ordered.push((execution, run)),
        }
    }
    ordered
}

fn curve(whole: ReportCell<'_>) -> RateCurve<'_> {
    let mut runs = whole.runs;
    // A stable sort keeps repeats of a rate in their order.
    runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    let same = runs.chunk_by(|a, b| rate(a) == rate(b));
    let points = same.map(|runs| ReportCell {
        category: whole.category.clone(),
        series: whole.series.clone(),
        execution: whole.execution,
        runs: runs.to_vec(),
    });
    RateCurve { points: points.collect(), category: whole.category, series: whole.series }
}

fn rate(run: &Run) -> f64 {
    run.target_rate().unwrap_or_default()
}

/// The target rates, rising, each once.
fn rates(cell: &ReportCell) -> Vec<f64> {
    let mut rates: Vec<f64> = cell.runs.iter().filter_map(|run| run.target_rate()).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
}
