//! Which round is next.

use super::evaluation::{UnitEvaluation, last_steady, settled};
use super::load::DeviceLoad;
use super::request::EvaluationRequest;
use super::resource::Bottleneck;
use super::round::{EvaluationRound, RoundPurpose};

/// What to do after the rounds so far.
#[derive(Debug, Clone, PartialEq)]
pub enum NextRound {
    /// A round on so many devices at the same time, each under this load.
    Measure { stage: RoundPurpose, devices: u32, load: DeviceLoad, number: u32 },
    /// Nothing more: this is what it came to.
    Done(Box<UnitEvaluation>),
}

/// What to measure after these rounds, which are in their order.
///
/// The load on one device is raised until two raises in a row brought nothing. At the best load
/// rounds are repeated until five in a row are steady ([`crate::steady`]) or there are as many as
/// asked. Where the device was the bottleneck, a device after the other is added, each under the
/// same load, until one adds less than `gain` of a unit or there are no more.
pub fn next(request: &EvaluationRequest, rounds: &[EvaluationRound]) -> NextRound {
    if rounds.iter().any(|round| round.spoilt().is_some()) {
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
        if devices == 1 && last_steady(&measured).bottleneck != Bottleneck::Device {
            return done(request, rounds);
        }
        let unit = request.given_unit.unwrap_or(last_steady(&of(1)).throughput_ops_s);
        let now = last_steady(&measured).throughput_ops_s;
        if devices > 1 && now - last_steady(&of(devices - 1)).throughput_ops_s < request.gain * unit
        {
            return done(request, rounds);
        }
    }
    done(request, rounds)
}

fn done(request: &EvaluationRequest, rounds: &[EvaluationRound]) -> NextRound {
    NextRound::Done(Box::new(UnitEvaluation::of(request, rounds)))
}

/// The load to try next; none if raising it has come to its end. More databases are tried only
/// where neither the device nor the platform was at a limit with fewer: it is the store's own locks
/// then.
fn next_load(request: &EvaluationRequest, raised: &[&EvaluationRound]) -> Option<DeviceLoad> {
    let mut best: f64 = 0.0;
    for group in request.loads.chunk_by(|a, b| a.databases == b.databases) {
        let with_as_many = |round: &&&EvaluationRound| round.load.databases == group[0].databases;
        let own: Vec<&EvaluationRound> = raised.iter().filter(with_as_many).copied().collect();
        if !is_over(request, &own, best) && own.len() < group.len() {
            return Some(group[own.len()]);
        }
        if own.last()?.bottleneck() != Bottleneck::Unknown {
            return None;
        }
        best = own.iter().map(|round| round.throughput_ops_s).fold(best, f64::max);
    }
    None
}

/// Whether raising the load further would bring nothing, after these rounds and others that came
/// to `best`: two raises in a row brought nothing, or a rate was not held. One raise alone may
/// have met a bad moment of the machine.
fn is_over(request: &EvaluationRequest, raised: &[&EvaluationRound], mut best: f64) -> bool {
    let mut in_vain = 0;
    for round in raised {
        let brought = round.throughput_ops_s > best * (1.0 + request.gain);
        in_vain = if brought { 0 } else { in_vain + 1 };
        best = best.max(round.throughput_ops_s);
    }
    in_vain >= 2 || raised.last().is_some_and(|last| last.asked_too_much)
}

/// The load that came to most: a unit is the highest throughput, and with a longer queue it
/// depends the least on how soon each answer is taken. Of those that are as good but for `gain`,
/// one that was the device's; a rate that was not held is none.
fn best_load(request: &EvaluationRequest, raised: &[&EvaluationRound]) -> Option<DeviceLoad> {
    let held: Vec<&EvaluationRound> =
        raised.iter().filter(|round| !round.asked_too_much).copied().collect();
    let tried = if held.is_empty() { raised } else { &held };
    let best = tried.iter().map(|round| round.throughput_ops_s).fold(0.0, f64::max);
    let good: Vec<&EvaluationRound> = tried
        .iter()
        .filter(|round| round.throughput_ops_s * (1.0 + request.gain) >= best)
        .copied()
        .collect();
    let (of_the_device, others): (Vec<&EvaluationRound>, Vec<&EvaluationRound>) =
        good.into_iter().partition(|round| round.bottleneck() == Bottleneck::Device);
    let most = |rounds: &[&EvaluationRound]| {
        // Of equals the first, which is the least load.
        let more = |best: &EvaluationRound, round: &EvaluationRound| {
            round.throughput_ops_s > best.throughput_ops_s
        };
        let found = rounds.iter().copied().reduce(|a, b| if more(a, b) { b } else { a });
        found.map(|round| round.load)
    };
    most(&of_the_device).or_else(|| most(&others))
}
