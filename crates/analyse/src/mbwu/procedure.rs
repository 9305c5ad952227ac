//! Which round is next.

use super::evaluation::{Evaluation, last_steady, settled};
use super::resource::Bottleneck;
use super::round::{Request, Round, Stage};

/// What to do after the rounds so far.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// A round on so many devices at the same time, with so many threads for each.
    Measure { stage: Stage, devices: u32, threads: u32, number: u32 },
    /// Nothing more: this is what it came to.
    Done(Box<Evaluation>),
}

/// What to measure after these rounds, which are in their order.
///
/// The load on one device is raised until it brings no more and something is at its limit, or
/// until two raises in a row brought nothing. At the best load rounds are repeated until five in
/// a row are steady ([`crate::steady`]) or there are as many as asked. Where the device was the
/// bottleneck, a device after the other is added, each with as many threads, until one adds
/// less than `gain` of a unit or there are no more.
pub fn next(request: &Request, rounds: &[Round]) -> Next {
    if rounds.iter().any(|round| !round.invalid_because.is_empty()) {
        return done(request, rounds);
    }
    let raised: Vec<&Round> = rounds.iter().filter(|round| round.stage == Stage::Raise).collect();
    if let Some(threads) = next_load(request, &raised) {
        return Next::Measure { stage: Stage::Raise, devices: 1, threads, number: 1 };
    }
    let Some(threads) = best_load(request, &raised) else { return done(request, rounds) };
    let of = |devices: u32| -> Vec<&Round> {
        rounds.iter().filter(|r| r.stage != Stage::Raise && r.devices == devices).collect()
    };
    for devices in 1..=request.devices {
        let measured = of(devices);
        let stage = if devices == 1 { Stage::Unit } else { Stage::Growth };
        if !settled(request, &measured) {
            let number = measured.len() as u32 + 1;
            return Next::Measure { stage, devices, threads, number };
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

fn done(request: &Request, rounds: &[Round]) -> Next {
    Next::Done(Box::new(Evaluation::of(request, rounds)))
}

/// The load to try next; none if raising it has come to its end.
fn next_load(request: &Request, raised: &[&Round]) -> Option<u32> {
    let next = *request.loads.get(raised.len())?;
    let mut best: f64 = 0.0;
    // Raises in a row that brought nothing.
    let mut idle = 0;
    for round in raised {
        let brought = round.throughput_ops_s > best * (1.0 + request.gain);
        idle = if brought { 0 } else { idle + 1 };
        best = best.max(round.throughput_ops_s);
    }
    let at_a_limit = raised.last().is_some_and(|last| last.bottleneck() != Bottleneck::Unknown);
    let ends = idle >= 2 || idle == 1 && at_a_limit;
    (!ends).then_some(next)
}

/// The least load that is as good as any but for `gain`: more would only make the queue longer.
fn best_load(request: &Request, raised: &[&Round]) -> Option<u32> {
    let best = raised.iter().map(|round| round.throughput_ops_s).fold(0.0, f64::max);
    // A device is at its limit with a queue; a load that leaves it idle now and then is not it.
    let enough = |round: &&&Round| round.throughput_ops_s * (1.0 + request.gain) >= best;
    let device_bound = |round: &&&Round| round.bottleneck() == Bottleneck::Device;
    let candidates: Vec<&&Round> = raised.iter().filter(enough).collect();
    let found = candidates.iter().copied().find(|round| device_bound(round));
    found.or_else(|| candidates.first().copied()).map(|round| round.threads)
}
