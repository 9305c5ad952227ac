//! Runs that differ in the rate alone: what becomes of latency as load rises.

use std::collections::{BTreeSet, HashMap};

use record::{Execution, LoopKind, Run};

use crate::cells::{self, Cell, Factor};
use crate::naming;

/// Two rates are two runs; from three on they are a curve.
const LEAST_RATES: usize = 3;
/// The setting that a curve runs along, and those that say how long each of its runs took.
const ALONG: [&str; 3] = ["rate", "time", "operations"];
/// The setting that holds the objective which the latencies are to keep.
const OBJECTIVE_KEY: &str = "slo";

/// One store under one workload at several rates.
pub struct Curve<'a> {
    pub category: String,
    /// The store, and what tells it from others on the same figure.
    pub series: String,
    /// One cell a rate, rising.
    pub points: Vec<Cell<'a>>,
}

impl<'a> Curve<'a> {
    /// By rising rate.
    pub fn runs(&self) -> impl Iterator<Item = &'a Run> {
        self.points.iter().flat_map(|cell| cell.runs.iter().copied())
    }

    /// The objective that its runs were to hold, where they had one that can be read.
    pub fn objective(&self) -> Option<analyse::slo::Objective> {
        let first = self.points.first()?.runs.first()?;
        first.settings.get(OBJECTIVE_KEY)?.parse().ok()
    }
}

/// All curves, in the order in which their first run was planned.
pub fn curves<'a>(runs: &[(&'a Execution, &'a Run)]) -> Vec<Curve<'a>> {
    let mut but = cells::REPEAT_KEYS.to_vec();
    but.extend(ALONG);
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut whole: Vec<Cell> = Vec::new();
    for (execution, run) in runs {
        let LoopKind::Open { arrivals, .. } = &run.pacing else { continue };
        let key = cells::key(execution, run, arrivals, &but);
        let place = *places.entry(key).or_insert(whole.len());
        if place == whole.len() {
            let category = naming::workload(run).to_owned();
            let series = naming::store(run).to_owned();
            whole.push(Cell { category, series, execution, runs: Vec::new() });
        }
        whole[place].runs.push(run);
    }
    whole.retain(|cell| rates(cell).len() >= LEAST_RATES);
    cells::tell_apart(&mut whole, &Factor::Manner);
    whole.into_iter().map(curve).collect()
}

/// The runs that are points of a curve, by their ids.
pub fn swept<'r>(runs: &[(&'r Execution, &'r Run)]) -> BTreeSet<&'r str> {
    curves(runs).iter().flat_map(Curve::runs).map(|run| run.id.as_str()).collect()
}

/// The same runs, those of a curve together and by rising rate, where the first of them was:
/// they may have been measured in any order.
pub fn in_order<'a>(runs: &[(&'a Execution, &'a Run)]) -> Vec<(&'a Execution, &'a Run)> {
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

fn curve(whole: Cell<'_>) -> Curve<'_> {
    let mut runs = whole.runs;
    // A stable order: repeats of a rate stay as they were planned.
    runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    let same = runs.chunk_by(|a, b| rate(a) == rate(b));
    let points = same.map(|runs| Cell {
        category: whole.category.clone(),
        series: whole.series.clone(),
        execution: whole.execution,
        runs: runs.to_vec(),
    });
    Curve { points: points.collect(), category: whole.category, series: whole.series }
}

fn rate(run: &Run) -> f64 {
    run.target_rate().unwrap_or_default()
}

/// The rates that were asked, rising, each once.
fn rates(cell: &Cell) -> Vec<f64> {
    let mut rates: Vec<f64> = cell.runs.iter().filter_map(|run| run.target_rate()).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
}
