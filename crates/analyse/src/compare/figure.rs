//! The value of a metric in one run, and how well that run fixes it by itself.

use model::{Distribution, Op, Run, SeriesPoint};

use super::metric::{ComparedMetric, Statistic};
use crate::describe::median;
use crate::interval::NoInterval;
use crate::percentile::samples_needed;
use crate::series::{WithinRun, within};

/// A percentile of an interval is one of its slowest requests unless this many lie beyond it.
const BEYOND_A_PERCENTILE: f64 = 10.0;

/// The value of a metric in a run, in the metric's unit; None where the run does not have it.
pub(super) fn value(metric: &ComparedMetric, run: &Run) -> Option<f64> {
    match metric {
        ComparedMetric::Throughput => Some(run.throughput()),
        ComparedMetric::Latency { op, clock, statistic } => {
            let histogram = run.latency(*op, *clock).filter(|h| !h.is_empty())?;
            Some(match statistic.percentile() {
                None => histogram.mean(),
                Some(percentile) => histogram.value_at_percentile(percentile) as f64,
            })
        }
        ComparedMetric::Reading { signal, .. } => run.value(signal),
    }
}

/// The relative width of what a value was rounded to.
pub(super) fn resolution(metric: &ComparedMetric, run: &Run) -> f64 {
    match metric {
        ComparedMetric::Latency { op, clock, .. } => {
            run.latency(*op, *clock).map_or(0.0, |_| Distribution::RESOLUTION)
        }
        ComparedMetric::Throughput | ComparedMetric::Reading { .. } => 0.0,
    }
}

/// Whether the run has the samples that a percentile needs.
pub(super) fn enough_samples(metric: &ComparedMetric, run: &Run) -> Result<(), NoInterval> {
    let ComparedMetric::Latency { op, clock, statistic } = metric else { return Ok(()) };
    let Some(percentile) = statistic.percentile() else { return Ok(()) };
    let needed = samples_needed(percentile)?;
    let got = run.latency(*op, *clock).map_or(0, Distribution::len);
    if got < needed { Err(NoInterval::TooFewSamples { percentile, got, needed }) } else { Ok(()) }
}

/// How well a single run fixes a metric, from its time series.
/// Errors: a metric of which the series keeps nothing; a series that is too short, too sparse
/// for the percentile, or too much alike from one interval to the next.
pub(crate) fn within_run(metric: &ComparedMetric, run: &Run) -> Result<WithinRun, NoInterval> {
    let whole = value(metric, run).ok_or(NoInterval::NoSeries)?;
    match metric {
        ComparedMetric::Throughput => within(&rates(&run.series), whole),
        ComparedMetric::Latency { op, clock, statistic } if *clock == run.clock() => {
            within(&percentiles(&run.series, *op, *statistic)?, whole)
        }
        ComparedMetric::Latency { .. } | ComparedMetric::Reading { .. } => {
            Err(NoInterval::NoSeries)
        }
    }
}

/// Operations per second of each full interval, all kinds together.
fn rates(series: &[SeriesPoint]) -> Vec<f64> {
    let mut intervals: Vec<(f64, f64, u64)> = Vec::new();
    let mut points: Vec<&SeriesPoint> = series.iter().collect();
    points.sort_by(|x, y| x.at_s.total_cmp(&y.at_s));
    for point in points {
        match intervals.last_mut() {
            Some((at, _, operations)) if *at == point.at_s => {
                *operations = operations.saturating_add(point.operations);
            }
            _ => intervals.push((point.at_s, point.seconds, point.operations)),
        }
    }
    let lengths: Vec<f64> = intervals.iter().map(|(_, seconds, _)| *seconds).collect();
    let full = fullness(&lengths);
    intervals
        .into_iter()
        .filter(|(_, seconds, _)| full(*seconds))
        .map(|(_, seconds, operations)| operations as f64 / seconds)
        .collect()
}

/// A percentile of each full interval in which the operation occurred, in nanoseconds.
fn percentiles(
    series: &[SeriesPoint],
    op: Op,
    statistic: Statistic,
) -> Result<Vec<f64>, NoInterval> {
    let percentile = statistic.percentile().ok_or(NoInterval::NoSeries)?;
    let lengths: Vec<f64> = series.iter().map(|point| point.seconds).collect();
    let full = fullness(&lengths);
    let mut points: Vec<&SeriesPoint> = series
        .iter()
        .filter(|point| point.op == op && point.operations > 0 && full(point.seconds))
        .collect();
    points.sort_by(|x, y| x.at_s.total_cmp(&y.at_s));
    let needed = BEYOND_A_PERCENTILE / (1.0 - percentile / 100.0);
    let counts: Vec<f64> = points.iter().map(|point| point.operations as f64).collect();
    let got = if counts.is_empty() { 0.0 } else { median(&counts) };
    // Rounded, since 1 - 0.999 is not exactly a thousandth.
    if got < needed.round() {
        return Err(NoInterval::SparseSeries { percentile, got, needed });
    }
    let value = |point: &SeriesPoint| match statistic {
        Statistic::P99 => point.p99_ns,
        Statistic::P999 => point.p999_ns,
        Statistic::P50 | Statistic::Mean => point.p50_ns,
    };
    Ok(points.into_iter().map(|point| value(point) as f64).collect())
}

/// Whether an interval is about as long as the others: the last of a run often is not.
fn fullness(lengths: &[f64]) -> impl Fn(f64) -> bool {
    let typical = if lengths.is_empty() { 0.0 } else { median(lengths) };
    move |seconds| seconds > 0.0 && seconds >= 0.5 * typical
}
