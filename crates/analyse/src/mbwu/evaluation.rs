//! The result of all rounds.

use super::count::{UnitCount, count};
use super::request::{EvaluationError, EvaluationRequest};
use super::round::{EvaluationRound, RoundPurpose};
use super::sentence;
use super::unit::{GrowthStep, WorkUnit, reference, settled, step, unit};
use crate::metric::metric_value;
use model::Run;

/// An evaluation, ended or cut short.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitEvaluation {
    pub request: EvaluationRequest,
    /// All rounds in their order.
    pub rounds: Vec<EvaluationRound>,
    /// The unit of one device; none if no round of it was measured.
    pub unit: Option<WorkUnit>,
    /// From one device on.
    pub growth: Vec<GrowthStep>,
    pub count: UnitCount,
    /// The result in sentences, and remarks.
    pub conclusion: String,
    pub notes: Vec<String>,
}

impl UnitEvaluation {
    /// Evaluates rounds.
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
        let conclusion = sentence::conclusion(unit.as_ref(), &count, &growth);
        let notes = sentence::notes(request, rounds, unit.as_ref(), &growth);
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

    /// Evaluates the runs of an execution.
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

    /// Whether a unit was proven, or a multiple of a given one, and every step was steady.
    pub fn is_proven(&self) -> bool {
        let proven = self.unit.as_ref().is_some_and(|unit| unit.proven);
        let given = self.request.given_unit.is_some() && self.count.units.is_some();
        (proven || given) && self.growth.iter().all(|step| step.steady)
    }

    /// Mean power of the rounds, among these runs, that all counted devices worked in.
    pub fn full_power_w(&self, runs: &[&Run]) -> Option<f64> {
        let devices = self.count.devices?;
        let full = |run: &&&Run| {
            EvaluationRound::of(run)
                .is_some_and(|round| round.stage != RoundPurpose::Raise && round.devices == devices)
        };
        let watts = runs.iter().filter(full).filter_map(|run| metric_value(run, "power_w").ok());
        let watts: Vec<f64> = watts.collect();
        (!watts.is_empty()).then(|| watts.iter().sum::<f64>() / watts.len() as f64)
    }
}

/// A throughput in units, after these rounds; None while the unit is unknown.
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
