//! What all rounds come to.

use super::count::{UnitCount, count};
use super::load::DeviceLoad;
use super::request::{EvaluationError, EvaluationRequest};
use super::resource::{Bottleneck, ResourceUse};
use super::round::{EvaluationRound, RoundPurpose};
use super::words;
use crate::describe::{describe, median};
use crate::interval::{Interval, NoInterval};
use crate::steady::{STEADY_ROUNDS, steady};
use crate::welch::{Side, ratio_interval};
use record::Run;

/// The work unit that one device gave.
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

/// Rounds on so many devices at the same time.
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

/// An evaluation, ended or cut short.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitEvaluation {
    pub request: EvaluationRequest,
    /// All rounds in their order.
    pub rounds: Vec<EvaluationRound>,
    /// What one device gave here; none if no round of it was measured.
    pub unit: Option<WorkUnit>,
    /// From one device on.
    pub growth: Vec<GrowthStep>,
    pub count: UnitCount,
    /// One sentence each: what was found, and what a reader should know.
    pub conclusion: String,
    pub notes: Vec<String>,
}

impl UnitEvaluation {
    /// What these rounds come to.
    pub fn of(request: &EvaluationRequest, rounds: &[EvaluationRound]) -> UnitEvaluation {
        let of = |devices: u32| -> Vec<&EvaluationRound> {
            rounds
                .iter()
                .filter(|r| r.stage != RoundPurpose::Raise && r.devices == devices)
                .collect()
        };
        let unit = unit(request, &of(1));
        let reference = reference(request, &of(1));
        let growth: Vec<GrowthStep> = (1..=request.devices)
            .map(|devices| (devices, of(devices)))
            .take_while(|(_, rounds)| !rounds.is_empty())
            .map(|(devices, rounds)| step(devices, &rounds, reference.as_ref()))
            .collect();
        let count = count(request, unit.as_ref(), reference.is_some(), &growth, rounds);
        let conclusion = words::conclusion(unit.as_ref(), &count, &growth);
        let notes = words::notes(request, rounds, unit.as_ref(), &growth);
        UnitEvaluation {
            request: request.clone(),
            rounds: rounds.to_vec(),
            unit,
            growth,
            count,
            conclusion,
            notes,
        }
    }

    /// What the runs of an execution come to.
    ///
    /// # Errors
    /// None of them is a round of such an evaluation.
    pub fn of_runs(runs: &[&Run]) -> Result<UnitEvaluation, EvaluationError> {
        let first = runs.iter().find(|run| EvaluationRound::of(run).is_some());
        let settings = first.map(|run| &run.settings).cloned().unwrap_or_default();
        let request = EvaluationRequest::of(&settings)?;
        let rounds: Vec<EvaluationRound> =
            runs.iter().filter_map(|run| EvaluationRound::of(run)).collect();
        Ok(UnitEvaluation::of(&request, &rounds))
    }
}

/// What such a throughput is in units, after these rounds; none as long as none is known.
pub fn in_units(
    request: &EvaluationRequest,
    rounds: &[EvaluationRound],
    throughput_ops_s: f64,
) -> Option<f64> {
    let of_one: Vec<&EvaluationRound> =
        rounds.iter().filter(|r| r.stage == RoundPurpose::Unit && r.devices == 1).collect();
    let settled = request.given_unit.is_some() || settled(request, &of_one);
    let (unit, _) = reference(request, &of_one).filter(|_| settled)?;
    Some(throughput_ops_s / unit)
}

/// What counts as one unit, and the rounds that it is the mean of: a unit of another platform,
/// or that of this one if it is the device's.
fn reference(request: &EvaluationRequest, of_one: &[&EvaluationRound]) -> Option<(f64, Vec<f64>)> {
    if let Some(given) = request.given_unit {
        return Some((given, Vec::new()));
    }
    let unit = unit(request, of_one).filter(|unit| unit.proven || !unit.steady)?;
    let known = unit.bottleneck == Bottleneck::Device;
    known.then(|| (unit.throughput_ops_s, throughputs(last(of_one))))
}

fn unit(request: &EvaluationRequest, rounds: &[&EvaluationRound]) -> Option<WorkUnit> {
    let first = rounds.first()?;
    let found = last_steady(rounds);
    let values = throughputs(last(rounds));
    Some(WorkUnit {
        throughput_ops_s: found.throughput_ops_s,
        interval: interval(&values),
        load: first.load,
        rounds: rounds.len() as u32,
        steady: is_steady(rounds),
        bottleneck: found.bottleneck,
        proven: settled(request, rounds)
            && is_steady(rounds)
            && found.bottleneck == Bottleneck::Device
            && rounds.iter().all(|round| round.spoilt().is_none()),
    })
}

fn step(
    devices: u32,
    rounds: &[&EvaluationRound],
    reference: Option<&(f64, Vec<f64>)>,
) -> GrowthStep {
    let found = last_steady(rounds);
    let values = throughputs(last(rounds));
    let units = reference.map_or(f64::NAN, |(unit, _)| found.throughput_ops_s / unit);
    let units_interval = reference.and_then(|(unit, of_unit)| match of_unit.is_empty() {
        // A given unit has no interval of its own.
        true => interval(&values).ok().map(|own| Interval {
            low: own.low / unit,
            high: own.high / unit,
            method: own.method,
        }),
        false if devices == 1 => None,
        false => {
            let (unit, sum) = (Side::between(of_unit).ok()?, Side::between(&values).ok()?);
            Some(ratio_interval(unit, sum, 0.0))
        }
    });
    GrowthStep {
        devices,
        throughput_ops_s: found.throughput_ops_s,
        units,
        units_interval,
        rounds: rounds.len() as u32,
        steady: is_steady(rounds),
        bottleneck: found.bottleneck,
        uses: found.uses,
    }
}

/// Whether rounds of one kind have come to their end.
pub(super) fn settled(request: &EvaluationRequest, rounds: &[&EvaluationRound]) -> bool {
    is_steady(rounds) || rounds.len() as u32 >= request.most_rounds
}

fn is_steady(rounds: &[&EvaluationRound]) -> bool {
    <[f64; STEADY_ROUNDS]>::try_from(throughputs(last(rounds)))
        .is_ok_and(|rounds| steady(&rounds).steady)
}

/// The rounds that count: the last five.
fn last<'a, 'b>(rounds: &'b [&'a EvaluationRound]) -> &'b [&'a EvaluationRound] {
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

/// What the rounds that count have in common.
pub(super) struct CommonSettings {
    pub(super) throughput_ops_s: f64,
    pub(super) bottleneck: Bottleneck,
    pub(super) uses: Vec<ResourceUse>,
}

/// What the rounds that count come to as one: the mean of their throughputs, and by the medians of
/// what they used, what they were limited by. One round in five may have met a bad moment of the
/// machine.
pub(super) fn last_steady(rounds: &[&EvaluationRound]) -> CommonSettings {
    let last = last(rounds);
    let n = (last.len() as f64).max(1.0);
    let throughput_ops_s = throughputs(last).iter().sum::<f64>() / n;
    let Some(newest) = last.last() else {
        return CommonSettings {
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
    CommonSettings { throughput_ops_s, bottleneck: as_one.bottleneck(), uses }
}
