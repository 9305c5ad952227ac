//! Graduated load: power over load in each combination of the other settings.

use std::collections::BTreeMap;

use model::Design;
use model::design::FactorLevels;

use super::cells::{AnswerCell, RunWithSettings, gather, provenance};
use super::{AnswerKind, KindAndMissing, MetricInfo, Unanswered};
use crate::describe::{describe, median};
use crate::efficiency::widest_first;
use crate::interval::{Interval, NoInterval};
use crate::metric::{Metric, RunField};
use crate::proportionality::{MeasuredLevel, Proportionality, proportionality};

/// One graduated load among those that a question is about.
#[derive(Debug, Clone, PartialEq)]
pub struct GraduatedLoad {
    /// Its levels except that of the load.
    pub at: FactorLevels,
    /// What distinguishes it from the others: `smt=on, store=redis`.
    pub title: String,
    /// Of the highest level, in operations per second.
    pub highest_ops_s: f64,
    /// Repeats of the level that has the fewest.
    pub repeats: usize,
    /// By the medians of the levels.
    pub figures: Proportionality,
    /// The watts of each level's runs, in the order of `figures.levels`; of the idle machine each
    /// measurement.
    pub watts: Vec<Vec<f64>>,
    /// 95 % interval of the overall operations per joule, and of the proportionality where there is
    /// one, over the repeats, each with all its levels.
    pub overall_interval: Result<Interval, NoInterval>,
    pub proportionality_interval: Result<Interval, NoInterval>,
    /// Why the idle machine is not included.
    pub no_idle: Option<String>,
}

/// The figures of a graduated load: its metrics in the rows of [`gather`].
const METRICS: [&str; 3] = ["target_rate_ops_s", "throughput_ops_s", "power_w"];
const POWER: usize = 2;

/// Every graduated load over the levels of `factor`; those that cannot be evaluated are in the
/// second part, with the reason.
pub(super) fn graduated(
    design: &Design,
    runs: &[&RunWithSettings<'_>],
    factor: &str,
) -> KindAndMissing {
    let mut gathered = gather(design, runs, &METRICS, &[factor])?;
    let boundary = boundary(runs);
    let idle = boundary.as_deref().map(|name| {
        let signal = format!("power.idle.{name}");
        gather(design, runs, &[&signal], &[factor])
    });
    let mut loads: BTreeMap<FactorLevels, Vec<&AnswerCell>> = BTreeMap::new();
    for cell in gathered.cells.iter().filter(|cell| cell.at.contains_key(factor)) {
        loads.entry(without(&cell.at, factor)).or_default().push(cell);
    }
    let telling: Vec<&String> = gathered
        .names
        .iter()
        .filter(|name| {
            let mut levels: Vec<_> = loads.keys().map(|at| at.get(*name)).collect();
            levels.dedup();
            levels.len() > 1
        })
        .collect();
    let (mut result, mut not_found) = (Vec::new(), Vec::new());
    for (at, cells) in &loads {
        let title: Vec<String> =
            telling.iter().filter_map(|name| Some(format!("{name}={}", at.get(*name)?))).collect();
        let idle_w = match &idle {
            Some(Ok(idle)) if idle.metrics[0].provenance == gathered.metrics[POWER].provenance => {
                let own = idle.cells.iter().filter(|cell| without(&cell.at, factor) == *at);
                let mut watts: Vec<f64> =
                    own.flat_map(|cell| cell.values.iter().map(|row| row[0])).collect();
                // Several runs may carry the same measurement of the idle machine.
                watts.sort_by(f64::total_cmp);
                watts.dedup();
                match watts.is_empty() {
                    true => Err("no run has the power of the idle machine".to_owned()),
                    false => Ok(watts),
                }
            }
            Some(Ok(_)) => Err("the idle machine was measured at another boundary".to_owned()),
            _ => Err("the power of the idle machine was not measured before the runs".to_owned()),
        };
        match measure_load(at, title.join(", "), cells, idle_w) {
            Ok(one) => result.push(one),
            Err(why) => not_found.push((why, cells.iter().map(|cell| cell.values.len()).sum())),
        }
    }
    let power: MetricInfo = gathered.metrics.swap_remove(POWER);
    if result.is_empty() {
        return Err(Unanswered::NotEnough(match not_found.into_iter().next() {
            Some((why, _)) => why,
            None => format!("no run has `{factor}`"),
        }));
    }
    let mut missing = gathered.missing;
    missing.extend(not_found);
    Ok((AnswerKind::Graduated { factor: factor.to_owned(), power, loads: result }, missing))
}

fn measure_load(
    at: &FactorLevels,
    title: String,
    cells: &[&AnswerCell],
    idle_w: Result<Vec<f64>, String>,
) -> Result<GraduatedLoad, String> {
    let idle = idle_w.as_ref().ok().map(|watts| median(watts));
    let column = |cell: &AnswerCell, nth: usize| {
        cell.values.iter().map(|row| row[nth]).collect::<Vec<f64>>()
    };
    let mut cells = cells.to_vec();
    cells.sort_by(|a, b| median(&column(b, 0)).total_cmp(&median(&column(a, 0))));
    let level = |cell: &AnswerCell, rows: &[Vec<f64>]| MeasuredLevel {
        target_ops_s: median(&column(cell, 0)),
        runs: rows.iter().map(|row| (row[1], row[POWER])).collect(),
    };
    let whole = |pick: &dyn Fn(&AnswerCell) -> Vec<Vec<f64>>| {
        let levels: Vec<MeasuredLevel> =
            cells.iter().map(|cell| level(cell, &pick(cell))).collect();
        proportionality(&levels, idle).map_err(|error| error.to_string())
    };
    let figures = whole(&|cell| cell.values.clone())?;
    let repeats = cells.iter().map(|cell| cell.values.len()).min().unwrap_or(0);
    let each: Vec<Proportionality> =
        (0..repeats).filter_map(|nth| whole(&|cell| vec![cell.values[nth].clone()]).ok()).collect();
    let interval = |values: Vec<f64>| match describe(&values) {
        Ok(described) => described.mean_interval,
        Err(_) => Err(NoInterval::OneValue),
    };
    Ok(GraduatedLoad {
        at: at.clone(),
        title,
        highest_ops_s: cells.first().map_or(0.0, |cell| median(&column(cell, 0))),
        repeats,
        watts: cells.iter().map(|cell| column(cell, POWER)).chain(idle_w.clone().ok()).collect(),
        overall_interval: interval(each.iter().map(|one| one.overall_ops_per_joule).collect()),
        proportionality_interval: interval(
            each.iter().filter_map(|one| one.proportionality).collect(),
        ),
        no_idle: idle_w.err(),
        figures,
    })
}

fn without(at: &FactorLevels, factor: &str) -> FactorLevels {
    at.iter().filter(|(name, _)| *name != factor).map(|(n, l)| (n.clone(), l.clone())).collect()
}

/// The boundary at which the runs' power was read: that of the first run that has one.
fn boundary(runs: &[&RunWithSettings<'_>]) -> Option<String> {
    runs.iter().filter(|run| run.run.valid()).find_map(|run| {
        provenance(&Metric::Field(RunField::Power), run.run)?;
        widest_first(&run.run.readings, "energy").first().map(|(name, _)| (*name).to_owned())
    })
}
