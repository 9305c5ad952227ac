//! Two selections of runs, cell by cell: differences, their size, and whether they are more than
//! chance.

mod contrast;
mod error;
mod figure;
mod metric;
mod overall;
mod pairing;
mod titles;
mod work;

use model::{Run, RunSettings};

pub(crate) use contrast::comparable;
pub use contrast::{Contrast, Verdict};
pub use error::{CompareError, ComparisonSide};
pub(crate) use figure::within_run;
pub(crate) use metric::direction_of;
pub use metric::{BetterDirection, ComparedMetric, Statistic};
pub use overall::OverallContrast;
pub use pairing::{SettingDifference, Unmatched};
pub(crate) use work::largest_differences;
pub use work::{RunWork, WorkDifference, differences as work_differences};

/// Two selections, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The settings in which the selections differ as a whole: the subject of the comparison.
    pub differences: Vec<SettingDifference>,
    /// Cells that both sides have, in the order of their settings.
    pub cells: Vec<ComparedCell>,
    /// Cells that only one side has.
    pub unmatched: Vec<Unmatched>,
    /// Runs left out because they are invalid.
    pub excluded_a: usize,
    pub excluded_b: usize,
}

impl Comparison {
    /// Throughput, p99 and what an operation costs, over all cells together.
    pub fn overall(&self) -> Vec<OverallContrast> {
        overall::overall(&self.cells)
    }

    /// B compared with A in one sentence, from [`Comparison::overall`].
    pub fn verdict(&self) -> String {
        overall::sentence(&self.overall(), &self.differences, &self.other_work())
    }

    /// How the work of the sides differs, each respect once, from the cell that differs most.
    pub fn other_work(&self) -> Vec<WorkDifference> {
        largest_differences(self.cells.iter().flat_map(|cell| cell.other_work.iter().cloned()))
    }

    /// The difference of workload between the sides, if there is one: then they are not comparable.
    pub fn workload_difference(&self) -> Option<&SettingDifference> {
        self.differences.iter().find(|difference| {
            let setting = difference.setting.as_str();
            setting == "workload" || setting.starts_with("workload.") || setting == "trace.bytes"
        })
    }

    /// How many verdicts of `better` or `worse` chance alone would give if nothing differed:
    /// 5 % of the intervals that there are. They are not corrected for their number.
    pub fn expected_by_chance(&self) -> f64 {
        let contrasts = self.cells.iter().flat_map(|cell| &cell.contrasts);
        0.05 * contrasts.filter(|contrast| contrast.interval.is_ok()).count() as f64
    }
}

/// Runs of both sides that share every setting but those that are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedCell {
    /// The shortest title that distinguishes this cell: `ycsb-a, threads=2`.
    pub title: String,
    /// The settings that its runs share, with `phase`, `pacing`, `threads`, `store_version` and
    /// `machine`.
    pub settings: RunSettings,
    /// Ids of the valid runs.
    pub runs_a: Vec<String>,
    pub runs_b: Vec<String>,
    pub contrasts: Vec<Contrast>,
    /// Metrics that were not compared, with the reason.
    pub excluded_metrics: Vec<ExcludedMetric>,
    /// How the work of the two sides differs.
    pub other_work: Vec<WorkDifference>,
}

/// A metric that cannot be compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ExcludedMetric {
    pub metric: String,
    pub reason: String,
}

/// Compares two selections of runs; see [`compare_with_machines`], which also knows on which
/// machine each ran. Without it a difference of machines goes unnoticed.
pub fn compare(a: &[&Run], b: &[&Run]) -> Result<Comparison, CompareError> {
    compare_with_machines(a, b, |_| None)
}

/// Compares two selections of runs; `machine_of` names the machine of a run.
///
/// A setting of which no value occurs on both sides is a difference, the subject of the comparison.
/// Runs that agree in all other settings, `repeat` and `seed` aside, are one cell. In each cell:
/// throughput, and for each operation the mean, p50, p99 and p99.9 of the run's own clock, and CPU
/// and amplification readings. `a` and `b` are medians over the repeats; the ratio and its 95 %
/// interval are of geometric means, by Welch's t on logarithms, with variances from the repeats or,
/// on a side with a single run, from the intervals of its time series (see [`Contrast`] and
/// `docs/statistics.md`). Invalid runs are left out and counted.
///
/// Errors: a side without a (valid) run, load against measurement, runs in one cell that differ
/// in more than their repeat, and no cell in common.
pub fn compare_with_machines(
    a: &[&Run],
    b: &[&Run],
    machine_of: impl Fn(&Run) -> Option<String>,
) -> Result<Comparison, CompareError> {
    let paired = pairing::pair(a, b, &machine_of)?;
    let cells = paired
        .cells
        .into_iter()
        .map(|pair| {
            let work =
                |runs: &[&Run]| runs.iter().map(|run| RunWork::of(run)).collect::<Vec<RunWork>>();
            let other_work = work::differences(&work(&pair.a), &work(&pair.b));
            let (contrasts, withheld) =
                contrast::contrasts(&pair.a, &pair.b, !other_work.is_empty());
            let ids = |runs: &[&Run]| runs.iter().map(|run| run.id.clone()).collect();
            ComparedCell {
                title: pair.title,
                settings: pair.settings,
                runs_a: ids(&pair.a),
                runs_b: ids(&pair.b),
                contrasts,
                excluded_metrics: withheld,
                other_work,
            }
        })
        .collect();
    Ok(Comparison {
        differences: paired.differences,
        cells,
        unmatched: paired.unmatched,
        excluded_a: paired.excluded_a,
        excluded_b: paired.excluded_b,
    })
}
