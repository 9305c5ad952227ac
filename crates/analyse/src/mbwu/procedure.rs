//! Which round is next.

use super::evaluation::UnitEvaluation;
use super::load::DeviceLoad;
use super::request::EvaluationRequest;
use super::resource::Bottleneck;
use super::round::{EvaluationRound, RoundPurpose};
use super::unit::{settled, summarise};

/// What to do after the rounds so far.
#[derive(Debug, Clone, PartialEq)]
pub enum NextRound {
    /// A round on so many devices at the same time, each under this load.
    Measure { stage: RoundPurpose, devices: u32, load: DeviceLoad, number: u32 },
    /// The evaluation is complete.
    Done(Box<UnitEvaluation>),
}

/// What to measure after these rounds, which are in their order.
///
/// The load on one device is raised until two raises in a row brought no gain. At the best load
/// rounds are repeated until five in a row are steady ([`crate::steady`]) or there are as many as
/// asked. Where the device was the bottleneck, a device after the other is added, each under the
/// same load, until one adds less than `gain` of a unit or there are no more.
pub fn next(request: &EvaluationRequest, rounds: &[EvaluationRound]) -> NextRound {
    if rounds.iter().any(|round| round.invalid_reason().is_some()) {
        return done(request, rounds);
    }
    let raised: Vec<&EvaluationRound> =
        rounds.iter().filter(|round| round.stage == RoundPurpose::Raise).collect();
    if let Some(load) = next_load(request, &raised) {
        return NextRound::Measure { stage: RoundPurpose::Raise, devices: 1, load, number: 1 };
    }
    let Some(load) = best_load(request, &raised) else { return done(request, rounds) };
    let of = |devices: u32| -> Vec<&EvaluationRound> {
        rounds.iter().filter(|r| r.stage != RoundPurpose::Raise && r.devices == devices).collect()
    };
    for devices in 1..=request.devices {
        let measured = of(devices);
        let stage = if devices == 1 { RoundPurpose::Unit } else { RoundPurpose::Growth };
        if !settled(request, &measured) {
            let number = measured.len() as u32 + 1;
            return NextRound::Measure { stage, devices, load, number };
        }
        if devices == 1 && summarise(&measured).bottleneck != Bottleneck::Device {
            return done(request, rounds);
        }
        let unit = request.given_unit.unwrap_or(summarise(&of(1)).throughput_ops_s);
        let now = summarise(&measured).throughput_ops_s;
        if devices > 1 && now - summarise(&of(devices - 1)).throughput_ops_s < request.gain * unit {
            return done(request, rounds);
        }
    }
    done(request, rounds)
}

fn done(request: &EvaluationRequest, rounds: &[EvaluationRound]) -> NextRound {
    NextRound::Done(Box::new(UnitEvaluation::of(request, rounds)))
}

/// The load to try next; None if it need not be raised further. More databases are tried only if
/// neither the device nor the platform was at its limit with fewer, which means that the store's
/// own locks are.
fn next_load(request: &EvaluationRequest, raised: &[&EvaluationRound]) -> Option<DeviceLoad> {
    let mut best: f64 = 0.0;
    for group in request.loads.chunk_by(|a, b| a.databases == b.databases) {
        let with_as_many = |round: &&&EvaluationRound| round.load.databases == group[0].databases;
        let own: Vec<&EvaluationRound> = raised.iter().filter(with_as_many).copied().collect();
        if !is_saturated(request, &own, best) && own.len() < group.len() {
            return Some(group[own.len()]);
        }
        if own.last()?.bottleneck() != Bottleneck::Unknown {
            return None;
        }
        best = own.iter().map(|round| round.throughput_ops_s).fold(best, f64::max);
    }
    None
}

/// Whether raising the load further brings no gain: two raises in a row did not improve on `best`,
/// or a rate was not reached. One raise alone may have been disturbed.
fn is_saturated(request: &EvaluationRequest, raised: &[&EvaluationRound], mut best: f64) -> bool {
    let mut without_gain = 0;
    for round in raised {
        let brought = round.throughput_ops_s > best * (1.0 + request.gain);
        without_gain = if brought { 0 } else { without_gain + 1 };
        best = best.max(round.throughput_ops_s);
    }
    without_gain >= 2 || raised.last().is_some_and(|last| last.rate_not_held)
}

/// The load with the highest throughput, which with a long queue depends least on the client. Among
/// loads within `gain` of it, one limited by the device is preferred; rates that were not reached
/// do not count.
fn best_load(request: &EvaluationRequest, raised: &[&EvaluationRound]) -> Option<DeviceLoad> {
    let usable: Vec<&EvaluationRound> =
        raised.iter().filter(|round| !round.rate_not_held).copied().collect();
    let tried = if usable.is_empty() { raised } else { &usable };
    let best = tried.iter().map(|round| round.throughput_ops_s).fold(0.0, f64::max);
    let good: Vec<&EvaluationRound> = tried
        .iter()
        .filter(|round| round.throughput_ops_s * (1.0 + request.gain) >= best)
        .copied()
        .collect();
    let (of_the_device, others): (Vec<&EvaluationRound>, Vec<&EvaluationRound>) =
        good.into_iter().partition(|round| round.bottleneck() == Bottleneck::Device);
    let most = |rounds: &[&EvaluationRound]| {
        // Of equal ones the first, which is the lowest load.
        let more = |best: &EvaluationRound, round: &EvaluationRound| {
            round.throughput_ops_s > best.throughput_ops_s
        };
        let found = rounds.iter().copied().reduce(|a, b| if more(a, b) { b } else { a });
        found.map(|round| round.load)
    };
    most(&of_the_device).or_else(|| most(&others))
}
