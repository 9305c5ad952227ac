//! The result in sentences.

use super::count::{GrowthEnd, UnitCount};
use super::request::EvaluationRequest;
use super::resource::{Bottleneck, Resource};
use super::round::{EvaluationRound, RoundPurpose};
use super::unit::{GrowthStep, WorkUnit};

pub(super) fn conclusion(
    unit: Option<&WorkUnit>,
    count: &UnitCount,
    growth: &[GrowthStep],
) -> String {
    let Some(unit) = unit else {
        return match &count.end {
            GrowthEnd::Invalid(why) => format!("No unit was measured: {why}."),
            _ => "No unit was measured.".to_owned(),
        };
    };
    let rate = format!("{:.0} ops/s", unit.throughput_ops_s);
    let one = match (unit.proven, unit.steady, unit.bottleneck) {
        (true, ..) => format!("1 MBWU is {rate}: the device was the bottleneck."),
        (false, false, Bottleneck::Device) => {
            format!("1 MBWU is about {rate}, but {} rounds were not steady.", unit.rounds)
        }
        (false, _, found) => format!("1 MBWU is at least {rate}: {found} throttled one device."),
    };
    let many = match (count.units, count.devices) {
        (Some(units), Some(devices)) => {
            let interval = count.interval.map_or(String::new(), |interval| {
                format!(" ({:.2} to {:.2})", interval.low, interval.high)
            });
            let devices = match devices {
                1 => "1 device".to_owned(),
                many => format!("{many} devices"),
            };
            format!(" This platform generates {units:.2} MBWU{interval} with {devices}")
        }
        _ => " How many MBWUs this platform generates is unknown".to_owned(),
    };
    let last = growth.last().map_or(1, |step| step.devices);
    let end = match &count.end {
        GrowthEnd::Devices if last == 1 => {
            "; there was one device only, so it may be more.".to_owned()
        }
        GrowthEnd::Devices => "; there were no more devices, so it may be more.".to_owned(),
        GrowthEnd::Saturated(Bottleneck::Device) => {
            "; a further device added nothing, and all of them were busy: they share a bottleneck."
                .to_owned()
        }
        GrowthEnd::Saturated(found) => format!("; {found} ended the growth at {last} devices."),
        GrowthEnd::BelowOne(_) if count.units.is_some() => ".".to_owned(),
        GrowthEnd::BelowOne(_) => {
            ": give a unit that was measured on another platform with the same device (`unit` of \
             [mbwu])."
                .to_owned()
        }
        GrowthEnd::Invalid(why) => format!("; it ended early: {why}."),
        GrowthEnd::CutShort => "; it was cut short.".to_owned(),
    };
    format!("{one}{many}{end}")
}

/// Warns that a device whose throughput still grew under the last load may do more.
fn still_growing(request: &EvaluationRequest, rounds: &[EvaluationRound]) -> Option<String> {
    let raised: Vec<&EvaluationRound> =
        rounds.iter().filter(|round| round.stage == RoundPurpose::Raise).collect();
    let (last, before) = raised.split_last()?;
    let best = before.iter().map(|round| round.throughput_ops_s).fold(0.0, f64::max);
    let ended = request.loads.last() == Some(&last.load) && !last.rate_not_held;
    if !ended || last.throughput_ops_s <= best * (1.0 + request.gain) {
        return None;
    }
    let more = match before.is_empty() {
        true => "only one load was tried".to_owned(),
        false => format!(
            "the last load brought {:.0} % more",
            (last.throughput_ops_s / best - 1.0) * 100.0
        ),
    };
    Some(format!("{more}: a device may do more under higher loads; add some"))
}

/// The least share of reads from the device for a valid unit.
const READ_FROM_DEVICE: f64 = 0.9;

pub(super) fn notes(
    request: &EvaluationRequest,
    rounds: &[EvaluationRound],
    unit: Option<&WorkUnit>,
    growth: &[GrowthStep],
) -> Vec<String> {
    let mut notes: Vec<String> = still_growing(request, rounds).into_iter().collect();
    for step in growth.iter().filter(|step| !step.steady) {
        notes.push(format!(
            "not steady: {} rounds with {} device(s); the mean of the last five is shown",
            step.rounds, step.devices
        ));
    }
    if let (Some(_), Some(step)) = (unit, growth.first()) {
        let unknown: Vec<String> = step
            .uses
            .iter()
            .filter(|one| one.resource != Resource::Device)
            .filter_map(|one| Some(format!("{} ({})", one.resource, one.share.as_ref().err()?)))
            .collect();
        if !unknown.is_empty() {
            notes.push(format!("the headroom of {} is unknown", unknown.join(", ")));
        }
    }
    let busy = |round: &&EvaluationRound| {
        let own = round.used(Resource::Cpu).unwrap_or(0.0);
        round.machine_busy.is_some_and(|all| all >= Resource::Cpu.limit() && all - own > 0.5 * all)
    };
    if rounds.iter().any(|round| busy(&round)) {
        notes.push(
            "other programs kept the CPUs busy in some rounds: a device that is named as the \
             bottleneck was it all the same, but repeat on a quiet machine"
                .to_owned(),
        );
    }
    let read: Vec<f64> = rounds.iter().filter_map(|round| round.read_from_device).collect();
    let least = read.iter().copied().fold(f64::INFINITY, f64::min);
    if least < READ_FROM_DEVICE {
        notes.push(format!(
            "in some rounds only {:.0} % of the bytes that the workload read came from the \
             devices; caches of the store or the kernel served the rest",
            least * 100.0
        ));
    }
    notes
}
