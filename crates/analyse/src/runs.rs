//! The runs of a cell together: variation between them, and within each.

use model::Run;

use crate::compare::{ComparedMetric, Statistic, within_run};
use crate::describe::{BOOTSTRAP_FROM, DescribeError, Description, describe, describe_by_median};
use crate::interval::{Interval, IntervalMethod, NoInterval, TAIL};
use crate::metric::{DistributionPoint, Metric, RunField};
use crate::quantile::student;
use crate::series::WithinRun;

/// The values of the runs of one cell, and the variance within each run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CellRuns {
    pub values: Vec<f64>,
    within: Vec<Result<WithinRun, NoInterval>>,
}

impl CellRuns {
    pub(crate) fn push(&mut self, value: f64, named: &Metric, run: &Run) {
        self.values.push(value);
        self.within.push(within(named, run));
    }

    /// As [`describe`], but for few runs (up to 5) with the variance within them:
    /// - one run: `x exp(+- t(0.975, df) sqrt(v))`, `v` the relative variance of the run's figure
    ///   by its batches (sectioning: Asmussen and Glynn, "Stochastic Simulation", 2007, III.5),
    ///   `df` their effective number less one. It covers variation within this run, and not from
    ///   run to run;
    /// - 2 to 5 runs: Student's t between them (on logarithms of positive values), unless they vary more within themselves: `m exp(+-
    ///   t(0.975, df) sqrt(sum v_i) / n)`, `df = (sum v_i)^2 / sum (v_i^2 / df_i)` (Welch and
    ///   Satterthwaite). Two or three runs may agree by luck, and then t between them is narrower
    ///   than either of them can be known.
    ///
    /// A run without a series that carries it (too short, too sparse, too much alike from one
    /// second to the next) leaves a cell of one run without an interval, with that reason, and
    /// one of several with that between them.
    ///
    /// Errors: as of [`describe`].
    pub fn describe(&self) -> Result<Description, DescribeError> {
        self.with_within_run_interval(describe(&self.values)?)
    }

    /// As [`CellRuns::describe`], but the mean as of [`describe_by_median`].
    ///
    /// Errors: as of [`describe`].
    pub fn describe_by_median(&self) -> Result<Description, DescribeError> {
        self.with_within_run_interval(describe_by_median(&self.values)?)
    }

    fn with_within_run_interval(
        &self,
        mut described: Description,
    ) -> Result<Description, DescribeError> {
        let of_mean = self.within_run_interval(described.mean);
        described.mean_interval = wider(described.mean_interval, of_mean);
        // From there on order statistics tell enough.
        if described.n < BOOTSTRAP_FROM {
            let of_median = self.within_run_interval(described.median);
            described.median_interval = wider(described.median_interval, of_median);
        }
        Ok(described)
    }

    fn within_run_interval(&self, mean: f64) -> Result<Interval, NoInterval> {
        let (mut variance, mut weights) = (0.0, 0.0);
        for within in &self.within {
            let WithinRun { relative_variance, df } = within.clone()?;
            variance += relative_variance;
            weights += relative_variance * relative_variance / df;
        }
        let runs = self.within.len();
        let df = if weights > 0.0 { variance * variance / weights } else { f64::INFINITY };
        let half = match variance > 0.0 {
            true => student(1.0 - TAIL, df) * variance.sqrt() / runs as f64,
            false => 0.0,
        };
        let method = IntervalMethod::Batches { df, runs: runs as u64 };
        Ok(Interval { low: mean * (-half).exp(), high: mean * half.exp(), method })
    }
}

/// The wider of the intervals between runs and within them; within a single one, that alone.
fn wider(
    between: Result<Interval, NoInterval>,
    within: Result<Interval, NoInterval>,
) -> Result<Interval, NoInterval> {
    match (between, within) {
        (Err(NoInterval::OneValue), within) => within,
        (Ok(between), Ok(within)) if width(&within) > width(&between) => Ok(within),
        (between, _) => between,
    }
}

fn width(interval: &Interval) -> f64 {
    interval.high - interval.low
}

/// The variance of a figure within a single run.
fn within(named: &Metric, run: &Run) -> Result<WithinRun, NoInterval> {
    let statistic = |percent: f64| {
        [Statistic::P50, Statistic::P99, Statistic::P999]
            .into_iter()
            .find(|statistic| statistic.percentile() == Some(percent))
    };
    let metric = match named {
        Metric::Field(RunField::Throughput) => Some(ComparedMetric::Throughput),
        Metric::Latency { clock, op: Some(op), point: DistributionPoint::Percentile(percent) } => {
            let clock = clock.unwrap_or(run.clock());
            statistic(*percent).map(|statistic| ComparedMetric::Latency {
                op: *op,
                clock,
                statistic,
            })
        }
        _ => None,
    };
    within_run(&metric.ok_or(NoInterval::NoSeries)?, run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(relative_variance: f64, df: f64) -> Result<WithinRun, NoInterval> {
        Ok(WithinRun { relative_variance, df })
    }

    #[test]
    fn interval_of_one_run_is_from_within_it() {
        let runs = CellRuns { values: vec![200.0], within: vec![known(1e-4, 11.0)] };
        let interval = runs.describe().unwrap().interval().unwrap();
        // t(0.975, 11) = 2.200985, times a relative deviation of 1 %.
        assert!((interval.low - 200.0 * (-0.02200985_f64).exp()).abs() < 1e-5, "{interval:?}");
        assert!((interval.high - 200.0 * 0.02200985_f64.exp()).abs() < 1e-5);
        assert_eq!(interval.method, IntervalMethod::Batches { df: 11.0, runs: 1 });
        assert!(interval.method.to_string().contains("from run to run"), "{}", interval.method);
        let short = NoInterval::ShortSeries { got: 2, needed: 10 };
        let runs = CellRuns { values: vec![200.0], within: vec![Err(short.clone())] };
        assert_eq!(runs.describe().unwrap().interval(), Err(short));
    }

    #[test]
    fn interval_of_few_runs_is_the_wider_of_both() {
        // Two runs that agree by luck, each known to 1 % only.
        let within = vec![known(1e-4, 10.0), known(1e-4, 10.0)];
        let agree = CellRuns { values: vec![100.0, 100.001], within: within.clone() };
        let interval = agree.describe().unwrap().interval().unwrap();
        // (2e-4)^2 / (2 x 1e-8 / 10) = 20 degrees of freedom, t = 2.085963, sqrt(2e-4) / 2.
        let half = 2.085_963 * 2e-4_f64.sqrt() / 2.0;
        assert!((interval.high / 100.0005 - half.exp()).abs() < 1e-6, "{interval:?}");
        assert_eq!(interval.method, IntervalMethod::Batches { df: 20.0, runs: 2 });
        // And two that do not.
        let apart = CellRuns { values: vec![90.0, 110.0], within };
        let interval = apart.describe().unwrap().interval().unwrap();
        assert_eq!(interval.method, IntervalMethod::LogarithmicT { df: 1.0 });
        // One run without a series: between them, as before.
        let mixed = CellRuns {
            values: vec![100.0, 100.001],
            within: vec![known(1e-4, 10.0), Err(NoInterval::NoSeries)],
        };
        let interval = mixed.describe().unwrap().interval().unwrap();
        assert_eq!(interval.method, IntervalMethod::LogarithmicT { df: 1.0 });
    }

    #[test]
    fn median_interval_from_six_runs_on() {
        let values: Vec<f64> = (1..=6).map(f64::from).collect();
        let runs = CellRuns { values, within: vec![known(1.0, 10.0); 6] };
        let interval = runs.describe().unwrap().interval().unwrap();
        assert_eq!((interval.low, interval.high), (1.0, 6.0));
        assert!(matches!(interval.method, IntervalMethod::OrderStatistics { .. }));
    }
}
