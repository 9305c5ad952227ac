//! How many units a platform generates.

use super::request::EvaluationRequest;
use super::resource::Bottleneck;
use super::round::EvaluationRound;
use super::unit::{GrowthStep, WorkUnit};
use crate::interval::Interval;

/// Why no further device was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrowthEnd {
    /// There were no more devices, and the last one still added: the platform may generate more.
    Devices,
    /// A further device added next to nothing, and this was at its limit.
    Saturated(Bottleneck),
    /// One device was not the bottleneck, this was: the platform does not generate one unit.
    BelowOne(Bottleneck),
    /// A round is invalid, for this reason.
    Invalid(String),
    /// The evaluation was not continued.
    CutShort,
}

impl GrowthEnd {
    /// The name in `--json`.
    pub fn name(&self) -> &'static str {
        match self {
            GrowthEnd::Devices => "devices",
            GrowthEnd::Saturated(_) => "saturated",
            GrowthEnd::BelowOne(_) => "below_one",
            GrowthEnd::Invalid(_) => "invalid",
            GrowthEnd::CutShort => "cut_short",
        }
    }

    /// The resource that ended it, where one did.
    pub fn bottleneck(&self) -> Option<Bottleneck> {
        match self {
            GrowthEnd::Saturated(found) | GrowthEnd::BelowOne(found) => Some(*found),
            GrowthEnd::Devices | GrowthEnd::Invalid(_) | GrowthEnd::CutShort => None,
        }
    }
}

/// The number of units.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitCount {
    /// None where the unit is unknown.
    pub units: Option<f64>,
    pub interval: Option<Interval>,
    /// The devices with which it was reached.
    pub devices: Option<u32>,
    pub end: GrowthEnd,
}

pub(super) fn count(
    request: &EvaluationRequest,
    unit: Option<&WorkUnit>,
    known: bool,
    growth: &[GrowthStep],
    rounds: &[EvaluationRound],
) -> UnitCount {
    let best = growth.iter().max_by(|a, b| a.throughput_ops_s.total_cmp(&b.throughput_ops_s));
    let best = best.filter(|_| known);
    UnitCount {
        units: best.map(|step| step.units),
        interval: best.and_then(|step| step.units_interval),
        devices: best.map(|step| step.devices),
        end: growth_end(request, unit, growth, rounds),
    }
}

fn growth_end(
    request: &EvaluationRequest,
    unit: Option<&WorkUnit>,
    growth: &[GrowthStep],
    rounds: &[EvaluationRound],
) -> GrowthEnd {
    if let Some(why) = rounds.iter().find_map(EvaluationRound::invalid_reason) {
        return GrowthEnd::Invalid(why.clone());
    }
    let over = |step: &GrowthStep| step.steady || step.rounds >= request.most_rounds;
    let (Some(unit), Some(last)) = (unit, growth.last().filter(|last| over(last))) else {
        return GrowthEnd::CutShort;
    };
    if unit.bottleneck != Bottleneck::Device {
        return GrowthEnd::BelowOne(unit.bottleneck);
    }
    let of = request.given_unit.unwrap_or(unit.throughput_ops_s);
    if let [.., before, last] = growth
        && last.throughput_ops_s - before.throughput_ops_s < request.gain * of
    {
        return GrowthEnd::Saturated(last.bottleneck);
    }
    if last.devices < request.devices { GrowthEnd::CutShort } else { GrowthEnd::Devices }
}
