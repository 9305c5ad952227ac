//! What is said of a load that moves.

mod synthetic;

use analyse::moving_load;
use model::{Origin, Run, Scope, Series, Unit};
use synthetic::{Random, run};

/// A run whose offered rate, p99 and watts are these in each second.
fn moving(seconds: &[(f64, f64, f64)]) -> Run {
    let mut run = run("r", &[], 1000.0, 50_000.0, seconds.len());
    for (point, (rate, p99_us, _)) in run.series.iter_mut().zip(seconds) {
        point.operations = *rate as u64;
        (point.p50_ns, point.p99_ns) = ((p99_us * 500.0) as u64, (p99_us * 1e3) as u64);
    }
    let series = |signal: &str, unit, of: fn(&(f64, f64, f64)) -> f64| Series {
        signal: signal.to_owned(),
        unit,
        scope: Scope::Client,
        source: String::new(),
        origin: Origin::Measured,
        at_s: (1..=seconds.len()).map(|second| second as f64).collect(),
        values: seconds.iter().map(of).collect(),
    };
    run.samples.push(series("client.offered_rate", Unit::OpsPerSecond, |one| one.0));
    run.samples.push(series("power.package", Unit::Watts, |one| one.2));
    run
}

#[test]
fn rising_and_falling_load_are_compared_at_the_same_rates() {
    let mut seconds = Vec::new();
    for second in 0..=20 {
        seconds.push((100.0 * f64::from(second), 100.0, 50.0));
    }
    // Falling, latency is higher by half, and power by a fifth; the lowest rates are not reached.
    for second in (10..20).rev() {
        seconds.push((100.0 * f64::from(second), 150.0, 60.0));
    }
    let load = moving_load(&moving(&seconds)).expect("it moves");
    assert_eq!(load.power, Some(("power.package".to_owned(), true)));
    let both = load.rise_and_fall.expect("both are there");
    assert_eq!((both.from_ops_s, both.to_ops_s), (1000.0, 1900.0));
    assert_eq!((both.rising.intervals, both.falling.intervals), (10, 10));
    assert!((both.falling.p99_ns / both.rising.p99_ns - 1.5).abs() < 1e-9);
    let joules = |means: analyse::LoadMeans| means.joules_per_op.expect("power was measured");
    assert!((joules(both.falling) / joules(both.rising) - 1.2).abs() < 1e-9);
    assert!((joules(both.rising) - 50.0 / 1450.0).abs() < 1e-9);
    assert_eq!(load.after_burst, None, "a ramp is no burst");
}

#[test]
fn the_seconds_after_a_burst_are_compared_with_those_before() {
    let mut seconds = vec![(1000.0, 100.0, 50.0); 20];
    seconds.extend([(9000.0, 5000.0, 90.0); 3]);
    seconds.extend([(1000.0, 400.0, 60.0), (1000.0, 200.0, 55.0), (1000.0, 110.0, 50.0)]);
    seconds.extend([(1000.0, 100.0, 50.0); 10]);
    let load = moving_load(&moving(&seconds)).expect("it moves");
    let burst = load.after_burst.expect("there is one");
    assert_eq!((burst.usual_ops_s, burst.peak_ops_s), (1000.0, 9000.0));
    assert_eq!((burst.before.intervals, burst.after.intervals), (10, 5));
    assert_eq!((burst.after_s, burst.back_after_s), (5.0, Some(2.0)));
    assert!((burst.after.p99_ns - 182_000.0).abs() < 1.0);
    assert_eq!(load.rise_and_fall, None, "one second is not enough");
}

#[test]
fn noise_makes_no_difference_between_rising_and_falling_load() {
    let mut random = Random::new(3);
    let seconds: Vec<_> = (0..600)
        .map(|second| {
            let rate = 10_000.0 + 8_000.0 * (f64::from(second) / 30.0).sin();
            (rate, 100.0 * (1.0 + 0.1 * random.normal()), 50.0)
        })
        .collect();
    let both = moving_load(&moving(&seconds)).and_then(|load| load.rise_and_fall);
    let both = both.expect("both are there");
    assert!(both.rising.intervals > 200 && both.falling.intervals > 200);
    assert!((both.falling.p99_ns / both.rising.p99_ns - 1.0).abs() < 0.05);
}

#[test]
fn a_constant_rate_does_not_move() {
    assert_eq!(moving_load(&run("r", &[], 1000.0, 50_000.0, 20)), None);
}

#[test]
fn what_is_missing_is_not_made_up() {
    let mut run = moving(&[(1000.0, 100.0, 50.0); 20]);
    run.samples.retain(|series| series.unit != Unit::Watts);
    let load = moving_load(&run).expect("it has a profile");
    assert_eq!((load.power, load.rise_and_fall, load.after_burst), (None, None, None));
    run.series.clear();
    assert!(moving_load(&run).is_none_or(|load| load.rise_and_fall.is_none()));
}
