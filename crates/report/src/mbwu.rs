//! An evaluation of work units as JSON.

use analyse::mbwu::{EvaluationRound, GrowthStep, ResourceUse, UnitEvaluation};
use model::{Execution, Run};
use serde_json::{Map, Value, json};

/// One object; the settings are those of the first run.
pub fn object(execution: &Execution, runs: &[&Run], evaluation: &UnitEvaluation) -> Value {
    let UnitEvaluation { unit, growth, count, conclusion, notes, rounds, request } = evaluation;
    let interval = unit.as_ref().and_then(|unit| unit.interval.as_ref().ok());
    let setting = |key: &str| runs.first().and_then(|run| run.settings.get(key));
    json!({
        "mbwu_ops_s": unit.as_ref().map(|unit| unit.throughput_ops_s),
        "mbwu_low_ops_s": interval.map(|interval| interval.low),
        "mbwu_high_ops_s": interval.map(|interval| interval.high),
        "proven": unit.as_ref().is_some_and(|unit| unit.proven),
        "steady": unit.as_ref().is_some_and(|unit| unit.steady),
        "bottleneck": unit.as_ref().map(|unit| unit.bottleneck.name()),
        "threads": unit.as_ref().map(|unit| unit.load.threads),
        "databases": unit.as_ref().map(|unit| unit.load.databases),
        "rate_ops_s": unit.as_ref().and_then(|unit| unit.load.rate),
        "given_mbwu_ops_s": request.given_unit,
        "units": count.units,
        "units_low": count.interval.map(|interval| interval.low),
        "units_high": count.interval.map(|interval| interval.high),
        "devices": count.devices,
        "ended_by": count.end.name(),
        "ended_by_resource": count.end.bottleneck().map(|resource| resource.name()),
        "conclusion": conclusion,
        "notes": notes,
        "growth": growth.iter().map(step).collect::<Vec<_>>(),
        "rounds": rounds.iter().map(round).collect::<Vec<_>>(),
        "execution": execution.id,
        "study": execution.study,
        "store": setting("store"),
        "workload": setting("workload"),
    })
}

fn step(step: &GrowthStep) -> Value {
    json!({
        "devices": step.devices,
        "throughput_ops_s": step.throughput_ops_s,
        "units": step.units.is_finite().then_some(step.units),
        "units_low": step.units_interval.map(|interval| interval.low),
        "units_high": step.units_interval.map(|interval| interval.high),
        "rounds": step.rounds,
        "steady": step.steady,
        "bottleneck": step.bottleneck.name(),
        "used": used(&step.uses),
    })
}

fn round(round: &EvaluationRound) -> Value {
    json!({
        "stage": round.stage.name(),
        "devices": round.devices,
        "threads": round.load.threads,
        "databases": round.load.databases,
        "rate_ops_s": round.load.rate,
        "round": round.number,
        "throughput_ops_s": round.throughput_ops_s,
        "device_throughput_ops_s": round.device_ops_s,
        "device_busy": round.busy.as_ref().ok(),
        "device_queue": round.queue.as_ref().ok(),
        "used": used(&round.uses),
        "machine_busy": round.machine_busy,
        "read_from_device": round.read_from_device,
        "bottleneck": round.bottleneck().name(),
        "valid": round.invalid_reason().is_none(),
        "invalid_because": round.invalid_because,
    })
}

/// The known shares of the resources, and why others are unknown.
fn used(uses: &[ResourceUse]) -> Value {
    let pair = |one: &ResourceUse| {
        let share = match &one.share {
            Ok(share) => json!(share),
            Err(why) => json!({ "unavailable": why }),
        };
        (one.resource.name().to_owned(), share)
    };
    uses.iter().map(pair).collect::<Map<_, _>>().into()
}
