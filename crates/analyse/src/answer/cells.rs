//! Cells of a design: the levels that distinguish them, and the values of their runs.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use model::design::{FactorLevels, setting_of};
use model::{Design, Execution, Origin, Phase, Run, Scope};

use super::MetricInfo;
use super::unanswered::{AnswerResult, Unanswered};
use super::words::{ELSEWHERE, levels_words};
use crate::compare::{RunWork, WorkDifference, largest_differences, work_differences};
use crate::effect::CellObservations;
use crate::efficiency::widest_first;
use crate::metric::{Metric, RunField};
use crate::runs::CellRuns;

/// Settings that distinguish cells in every study, after its factors.
const COMMON_NAMES: [&str; 3] = ["machine", "store", "workload"];

/// A run with its settings, the machine among them.
#[derive(Debug, Clone, PartialEq)]
pub struct RunWithSettings<'a> {
    pub run: &'a Run,
    machine: Arc<str>,
    /// Set if the settings lack it.
    threads: Option<String>,
}

impl<'a> RunWithSettings<'a> {
    /// `machine` is among the run's settings, so that conditions, axes and factors may name it,
    /// and `threads` where they lack it.
    pub fn new(execution: &'a Execution, run: &'a Run) -> RunWithSettings<'a> {
        RunWithSettings::on_machine(execution.machine.id.as_str().into(), run)
    }

    /// As [`RunWithSettings::new`], with a name of the machine in place of its id.
    pub fn on_machine(machine: Arc<str>, run: &'a Run) -> RunWithSettings<'a> {
        let lacks = !run.settings.contains_key("threads");
        let threads = lacks.then(|| run.threads.to_string());
        RunWithSettings { run, machine, threads }
    }

    /// The level of a factor of this name, else the setting of this name.
    pub fn level(&self, name: &str) -> Option<&str> {
        self.level_of(&setting_of(name), name)
    }

    fn level_of(&self, factor: &str, name: &str) -> Option<&str> {
        let own = |name| self.run.settings.get(name).map(String::as_str);
        own(factor).or_else(|| match name {
            "machine" => Some(&self.machine),
            "threads" => own(name).or(self.threads.as_deref()),
            _ => own(name),
        })
    }
}

/// One cell: its levels and the values of its valid runs.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerCell {
    pub at: FactorLevels,
    /// One row a run that has every metric, in the order of the metrics.
    pub values: Vec<Vec<f64>>,
    /// The same, one column a metric.
    pub runs: Vec<CellRuns>,
    /// The work of each run.
    pub work: Vec<RunWork>,
}

/// One combination of what is given.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GivenLevels {
    /// In words: `rate 10k`; empty where nothing given varies.
    pub words: String,
    pub at: FactorLevels,
    /// The positions of its cells.
    pub cells: Vec<usize>,
}

/// The cells of some runs with their values of some metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct CellValues {
    pub metrics: Vec<MetricInfo>,
    /// The names that may distinguish cells: the factors in the study's order, then the settings.
    pub names: Vec<String>,
    /// In the order of their levels.
    pub cells: Vec<AnswerCell>,
    /// Why runs have no value, each reason once with the number of runs.
    pub missing: Vec<(String, usize)>,
}

/// The cells of these runs: one for each combination of the design's factors, the machine, the
/// store, the workload and the settings in `by`. Load phases count only if there are no other runs,
/// or if `by` names the workload or the phase.
///
/// Errors: a metric that no figure has, or that no valid run has; readings of different boundary or
/// origin, which are not compared.
pub fn gather(
    design: &Design,
    runs: &[&RunWithSettings<'_>],
    metrics: &[&str],
    by: &[&str],
) -> AnswerResult<CellValues> {
    let measures = runs.iter().any(|run| run.run.phase != Phase::Load);
    let loads = !measures || by.contains(&"workload") || by.contains(&"phase");
    let mut gatherer = CellGatherer::new(metrics, dimensions(design, by))?;
    for run in runs {
        if run.run.valid() && (loads || run.run.phase != Phase::Load) {
            gatherer.add(run);
        }
    }
    gatherer.finish(design)
}

/// Sorts runs into their cells.
struct CellGatherer<'a> {
    metrics: Vec<GatheredMetric>,
    /// The names that may distinguish cells, and the settings of factors of these names.
    names: Vec<String>,
    factors: Vec<String>,
    /// The position of the cell with these levels.
    positions: HashMap<Vec<Option<&'a str>>, usize>,
    cells: Vec<AnswerCell>,
    missing: Vec<(String, usize)>,
    /// The first run that has every metric.
    first: Option<&'a Run>,
}

/// A metric, and of what kinds its values are.
struct GatheredMetric {
    name: String,
    metric: Metric,
    kinds: Vec<(Scope, Origin, String)>,
}

impl<'a> CellGatherer<'a> {
    fn new(metrics: &[&str], names: Vec<String>) -> AnswerResult<CellGatherer<'a>> {
        let gathered = |name: &&str| {
            let wrong =
                |error: crate::metric::MetricError| Unanswered::NotEnough(error.to_string());
            let metric = Metric::parse(name).map_err(wrong)?;
            Ok::<_, Unanswered>(GatheredMetric {
                name: (*name).to_owned(),
                metric,
                kinds: Vec::new(),
            })
        };
        Ok(CellGatherer {
            metrics: metrics.iter().map(gathered).collect::<Result<_, _>>()?,
            factors: names.iter().map(|name| setting_of(name)).collect(),
            names,
            positions: HashMap::new(),
            cells: Vec::new(),
            missing: Vec::new(),
            first: None,
        })
    }

    /// Adds a run to its cell, or the reason why it has no value.
    fn add(&mut self, run: &'a RunWithSettings<'_>) {
        let values: Result<Vec<f64>, _> =
            self.metrics.iter().map(|of| of.metric.value(run.run)).collect();
        match values {
            Ok(values) => self.add_values(run, values),
            Err(why) => {
                let why = why.to_string();
                match self.missing.iter_mut().find(|(known, _)| *known == why) {
                    Some((_, count)) => *count += 1,
                    None => self.missing.push((why, 1)),
                }
            }
        }
    }

    fn add_values(&mut self, run: &'a RunWithSettings<'_>, values: Vec<f64>) {
        self.first = self.first.or(Some(run.run));
        for of in &mut self.metrics {
            of.note_kind(run.run);
        }
        let position = self.position(run);
        let cell = &mut self.cells[position];
        for ((runs, value), of) in cell.runs.iter_mut().zip(&values).zip(&self.metrics) {
            runs.push(*value, &of.metric, run.run);
        }
        cell.values.push(values);
        cell.work.push(RunWork::of(run.run));
    }

    /// The position of a run's cell, which may be new.
    fn position(&mut self, run: &'a RunWithSettings<'_>) -> usize {
        let names = self.names.iter().zip(&self.factors);
        let levels: Vec<Option<&str>> =
            names.map(|(name, factor)| run.level_of(factor, name)).collect();
        let next = self.cells.len();
        *self.positions.entry(levels).or_insert_with_key(|levels| {
            let at = self.names.iter().zip(levels);
            let at = at.filter_map(|(name, level)| Some((name.clone(), (*level)?.to_owned())));
            let runs = vec![CellRuns::default(); self.metrics.len()];
            let (values, work) = (Vec::new(), Vec::new());
            self.cells.push(AnswerCell { at: at.collect(), values, runs, work });
            next
        })
    }

    fn finish(self, design: &Design) -> AnswerResult<CellValues> {
        let Some(first) = self.first else {
            return Err(match self.missing.first() {
                Some((why, _)) => Unanswered::NotMeasurable(why.clone()),
                None => Unanswered::NotEnough("no valid run counts here".to_owned()),
            });
        };
        for of in &self.metrics {
            of.check_one_kind()?;
        }
        let metrics = self.metrics.into_iter().map(|of| MetricInfo {
            name: of.name,
            unit: of.metric.unit(Some(first)).unwrap_or_default().to_owned(),
            direction: of.metric.direction(),
            provenance: provenance(&of.metric, first),
        });
        let (names, mut cells, missing) = (self.names, self.cells, self.missing);
        cells.sort_by(|a, b| a.at.cmp(&b.at));
        let mut gathered = CellValues { metrics: metrics.collect(), names, cells, missing };
        gathered.sort(design);
        Ok(gathered)
    }
}

impl GatheredMetric {
    /// Notes boundary, origin and unit of a run's value.
    fn note_kind(&mut self, run: &Run) {
        if let Some((scope, origin)) = provenance(&self.metric, run) {
            let unit = self.metric.unit(Some(run)).unwrap_or_default();
            let kind = (scope, origin, unit.to_owned());
            if !self.kinds.contains(&kind) {
                self.kinds.push(kind);
            }
        }
    }

    fn check_one_kind(&self) -> AnswerResult<()> {
        if self.kinds.len() < 2 {
            return Ok(());
        }
        let kinds = self.kinds.iter().map(|(scope, origin, _)| format!("{scope}, {origin}"));
        let mut kinds: Vec<String> = kinds.collect();
        kinds.sort();
        Err(Unanswered::NotEnough(format!(
            "the values of `{}` differ in scope or origin, and are not compared: {}",
            self.name,
            kinds.join(" against ")
        )))
    }
}

/// Each respect once, among pairs of the same workload.
fn other_work<'a>(
    pairs: impl Iterator<Item = (&'a AnswerCell, &'a AnswerCell)>,
) -> Vec<WorkDifference> {
    let same = pairs.filter(|(a, b)| a.at.get("workload") == b.at.get("workload"));
    largest_differences(same.flat_map(|(a, b)| work_differences(&a.work, &b.work)))
}

/// All names that may distinguish cells, each once.
fn dimensions(design: &Design, by: &[&str]) -> Vec<String> {
    let factors = design.factors.iter().map(|factor| factor.name.as_str());
    let mut names: Vec<String> = Vec::new();
    for name in factors.chain(COMMON_NAMES).chain(by.iter().copied()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The boundary and origin of a figure that is a reading or made of one.
pub fn provenance(named: &Metric, run: &Run) -> Option<(Scope, Origin)> {
    let reading = match named {
        Metric::Signal(signal) => run.reading(signal)?,
        Metric::Field(RunField::Power) => widest_first(&run.readings, "energy").first()?.1,
        _ => return None,
    };
    Some((reading.scope, reading.origin))
}

impl CellValues {
    /// The cells with their values of one metric.
    pub fn observed(&self, metric: usize) -> Vec<CellObservations> {
        let of = |cell: &AnswerCell| CellObservations {
            at: cell.at.clone(),
            values: cell.values.iter().map(|run| run[metric]).collect(),
        };
        self.cells.iter().map(of).collect()
    }

    /// How the work of the cells with a factor's first level differs from that of cells that differ
    /// in the factor alone.
    pub fn other_work_by(&self, factor: &str, first: &str) -> Vec<WorkDifference> {
        let besides = |cell: &'_ AnswerCell| -> Vec<(String, String)> {
            let others = cell.at.iter().filter(|(name, _)| *name != factor);
            others.map(|(name, level)| (name.clone(), level.clone())).collect()
        };
        let is_first = |cell: &&AnswerCell| cell.at.get(factor).is_some_and(|level| level == first);
        let firsts: HashMap<_, _> =
            self.cells.iter().filter(is_first).map(|cell| (besides(cell), cell)).collect();
        let pair = |cell| Some((*firsts.get(&besides(cell))?, cell));
        other_work(self.cells.iter().filter_map(pair))
    }

    /// How the work of those cells differs from that of any cell.
    pub fn other_work_of(&self, some: &[&AnswerCell]) -> Vec<WorkDifference> {
        other_work(some.iter().flat_map(|a| self.cells.iter().map(move |b| (*a, b))))
    }

    fn sort(&mut self, design: &Design) {
        let orders: Vec<Vec<String>> =
            self.names.iter().map(|name| self.order(design, name)).collect();
        let rank = |cell: &AnswerCell| -> Vec<Option<usize>> {
            let names = self.names.iter().zip(&orders);
            let place = |(name, order): (&String, &Vec<String>)| {
                let level = cell.at.get(name)?;
                order.iter().position(|known| known == level)
            };
            names.map(place).collect()
        };
        let mut cells = std::mem::take(&mut self.cells);
        cells.sort_by_key(rank);
        self.cells = cells;
    }

    /// The levels of a factor in the order in which they are compared: a baseline first, then the
    /// study's own order; of a setting numbers by size, then text.
    pub fn order(&self, design: &Design, factor: &str) -> Vec<String> {
        let present: BTreeSet<&String> =
            self.cells.iter().filter_map(|cell| cell.at.get(factor)).collect();
        let mut levels: Vec<String> = design.baseline.get(factor).cloned().into_iter().collect();
        match design.factor(factor) {
            Some(known) => levels.extend(known.levels.iter().cloned()),
            None => levels.extend(by_size(present.into_iter().cloned().collect())),
        }
        let mut seen = BTreeSet::new();
        levels.retain(|level| seen.insert(level.clone()));
        levels
    }

    /// Those of these names that tell the combinations of their levels apart: a factor of one store
    /// alone tells no more than the store. Names of few levels are left out first.
    fn telling<'n>(&self, names: &[&'n str]) -> Vec<&'n str> {
        let combinations = |names: &[&str]| {
            let levels = |cell: &AnswerCell| -> Vec<Option<String>> {
                names.iter().map(|name| cell.at.get(*name).cloned()).collect()
            };
            self.cells.iter().map(levels).collect::<BTreeSet<_>>().len()
        };
        let of_all = combinations(names);
        let mut by_levels: Vec<&str> = names.to_vec();
        by_levels.sort_by_key(|name| combinations(&[*name]));
        let mut told = names.to_vec();
        for name in by_levels {
            let others: Vec<&str> = told.iter().copied().filter(|other| *other != name).collect();
            if combinations(&others) == of_all {
                told = others;
            }
        }
        told
    }

    /// The names whose levels distinguish cells.
    fn distinguishing(&self) -> Vec<&String> {
        let varies = |name: &&String| {
            let levels: BTreeSet<_> = self.cells.iter().map(|cell| cell.at.get(*name)).collect();
            levels.len() > 1
        };
        self.names.iter().filter(varies).collect()
    }

    /// Every combination of what is given and varies, in the order of the cells; one of all cells
    /// where nothing given varies. What has one level in some cells and none in the others does not
    /// vary: it belongs to one of the choices.
    pub(super) fn given(&self, given: &[&str]) -> Vec<GivenLevels> {
        let varies = |name: &str| {
            let levels: BTreeSet<_> =
                self.cells.iter().filter_map(|cell| cell.at.get(name)).collect();
            levels.len() > 1
        };
        let names = self.names.iter().map(String::as_str);
        let names: Vec<&str> = names.filter(|name| given.contains(name) && varies(name)).collect();
        let told = self.telling(&names);
        let some = |words: String| if words.is_empty() { ELSEWHERE.to_owned() } else { words };
        let mut all: Vec<GivenLevels> = Vec::new();
        let mut places: HashMap<Vec<Option<&str>>, usize> = HashMap::new();
        for (position, cell) in self.cells.iter().enumerate() {
            let levels = names.iter().map(|name| cell.at.get(*name).map(String::as_str));
            let place = *places.entry(levels.collect()).or_insert_with(|| {
                let words = match names.as_slice() {
                    [] => String::new(),
                    _ => some(levels_words(told.iter().copied(), &cell.at)),
                };
                let level = |name: &&str| Some(((*name).to_owned(), cell.at.get(*name)?.clone()));
                let at = names.iter().filter_map(level).collect();
                all.push(GivenLevels { words, at, cells: Vec::new() });
                all.len() - 1
            });
            all[place].cells.push(position);
        }
        all
    }

    /// The cells of each combination of what is given.
    pub(super) fn into_given(self, given: &[&str]) -> Vec<(GivenLevels, CellValues)> {
        let all = self.given(given);
        let CellValues { metrics, names, cells, .. } = self;
        let mut cells: Vec<Option<AnswerCell>> = cells.into_iter().map(Some).collect();
        let part = |levels: GivenLevels| {
            let own = levels.cells.iter().filter_map(|position| cells[*position].take());
            let own = own.collect();
            let (metrics, names) = (metrics.clone(), names.clone());
            (levels, CellValues { metrics, names, cells: own, missing: Vec::new() })
        };
        all.into_iter().map(part).collect()
    }

    /// What distinguishes each cell from the others, in words: `SMT on, no idle states`.
    pub fn words(&self) -> Vec<String> {
        // What serves comes first, then how it is set.
        let names: Vec<&str> = self.distinguishing().into_iter().map(String::as_str).collect();
        let (common, factors): (Vec<&str>, Vec<&str>) =
            self.telling(&names).into_iter().partition(|name| COMMON_NAMES.contains(name));
        let names = || common.iter().chain(&factors).copied();
        self.cells.iter().map(|cell| levels_words(names(), &cell.at)).collect()
    }

    /// What distinguishes each cell from the others: `smt=on, idle=none`.
    pub fn titles(&self) -> Vec<String> {
        let names = self.distinguishing();
        let title = |cell: &AnswerCell| {
            let part = |name: &&String| Some(format!("{name}={}", cell.at.get(*name)?));
            let parts: Vec<String> = names.iter().filter_map(part).collect();
            if parts.is_empty() { "all runs".to_owned() } else { parts.join(", ") }
        };
        self.cells.iter().map(title).collect()
    }
}

/// Levels by the quantities that they name, other text after them by name.
pub(crate) fn by_size(mut levels: Vec<String>) -> Vec<String> {
    levels.sort_by(|a, b| {
        let (x, y) = (quantity(a), quantity(b));
        x.is_none()
            .cmp(&y.is_none())
            .then(x.partial_cmp(&y).unwrap_or(std::cmp::Ordering::Equal))
            .then(a.cmp(b))
    });
    levels
}

/// `10k`, `2GiB`, `20 ms`, `50%` as a number; None for other text.
pub fn quantity(level: &str) -> Option<f64> {
    let level = level.trim();
    let end =
        level.find(|c: char| !(c.is_ascii_digit() || ".-_".contains(c))).unwrap_or(level.len());
    let number: f64 = level[..end].replace('_', "").parse().ok()?;
    let factor = match level[end..].trim() {
        "" | "B" | "s" => 1.0,
        "%" => 1e-2,
        "k" | "K" | "kB" | "KB" => 1e3,
        "M" | "MB" => 1e6,
        "G" | "GB" => 1e9,
        "T" | "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "TiB" => 1_099_511_627_776.0,
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(number * factor)
}
