use std::collections::BTreeSet;
use std::fmt;

use model::{LoopKind, Op, Reading, ReadingValue, Run};

use super::ExcludedMetric;
use super::figure::{enough_samples, resolution, value, within_run};
use super::metric::{BetterDirection, ComparedMetric, HIT_RATIO, Statistic, direction_of};
use crate::describe::median;
use crate::interval::{Interval, IntervalMethod, NoInterval};
use crate::moments::moments;
use crate::welch::{LogSample, ratio_interval};

/// One figure of one cell on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Contrast {
    pub metric: ComparedMetric,
    /// Medians over the repeats, in the metric's unit.
    pub a: f64,
    pub b: f64,
    /// b / a of the geometric means over the repeats, which is what the interval is about; with
    /// one run a side the quotient of `b` and `a`. None where a value is not positive.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio, or why there is none.
    pub interval: Result<Interval, NoInterval>,
    pub verdict: Verdict,
}

impl Contrast {
    /// The relative difference, `ratio - 1`: 0.1 is 10 % more in B.
    pub fn change(&self) -> Option<f64> {
        self.ratio.map(|ratio| ratio - 1.0)
    }

    /// The 95 % interval of [`Contrast::change`]; it covers zero where there is no difference.
    pub fn change_interval(&self) -> Result<Interval, NoInterval> {
        let ratio = self.interval.clone()?;
        Ok(Interval { low: ratio.low - 1.0, high: ratio.high - 1.0, ..ratio })
    }
}

/// B compared with A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Better,
    Worse,
    /// There is a difference, and neither direction is better.
    Different,
    /// The interval of the difference covers zero. A difference smaller than its width may exist.
    NoDifference,
    /// There is no interval, so nothing is said.
    NotEnoughData,
    /// The two sides did different work, so they are not ranked.
    OtherWork,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Different => "different",
            Verdict::NoDifference => "no difference",
            Verdict::NotEnoughData => "not enough data",
            Verdict::OtherWork => "other work",
        })
    }
}

/// Every figure of a cell that can be compared, and those that cannot with the reason. Both sides
/// have a run.
///
/// `other_work`: the sides did different work; figures that depend on it have no verdict.
pub(super) fn contrasts(
    a: &[&Run],
    b: &[&Run],
    other_work: bool,
) -> (Vec<Contrast>, Vec<ExcludedMetric>) {
    let (mut metrics, mut withheld) = (Vec::new(), Vec::new());
    let mut withhold = |metric: &str, reason: String| {
        withheld.push(ExcludedMetric { metric: metric.to_owned(), reason });
    };
    match pacing_conflict(a, b) {
        Conflict::None => {
            metrics.push(ComparedMetric::Throughput);
            metrics.append(&mut latencies(a, b, &mut withhold));
        }
        Conflict::Rate => {
            let reason =
                "in an open loop throughput is the target rate, and the target rates differ";
            withhold("throughput", reason.to_owned());
            metrics.append(&mut latencies(a, b, &mut withhold));
        }
        Conflict::Kind => {
            let reason = "one side is an open loop and the other a closed one: `pacing` decides \
                          what throughput and latency mean";
            withhold("throughput", reason.to_owned());
            withhold("latency", reason.to_owned());
        }
    }
    metrics.append(&mut readings(a, b, &mut withhold));
    let mut contrasts: Vec<Contrast> =
        metrics.into_iter().filter_map(|metric| contrast(metric, a, b)).collect();
    for contrast in contrasts.iter_mut().filter(|_| other_work) {
        let hangs_on_it = !contrast.metric.is_of_the_work();
        if hangs_on_it && contrast.verdict != Verdict::NotEnoughData {
            contrast.verdict = Verdict::OtherWork;
        }
    }
    (contrasts, withheld)
}

enum Conflict {
    None,
    /// Both open, at different rates.
    Rate,
    /// One open, one closed.
    Kind,
}

fn pacing_conflict(a: &[&Run], b: &[&Run]) -> Conflict {
    // The runs of a side agree in their pacing: it is one of the settings that make a cell.
    match (a.first().map(|run| &run.pacing), b.first().map(|run| &run.pacing)) {
        (
            Some(LoopKind::Open { rate_ops_s: a, .. }),
            Some(LoopKind::Open { rate_ops_s: b, .. }),
        ) => {
            if a == b {
                Conflict::None
            } else {
                Conflict::Rate
            }
        }
        (Some(LoopKind::Open { .. }), Some(LoopKind::Closed { .. }))
        | (Some(LoopKind::Closed { .. }), Some(LoopKind::Open { .. })) => Conflict::Kind,
        _ => Conflict::None,
    }
}

/// Latencies by the runs' own clock, of operations that occur in every run.
fn latencies(
    a: &[&Run],
    b: &[&Run],
    withhold: &mut impl FnMut(&str, String),
) -> Vec<ComparedMetric> {
    let has = |run: &Run, op: Op| run.latency(op, run.clock()).is_some_and(|h| !h.is_empty());
    let mut metrics = Vec::new();
    for op in Op::ALL {
        let lacking = a.iter().chain(b).filter(|run| !has(run, op)).count();
        let Some(first) = a.first() else { continue };
        if lacking == 0 {
            let clock = first.clock();
            metrics.extend(Statistic::ALL.map(|statistic| ComparedMetric::Latency {
                op,
                clock,
                statistic,
            }));
        } else if lacking < a.len() + b.len() {
            withhold(
                &format!("latency.{op}"),
                format!("{lacking} of {} runs have no {op}", a.len() + b.len()),
            );
        }
    }
    metrics
}

/// Readings that every run has, of one unit, boundary and origin. Readings that are unavailable in
/// all runs are left out.
fn readings(
    a: &[&Run],
    b: &[&Run],
    withhold: &mut impl FnMut(&str, String),
) -> Vec<ComparedMetric> {
    let all: Vec<&Run> = a.iter().chain(b).copied().collect();
    let signals: BTreeSet<&str> = all
        .iter()
        .flat_map(|run| &run.readings)
        .map(|reading| reading.signal.as_str())
        .filter(|signal| direction_of(signal).is_some())
        .collect();
    let mut metrics = Vec::new();
    for signal in signals {
        let found: Vec<Option<&Reading>> = all.iter().map(|run| run.reading(signal)).collect();
        let none = found.iter().flatten().all(|reading| reading.value().is_none());
        // A boundary or an idle state that one side lacks is not compared.
        let named = signal.contains('.');
        let lacks = |side: &[&Run]| side.iter().all(|run| run.value(signal).is_none());
        let one_sided = named && (lacks(a) || lacks(b));
        // Without misses the hit ratio says nothing.
        let all_hit = signal == HIT_RATIO && all.iter().all(|run| !run.has_misses());
        if none || one_sided || all_hit || is_headline_again(signal, &all) {
            continue;
        }
        match comparable(&found) {
            Ok(first) => {
                let Reading { unit, scope, origin, .. } = *first;
                metrics.push(ComparedMetric::Reading {
                    signal: signal.to_owned(),
                    unit,
                    scope,
                    origin,
                });
            }
            Err(reason) => withhold(signal, reason),
        }
    }
    metrics
}

/// `ops_per_joule.total` repeats `ops_per_joule` where RAPL is the widest boundary of all runs.
fn is_headline_again(signal: &str, all: &[&Run]) -> bool {
    let Some((headline, _)) = signal.split_once('.') else { return false };
    let same = |run: &&Run| match (run.reading(headline), run.reading(signal)) {
        (Some(headline), Some(named)) => headline.answer == named.answer,
        _ => false,
    };
    all.iter().all(same)
}

/// The first of the readings, if all are values of one unit, scope and origin.
pub(crate) fn comparable<'a>(found: &[Option<&'a Reading>]) -> Result<&'a Reading, String> {
    let mut first: Option<&Reading> = None;
    for reading in found {
        let reading = reading.ok_or("not every run has this reading")?;
        if let ReadingValue::Unavailable { reason, .. } = &reading.answer {
            return Err(format!("unavailable in a run: {reason}"));
        }
        let first = *first.get_or_insert(reading);
        // The origin is checked first: a modelled value is never compared with a measured one.
        let conflict = if reading.origin != first.origin {
            Some(("origin", format!("{} and {}", first.origin, reading.origin)))
        } else if reading.scope != first.scope {
            Some(("scope", format!("{} and {}", first.scope, reading.scope)))
        } else if reading.unit != first.unit {
            Some(("unit", format!("{} and {}", first.unit.symbol(), reading.unit.symbol())))
        } else {
            None
        };
        if let Some((what, values)) = conflict {
            return Err(format!("its {what} differs between the runs: {values}"));
        }
    }
    first.ok_or_else(|| "no run has this reading".to_owned())
}

/// None where a run does not have the metric.
fn contrast(metric: ComparedMetric, a: &[&Run], b: &[&Run]) -> Option<Contrast> {
    let values = |runs: &[&Run]| -> Option<Vec<f64>> {
        runs.iter().map(|run| value(&metric, run)).collect()
    };
    let (of_a, of_b) = (values(a)?, values(b)?);
    let interval = interval(&metric, (a, &of_a), (b, &of_b));
    let verdict = match &interval {
        Err(_) => Verdict::NotEnoughData,
        Ok(interval) if interval.covers(1.0) => Verdict::NoDifference,
        Ok(interval) => match (metric.direction(), interval.low > 1.0) {
            (BetterDirection::More, true) | (BetterDirection::Less, false) => Verdict::Better,
            (BetterDirection::More, false) | (BetterDirection::Less, true) => Verdict::Worse,
            (BetterDirection::Neither, _) => Verdict::Different,
        },
    };
    let ratio = ratio(&of_a, &of_b);
    Some(Contrast { a: median(&of_a), b: median(&of_b), ratio, interval, verdict, metric })
}

fn ratio(a: &[f64], b: &[f64]) -> Option<f64> {
    let log_mean = |values: &[f64]| {
        let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
        moments(&logs).mean
    };
    let positive = a.iter().chain(b).all(|v| *v > 0.0);
    positive.then(|| (log_mean(b) - log_mean(a)).exp())
}

fn interval(
    metric: &ComparedMetric,
    (a, of_a): (&[&Run], &[f64]),
    (b, of_b): (&[&Run], &[f64]),
) -> Result<Interval, NoInterval> {
    let ids = |runs: &[&Run]| -> BTreeSet<String> { runs.iter().map(|r| r.id.clone()).collect() };
    if ids(a) == ids(b) {
        return Ok(Interval { low: 1.0, high: 1.0, method: IntervalMethod::SameRuns });
    }
    for run in a.iter().chain(b) {
        enough_samples(metric, run)?;
    }
    let side = |runs: &[&Run], values: &[f64]| match (runs, values) {
        ([run], [value]) => LogSample::within(*value, within_run(metric, run)?),
        _ => LogSample::between(values),
    };
    let widest = a.iter().chain(b).map(|run| resolution(metric, run)).fold(0.0, f64::max);
    Ok(ratio_interval(side(a, of_a)?, side(b, of_b)?, widest))
}
