//! The work unit of one device, and the steps of the growth: what their rounds say together.

use super::load::DeviceLoad;
use super::request::EvaluationRequest;
use super::resource::{Bottleneck, ResourceUse};
use super::round::EvaluationRound;
use crate::describe::{describe, median};
use crate::interval::{Interval, NoInterval};
use crate::steady::{STEADY_ROUNDS, steady};
use crate::welch::{LogSample, ratio_interval};

/// The work unit of one device.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkUnit {
    /// Mean of the last five rounds, or of all if there are fewer.
    pub throughput_ops_s: f64,
    pub interval: Result<Interval, NoInterval>,
    pub load: DeviceLoad,
    pub rounds: u32,
    pub steady: bool,
    pub bottleneck: Bottleneck,
    /// The device was the bottleneck in a steady state; otherwise a unit is "at least" this.
    pub proven: bool,
}

/// Rounds on a number of devices at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct GrowthStep {
    pub devices: u32,
    pub throughput_ops_s: f64,
    /// In units, and its interval where the rounds give one.
    pub units: f64,
    pub units_interval: Option<Interval>,
    pub rounds: u32,
    pub steady: bool,
    pub bottleneck: Bottleneck,
    /// Medians of the rounds that count.
    pub uses: Vec<ResourceUse>,
}

/// The throughput of one unit and the rounds that it is the mean of: a given unit of another
/// platform, or that of this one if the device was the bottleneck.
pub(super) fn reference(
    request: &EvaluationRequest,
    of_one: &[&EvaluationRound],
) -> Option<(f64, Vec<f64>)> {
    if let Some(given) = request.given_unit {
        return Some((given, Vec::new()));
    }
    let unit = unit(request, of_one).filter(|unit| unit.proven || !unit.steady)?;
    let known = unit.bottleneck == Bottleneck::Device;
    known.then(|| (unit.throughput_ops_s, throughputs(last_rounds(of_one))))
}

pub(super) fn unit(request: &EvaluationRequest, rounds: &[&EvaluationRound]) -> Option<WorkUnit> {
    let first = rounds.first()?;
    let summary = summarise(rounds);
    let values = throughputs(last_rounds(rounds));
    Some(WorkUnit {
        throughput_ops_s: summary.throughput_ops_s,
        interval: interval(&values),
        load: first.load,
        rounds: rounds.len() as u32,
        steady: is_steady(rounds),
        bottleneck: summary.bottleneck,
        proven: settled(request, rounds)
            && is_steady(rounds)
            && summary.bottleneck == Bottleneck::Device
            && rounds.iter().all(|round| round.invalid_reason().is_none()),
    })
}

pub(super) fn step(
    devices: u32,
    rounds: &[&EvaluationRound],
    reference: Option<&(f64, Vec<f64>)>,
) -> GrowthStep {
    let summary = summarise(rounds);
    let values = throughputs(last_rounds(rounds));
    let units = reference.map_or(f64::NAN, |(unit, _)| summary.throughput_ops_s / unit);
    let units_interval = reference.and_then(|(unit, of_unit)| match of_unit.is_empty() {
        // A given unit has no interval of its own.
        true => interval(&values).ok().map(|own| Interval {
            low: own.low / unit,
            high: own.high / unit,
            method: own.method,
        }),
        false if devices == 1 => None,
        false => {
            let (unit, sum) =
                (LogSample::between(of_unit).ok()?, LogSample::between(&values).ok()?);
            Some(ratio_interval(unit, sum, 0.0))
        }
    });
    GrowthStep {
        devices,
        throughput_ops_s: summary.throughput_ops_s,
        units,
        units_interval,
        rounds: rounds.len() as u32,
        steady: is_steady(rounds),
        bottleneck: summary.bottleneck,
        uses: summary.uses,
    }
}

/// Whether no more rounds of one kind are needed.
pub(super) fn settled(request: &EvaluationRequest, rounds: &[&EvaluationRound]) -> bool {
    is_steady(rounds) || rounds.len() as u32 >= request.most_rounds
}

fn is_steady(rounds: &[&EvaluationRound]) -> bool {
    <[f64; STEADY_ROUNDS]>::try_from(throughputs(last_rounds(rounds)))
        .is_ok_and(|rounds| steady(&rounds).steady)
}

/// The rounds that count: the last five.
fn last_rounds<'a, 'b>(rounds: &'b [&'a EvaluationRound]) -> &'b [&'a EvaluationRound] {
    &rounds[rounds.len().saturating_sub(STEADY_ROUNDS)..]
}

fn throughputs(rounds: &[&EvaluationRound]) -> Vec<f64> {
    rounds.iter().map(|round| round.throughput_ops_s).collect()
}

fn interval(values: &[f64]) -> Result<Interval, NoInterval> {
    match describe(values) {
        Ok(description) => description.mean_interval,
        Err(_) => Err(NoInterval::TooFewValues { got: values.len() as u64, needed: 2 }),
    }
}

/// A summary of the rounds that count.
pub(super) struct RoundsSummary {
    pub(super) throughput_ops_s: f64,
    pub(super) bottleneck: Bottleneck,
    pub(super) uses: Vec<ResourceUse>,
}

/// Summarises the rounds that count: the mean of their throughputs, and the bottleneck by the
/// medians of what they used, as one round in five may be disturbed.
pub(super) fn summarise(rounds: &[&EvaluationRound]) -> RoundsSummary {
    let last = last_rounds(rounds);
    let n = (last.len() as f64).max(1.0);
    let throughput_ops_s = throughputs(last).iter().sum::<f64>() / n;
    let Some(newest) = last.last() else {
        return RoundsSummary {
            throughput_ops_s,
            bottleneck: Bottleneck::Unknown,
            uses: Vec::new(),
        };
    };
    let usual = |one: &ResourceUse| {
        let shares: Option<Vec<f64>> = last.iter().map(|round| round.used(one.resource)).collect();
        let share = shares.map_or_else(|| one.share.clone(), |shares| Ok(median(&shares)));
        ResourceUse { resource: one.resource, share }
    };
    let uses: Vec<ResourceUse> = newest.uses.iter().map(usual).collect();
    let as_one = EvaluationRound { uses: uses.clone(), ..(*newest).clone() };
    RoundsSummary { throughput_ops_s, bottleneck: as_one.bottleneck(), uses }
}
