//! Runs that repeat each other, gathered: one cell is one configuration of one execution.
//!
//! A cell's category is what was asked (the workload), its series is who was asked (the
//! store, and every setting that tells two cells of the same store and workload apart).

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use model::{Distribution, Op, distribution};
use record::{Execution, LatencyClock, LoopKind, Run};

use crate::naming;

/// Settings that differ between repeats of the same thing.
pub(crate) const REPEAT_KEYS: [&str; 3] = ["repeat", "seed", "order"];
/// Settings that the pacing already tells.
const PACING_KEYS: [&str; 4] = ["rate", "arrivals", "loop", "think"];
/// Settings that say others again, at length.
const DERIVED_KEYS: [&str; 2] = ["workload.is", "workload.data_bytes"];

pub struct Cell<'a> {
    pub category: String,
    pub series: String,
    pub execution: &'a Execution,
    pub runs: Vec<&'a Run>,
}

impl<'a> Cell<'a> {
    /// The runs that count; all of them where none does, and then `false`.
    pub fn counted(&self) -> (Vec<&'a Run>, bool) {
        let valid: Vec<&Run> = self.runs.iter().copied().filter(|run| run.valid()).collect();
        if valid.is_empty() { (self.runs.clone(), false) } else { (valid, true) }
    }

    /// The median of `of` over the runs that count, where at least one has it.
    pub fn median(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        let (runs, _) = self.counted();
        let mut values: Vec<f64> = runs.into_iter().filter_map(of).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() {
            0 => None,
            n if n % 2 == 1 => Some(values[middle]),
            _ => Some((values[middle - 1] + values[middle]) / 2.0),
        }
    }

    /// Operations per second that were answered: the median over the runs that count.
    pub fn achieved(&self) -> Option<f64> {
        self.median(|run| Some(run.achieved_rate().unwrap_or_else(|| run.throughput())))
    }

    /// The clock that people mean here; one cell has one kind of loop.
    pub fn clock(&self) -> LatencyClock {
        self.runs[0].clock()
    }

    /// The kinds of operation that were asked.
    pub fn ops(&self) -> Vec<Op> {
        let clock = self.clock();
        Op::ALL
            .into_iter()
            .filter(|op| {
                self.runs.iter().any(|r| r.latency(*op, clock).is_some_and(|h| !h.is_empty()))
            })
            .collect()
    }

    /// The kind of operation that was asked most.
    pub fn main_op(&self) -> Option<Op> {
        let count = |op: &Op| -> u64 {
            let clock = self.clock();
            let counted = self.runs.iter().filter_map(|run| run.latency(*op, clock));
            record::total(counted.map(Distribution::len))
        };
        // Of two equally frequent ones the first: reads before updates.
        self.ops().into_iter().rev().max_by_key(count)
    }

    /// The distributions of the runs that count, added up.
    pub fn merged(&self, op: Op, clock: LatencyClock) -> Option<Histogram<u64>> {
        let (runs, _) = self.counted();
        let sum = distribution::sum(runs.into_iter().filter_map(|run| run.latency(op, clock)));
        (!sum.is_empty()).then_some(sum)
    }

    /// The distributions of all operations of the runs that count, added up.
    pub fn merged_all(&self, clock: LatencyClock) -> Option<Histogram<u64>> {
        let (runs, _) = self.counted();
        let all = runs.into_iter().flat_map(|run| &run.latencies);
        let of = all.filter(|latency| latency.clock == clock);
        let sum = distribution::sum(of.map(|latency| &latency.histogram));
        (!sum.is_empty()).then_some(sum)
    }
}

/// All cells, in the order in which their first run was planned.
pub fn cells<'a>(runs: &[(&'a Execution, &'a Run)]) -> Vec<Cell<'a>> {
    let mut order: Vec<String> = Vec::new();
    let mut gathered: BTreeMap<String, (&'a Execution, Vec<&'a Run>)> = BTreeMap::new();
    for (execution, run) in runs {
        let key = key(execution, run, &format!("{:?}", run.pacing), &REPEAT_KEYS);
        let entry = gathered.entry(key.clone()).or_insert_with(|| {
            order.push(key);
            (*execution, Vec::new())
        });
        entry.1.push(run);
    }
    let mut cells: Vec<Cell> = order
        .iter()
        .filter_map(|key| gathered.remove(key))
        .map(|(execution, runs)| Cell {
            category: naming::workload(runs[0]).to_owned(),
            series: naming::store(runs[0]).to_owned(),
            execution,
            runs,
        })
        .collect();
    tell_apart(&mut cells, &Factor::Pacing);
    cells
}

/// What runs that are gathered have in common, but for the settings in `but`.
pub(crate) fn key(execution: &Execution, run: &Run, pacing: &str, but: &[&str]) -> String {
    let threads = run.threads.to_string();
    let settings = run
        .settings
        .iter()
        .filter(|(key, _)| !but.contains(&key.as_str()))
        .flat_map(|(key, value)| [key.as_str(), value]);
    let phase = match run.phase {
        record::Phase::Load => "load",
        record::Phase::Measure => "measure",
        record::Phase::Simulate => "simulate",
    };
    let own = [execution.id.as_str(), phase, &threads, &run.store_version, pacing];
    let mut key = String::new();
    for part in own.into_iter().chain(settings) {
        key.push_str(part);
        key.push('\u{0}');
    }
    key
}

/// `ycsb-a on rocksdb`.
pub fn title(cell: &Cell) -> String {
    format!("{} on {}", cell.category, cell.series)
}

/// Each name once, in order of appearance.
pub fn distinct<'c, 'a: 'c>(
    cells: &'c [Cell<'a>],
    name: impl Fn(&'c Cell<'a>) -> &'c str,
) -> Vec<String> {
    let mut seen = BTreeSet::new();
    cells.iter().map(name).filter(|n| seen.insert(*n)).map(str::to_owned).collect()
}

/// Where two cells would have the same series and category, says in the series what differs.
/// `pacing` is how their loops do: [`Factor::Pacing`], or [`Factor::Manner`] where the rate is
/// not part of what a cell is.
pub(crate) fn tell_apart(cells: &mut [Cell], pacing: &Factor) {
    let mut twins: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (i, cell) in cells.iter().enumerate() {
        twins.entry((cell.series.clone(), cell.category.clone())).or_default().push(i);
    }
    let mut groups: BTreeMap<String, Vec<Vec<&Cell>>> = BTreeMap::new();
    for ((series, _), members) in twins {
        groups.entry(series).or_default().push(members.iter().map(|i| &cells[*i]).collect());
    }
    let mut factors: BTreeMap<String, BTreeSet<Factor>> =
        groups.into_iter().map(|(series, groups)| (series, telling(groups, pacing))).collect();
    // Where loops differ anywhere, every series says which it is: a closed one too.
    if factors.values().any(|found| found.contains(&Factor::Pacing)) {
        for cell in cells.iter() {
            factors.entry(cell.series.clone()).or_default().insert(Factor::Pacing);
        }
    }
    for cell in cells {
        let Some(found) = factors.get(&cell.series) else { continue };
        let parts: Vec<String> = found.iter().filter_map(|factor| factor.of(cell)).collect();
        if !parts.is_empty() {
            cell.series = format!("{}, {}", cell.series, parts.join(", "));
        }
    }
}

/// Of all in which cells of a group differ, the first that leave no two of them alike.
fn telling(mut groups: Vec<Vec<&Cell>>, pacing: &Factor) -> BTreeSet<Factor> {
    let mut differing = BTreeSet::new();
    for group in &groups {
        // Where any two differ, one of them differs from the first.
        let Some((first, others)) = group.split_first() else { continue };
        differing.extend(others.iter().flat_map(|other| differences(first, other, pacing)));
    }
    let mut telling = BTreeSet::new();
    for factor in differing {
        let mut parts = Vec::new();
        for group in &groups {
            let mut by_value: BTreeMap<Option<String>, Vec<&Cell>> = BTreeMap::new();
            for cell in group {
                by_value.entry(factor.of(cell)).or_default().push(cell);
            }
            parts.extend(by_value.into_values());
        }
        if parts.len() > groups.len() {
            telling.insert(factor);
            groups = parts;
        }
    }
    // Arrivals mean nothing without their rate.
    if telling.contains(&Factor::Manner) {
        telling.insert(pacing.clone());
    }
    telling
}

/// In the order in which they are tried and written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Factor {
    Version,
    Threads,
    Pacing,
    /// What the short name of a loop leaves out: its arrivals, its pauses.
    Manner,
    Setting(String),
    Machine,
    /// Follows from other settings, or says them at length.
    Derived(String),
    Execution,
}

impl Factor {
    fn of(&self, cell: &Cell) -> Option<String> {
        let run = cell.runs[0];
        match self {
            Factor::Version => Some(run.store_version.clone()),
            Factor::Threads => {
                Some(format!("{} thread{}", run.threads, if run.threads == 1 { "" } else { "s" }))
            }
            Factor::Pacing => Some(naming::pacing_short(&run.pacing)),
            Factor::Manner => match &run.pacing {
                LoopKind::Open { arrivals, .. } => Some(arrivals.clone()),
                LoopKind::Closed { think_s } if *think_s > 0.0 => {
                    Some(format!("{} think", crate::format::seconds(*think_s)))
                }
                LoopKind::Closed { .. } => None,
            },
            Factor::Setting(key) | Factor::Derived(key) => run.settings.get(key).map(|value| {
                let key = key.strip_prefix("store.").unwrap_or(key);
                format!("{} {value}", key.strip_prefix("workload.").unwrap_or(key))
            }),
            Factor::Machine => Some(format!("machine {}", cell.execution.machine.id)),
            Factor::Execution => Some(format!("begun {}", cell.execution.started_at)),
        }
    }
}

fn differences(a: &Cell, b: &Cell, pacing: &Factor) -> BTreeSet<Factor> {
    let (x, y) = (a.runs[0], b.runs[0]);
    let mut found = BTreeSet::new();
    if x.store_version != y.store_version {
        found.insert(Factor::Version);
    }
    if x.threads != y.threads {
        found.insert(Factor::Threads);
    }
    if x.pacing != y.pacing {
        found.extend([pacing.clone(), Factor::Manner]);
    }
    for key in x.settings.keys().chain(y.settings.keys()) {
        let told = key == "threads"
            || REPEAT_KEYS.contains(&key.as_str())
            || PACING_KEYS.contains(&key.as_str());
        if !told && x.settings.get(key) != y.settings.get(key) {
            let derived = DERIVED_KEYS.contains(&key.as_str());
            let factor = if derived { Factor::Derived } else { Factor::Setting };
            found.insert(factor(key.clone()));
        }
    }
    if a.execution.machine.id != b.execution.machine.id {
        found.insert(Factor::Machine);
    }
    if a.execution.id != b.execution.id {
        found.insert(Factor::Execution);
    }
    found
}
