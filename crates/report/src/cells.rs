//! Repeated runs grouped into cells: one cell is one configuration of one execution.
//!
//! A cell's category is the workload, its series is the store with the settings that distinguish
//! cells of the same store and workload.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hdrhistogram::Histogram;
use model::{Distribution, Execution, LatencyClock, LoopKind, Op, Phase, Run, distribution};

use crate::run_names;

/// Settings that are part of the pacing.
const PACING_KEYS: [&str; 4] = ["rate", "arrivals", "loop", "think"];
/// Settings derived from others.
const DERIVED_KEYS: [&str; 3] = ["workload.is", "workload.data_bytes", Run::SURVIVES];

pub struct ReportCell<'a> {
    pub category: String,
    pub series: String,
    pub execution: &'a Execution,
    pub runs: Vec<&'a Run>,
}

impl<'a> ReportCell<'a> {
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

    /// Achieved operations per second: the median over the runs that count.
    pub fn achieved(&self) -> Option<f64> {
        self.median(|run| Some(run.achieved_rate().unwrap_or_else(|| run.throughput())))
    }

    /// The clock that is shown by default; one cell has one kind of loop.
    pub fn clock(&self) -> LatencyClock {
        self.runs[0].clock()
    }

    /// The kinds of operation that occurred.
    pub fn ops(&self) -> Vec<Op> {
        let clock = self.clock();
        Op::ALL
            .into_iter()
            .filter(|op| {
                self.runs.iter().any(|r| r.latency(*op, clock).is_some_and(|h| !h.is_empty()))
            })
            .collect()
    }

    /// The most frequent kind of operation.
    pub fn main_op(&self) -> Option<Op> {
        let count = |op: &Op| -> u64 {
            let clock = self.clock();
            let counted = self.runs.iter().filter_map(|run| run.latency(*op, clock));
            model::total(counted.map(Distribution::len))
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
pub fn cells<'a>(runs: &[(&'a Execution, &'a Run)]) -> Vec<ReportCell<'a>> {
    let mut cells = group(runs, |run| Some(CellKey::new(run, PacingKey::of(&run.pacing), &[])));
    disambiguate(&mut cells, &ReportFactor::Pacing);
    cells
}

/// Runs with the same execution and key as one cell, in the order of their first runs; those
/// without a key are left out.
pub(crate) fn group<'a>(
    runs: &[(&'a Execution, &'a Run)],
    key: impl Fn(&'a Run) -> Option<CellKey<'a>>,
) -> Vec<ReportCell<'a>> {
    group_within(runs, |execution| &execution.id, key)
}

/// The same, of everything that has the same `scope`: the execution, or the machine.
pub(crate) fn group_within<'a>(
    runs: &[(&'a Execution, &'a Run)],
    scope: impl Fn(&'a Execution) -> &'a str,
    key: impl Fn(&'a Run) -> Option<CellKey<'a>>,
) -> Vec<ReportCell<'a>> {
    let mut positions: HashMap<(&str, CellKey), usize> = HashMap::new();
    let mut cells: Vec<ReportCell> = Vec::new();
    for (execution, run) in runs {
        let Some(key) = key(run) else { continue };
        let position = *positions.entry((scope(execution), key)).or_insert(cells.len());
        if position == cells.len() {
            let category = run_names::workload(run).to_owned();
            let series = run_names::store(run).to_owned();
            cells.push(ReportCell { category, series, execution, runs: Vec::new() });
        }
        cells[position].runs.push(run);
    }
    cells
}

/// What runs of one cell have in common.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct CellKey<'a> {
    phase: Phase,
    threads: u32,
    store_version: &'a str,
    pacing: PacingKey<'a>,
    settings: Vec<(&'a str, &'a str)>,
}

/// How requests were issued. Numbers are kept as their bits, which can be compared.
#[derive(PartialEq, Eq, Hash)]
pub(crate) enum PacingKey<'a> {
    Closed {
        think_s: u64,
    },
    Open {
        rate_ops_s: u64,
        arrivals: &'a str,
    },
    /// Open loops of whatever rate.
    AnyRate {
        arrivals: &'a str,
    },
}

impl<'a> CellKey<'a> {
    /// All settings count except those of repeats and those in `but`.
    pub(crate) fn new(run: &'a Run, pacing: PacingKey<'a>, but: &[&str]) -> CellKey<'a> {
        let settings = run.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        CellKey {
            phase: run.phase,
            threads: run.threads,
            store_version: &run.store_version,
            pacing,
            settings: settings
                .filter(|(key, _)| !Run::REPEAT_SETTINGS.contains(key) && !but.contains(key))
                .collect(),
        }
    }
}

impl<'a> CellKey<'a> {
    /// The same of any version of the store.
    pub(crate) fn across_versions(
        run: &'a Run,
        pacing: PacingKey<'a>,
        but: &[&str],
    ) -> CellKey<'a> {
        CellKey { store_version: "", ..CellKey::new(run, pacing, but) }
    }
}

impl<'a> PacingKey<'a> {
    pub(crate) fn of(pacing: &'a LoopKind) -> PacingKey<'a> {
        match pacing {
            LoopKind::Closed { think_s } => PacingKey::Closed { think_s: think_s.to_bits() },
            LoopKind::Open { rate_ops_s, arrivals } => {
                PacingKey::Open { rate_ops_s: rate_ops_s.to_bits(), arrivals }
            }
        }
    }
}

/// `ycsb-a on rocksdb`.
pub fn title(cell: &ReportCell) -> String {
    format!("{} on {}", cell.category, cell.series)
}

/// Each name once, in order of appearance.
pub fn distinct<'c, 'a: 'c>(
    cells: &'c [ReportCell<'a>],
    name: impl Fn(&'c ReportCell<'a>) -> &'c str,
) -> Vec<String> {
    let mut seen = BTreeSet::new();
    cells.iter().map(name).filter(|n| seen.insert(*n)).map(str::to_owned).collect()
}

/// Adds what differs to the series of cells that would have the same series and category. `pacing`
/// is how loops are compared: [`ReportFactor::Pacing`], or [`ReportFactor::LoopDetails`] where a
/// cell spans several rates.
pub(crate) fn disambiguate(cells: &mut [ReportCell], pacing: &ReportFactor) {
    let mut twins: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (i, cell) in cells.iter().enumerate() {
        twins.entry((cell.series.clone(), cell.category.clone())).or_default().push(i);
    }
    let mut groups: BTreeMap<String, Vec<Vec<&ReportCell>>> = BTreeMap::new();
    for ((series, _), members) in twins {
        groups.entry(series).or_default().push(members.iter().map(|i| &cells[*i]).collect());
    }
    let mut factors: BTreeMap<String, BTreeSet<ReportFactor>> = groups
        .into_iter()
        .map(|(series, groups)| (series, distinguishing_factors(groups, pacing)))
        .collect();
    // If loops differ anywhere, every series names its own, even a closed one.
    if factors.values().any(|result| result.contains(&ReportFactor::Pacing)) {
        for cell in cells.iter() {
            factors.entry(cell.series.clone()).or_default().insert(ReportFactor::Pacing);
        }
    }
    for cell in cells {
        let Some(result) = factors.get(&cell.series) else { continue };
        let parts: Vec<String> = result.iter().filter_map(|factor| factor.of(cell)).collect();
        if !parts.is_empty() {
            cell.series = format!("{}, {}", cell.series, parts.join(", "));
        }
    }
}

/// Of all factors in which cells of a group differ, the first that distinguish all of them.
fn distinguishing_factors(
    mut groups: Vec<Vec<&ReportCell>>,
    pacing: &ReportFactor,
) -> BTreeSet<ReportFactor> {
    let mut differing = BTreeSet::new();
    for group in &groups {
        // If any two differ, one of them differs from the first.
        let Some((first, others)) = group.split_first() else { continue };
        differing.extend(others.iter().flat_map(|other| differences(first, other, pacing)));
    }
    let mut telling = BTreeSet::new();
    for factor in differing {
        let mut parts = Vec::new();
        for group in &groups {
            let mut by_value: BTreeMap<Option<String>, Vec<&ReportCell>> = BTreeMap::new();
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
    if telling.contains(&ReportFactor::LoopDetails) {
        telling.insert(pacing.clone());
    }
    telling
}

/// Factors in the order in which they are tried and written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReportFactor {
    Version,
    Threads,
    Pacing,
    /// Details that the short name of a loop omits: arrivals, think time.
    LoopDetails,
    Setting(String),
    Machine,
    /// Derived from other settings.
    Derived(String),
    Execution,
}

impl ReportFactor {
    fn of(&self, cell: &ReportCell) -> Option<String> {
        let run = cell.runs[0];
        match self {
            ReportFactor::Version => Some(run.store_version.clone()),
            ReportFactor::Threads => {
                Some(format!("{} thread{}", run.threads, if run.threads == 1 { "" } else { "s" }))
            }
            ReportFactor::Pacing => Some(run_names::pacing_short(&run.pacing)),
            ReportFactor::LoopDetails => match &run.pacing {
                LoopKind::Open { arrivals, .. } => Some(arrivals.clone()),
                LoopKind::Closed { think_s } if *think_s > 0.0 => {
                    Some(format!("{} think", crate::format::seconds(*think_s)))
                }
                LoopKind::Closed { .. } => None,
            },
            ReportFactor::Setting(key) | ReportFactor::Derived(key) => {
                run.settings.get(key).map(|value| {
                    let key = key.strip_prefix("store.").unwrap_or(key);
                    format!("{} {value}", key.strip_prefix("workload.").unwrap_or(key))
                })
            }
            ReportFactor::Machine => Some(format!("machine {}", cell.execution.machine.id)),
            ReportFactor::Execution => Some(format!("begun {}", cell.execution.started_at)),
        }
    }
}

fn differences(a: &ReportCell, b: &ReportCell, pacing: &ReportFactor) -> BTreeSet<ReportFactor> {
    let (x, y) = (a.runs[0], b.runs[0]);
    let mut result = BTreeSet::new();
    if x.store_version != y.store_version {
        result.insert(ReportFactor::Version);
    }
    if x.threads != y.threads {
        result.insert(ReportFactor::Threads);
    }
    if x.pacing != y.pacing {
        result.extend([pacing.clone(), ReportFactor::LoopDetails]);
    }
    for key in x.settings.keys().chain(y.settings.keys()) {
        let covered = key == "threads"
            || Run::REPEAT_SETTINGS.contains(&key.as_str())
            || PACING_KEYS.contains(&key.as_str());
        if !covered && x.settings.get(key) != y.settings.get(key) {
            let derived = DERIVED_KEYS.contains(&key.as_str());
            let factor = if derived { ReportFactor::Derived } else { ReportFactor::Setting };
            result.insert(factor(key.clone()));
        }
    }
    if a.execution.machine.id != b.execution.machine.id {
        result.insert(ReportFactor::Machine);
    }
    if a.execution.id != b.execution.id {
        result.insert(ReportFactor::Execution);
    }
    result
}
