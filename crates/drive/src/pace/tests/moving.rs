//! Arrivals at a rate that moves.

use std::time::Duration;

use model::{Arrivals, LoadShape, Pacing, RateProfile};

use crate::clock::Ticks;
use crate::frontier::PhaseGate;
use crate::pace::{OpenLoop, Pacer};
use crate::plan::{LoadPlan, PhaseKind};

fn profile(text: &str) -> RateProfile {
    RateProfile::parse(text).unwrap()
}

fn plan(rate: f64, arrivals: Arrivals, profile: &RateProfile, threads: usize) -> LoadPlan {
    LoadPlan {
        shape: LoadShape {
            pacing: Pacing::Open { rate, arrivals },
            profile: Some(profile.clone()),
            ..LoadShape::default()
        },
        ..LoadPlan::closed(PhaseKind::Mix, threads)
    }
}

/// Due instants in seconds of all threads until an instant.
fn due(plan: &LoadPlan, clock: &Ticks, until_s: f64) -> Vec<f64> {
    let mut all = Vec::new();
    for thread in 0..plan.threads {
        let mut open = OpenLoop::of(plan, thread, clock, 0);
        loop {
            let at = open.due_after_origin() as f64 / clock.per_second();
            if at >= until_s {
                break;
            }
            all.push(at);
            open.take();
        }
    }
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn constant_arrival_k_is_due_where_the_integral_is_k() {
    let clock = Ticks::new();
    for text in ["ramp:0x..2x@10s", "sine:mean=1x,amplitude=0.9x,period=7s", "steps:1x@1s,0x@1s"] {
        let profile = profile(text);
        for clients in [1, 3] {
            let plan = plan(1000.0, Arrivals::Constant, &profile, 5);
            let mut all: Vec<f64> = (0..clients)
                .flat_map(|client| match clients {
                    1 => due(&plan, &clock, 100.0),
                    _ => due(&plan.part(client, clients), &clock, 100.0),
                })
                .collect();
            all.sort_by(f64::total_cmp);
            assert!(all.len() as f64 > 900.0 * 100.0 * profile.mean(), "{text}: {}", all.len());
            for (at, k) in all.iter().zip(0..) {
                let integral = profile.integral(*at) * 1000.0;
                assert!((integral - f64::from(k)).abs() < 1e-3, "{text}: {integral}, not {k}");
            }
        }
    }
}

#[test]
fn every_arrival_process_follows_the_profile() {
    let clock = Ticks::new();
    let profile = profile("burst:base=0.5x,peak=4x,at=10s,rise=1s,hold=5s,fall=4s");
    for name in Arrivals::NAMES {
        let plan = plan(20_000.0, Arrivals::parse(name).unwrap(), &profile, 3);
        let all = due(&plan, &clock, 60.0);
        for second in 0..60 {
            let (from, to) = (f64::from(second), f64::from(second) + 1.0);
            let expected = 20_000.0 * profile.mean_between(from, to);
            let counted = all.iter().filter(|at| (from..to).contains(*at)).count() as f64;
            // The widest process has a variance of five times its mean.
            let most = 5.0 * (5.0 * expected).sqrt() + 5.0;
            assert!((counted - expected).abs() < most, "{name}: {counted}, not {expected}");
        }
    }
}

#[test]
fn the_profile_begins_with_the_window() {
    let clock = Ticks::new();
    let second = clock.ticks(1e9);
    let profile = profile("steps:2x@1s,1x@1s");
    let warm_up = Some(Duration::from_secs(9));
    let mut plan = plan(100.0, Arrivals::Constant, &profile, 1);
    plan.shape.warm_up = warm_up;
    let mut open = OpenLoop::of(&plan, 0, &clock, 0);
    // Before it, the rate is that of its first instant.
    open.take();
    assert!((open.due_after_origin() as f64 / second as f64 - 0.005).abs() < 1e-6);
    assert!(open.enter_window(9 * second) && !open.enter_window(9 * second));
    let gate = PhaseGate::new();
    for k in 0..300 {
        let k = f64::from(k);
        let expected = 9.0 + if k < 200.0 { k / 200.0 } else { 1.0 + (k - 200.0) / 100.0 };
        let at = open.next_due(&gate).unwrap() as f64 / second as f64;
        assert!((at - expected).abs() < 1e-6, "{k}: {at}, not {expected}");
        open.take();
    }
}

#[test]
fn the_window_has_the_integral_whatever_the_clocks_frequency() {
    for ticks_per_ns in [1.0, 2.499_999_999_9, 2.445_404_000_95, 3.0 + 9e-10] {
        let clock = Ticks::of_frequency(ticks_per_ns);
        for (text, seconds) in [("steps:2x@1s,6x@1s,1x@1s", 3), ("steps:1x@1s", 3600)] {
            let profile = profile(text);
            let plan = plan(50.0, Arrivals::Constant, &profile, 1);
            let mut open = OpenLoop::of(&plan, 0, &clock, 0);
            let gate = PhaseGate::new();
            gate.open(0, clock.ticks_of(Duration::from_secs(seconds)));
            let mut arrivals = 0.0;
            while open.next_due(&gate).is_some() {
                open.take();
                arrivals += 1.0;
            }
            let expected = (profile.integral(seconds as f64) * 50.0).round();
            assert_eq!(arrivals, expected, "{text} at {ticks_per_ns}");
        }
    }
}

#[test]
fn skipped_requests_are_those_of_the_integral() {
    let clock = Ticks::new();
    let profile = profile("ramp:0x..2x@10s");
    let mut open = OpenLoop::of(&plan(1e6, Arrivals::Constant, &profile, 1), 0, &clock, 0);
    let skipped = open.count_skipped(clock.ticks(1e9) * 3600);
    assert!((skipped as f64 / 3.6e9 - 1.0).abs() < 1e-6, "{skipped}");
}
