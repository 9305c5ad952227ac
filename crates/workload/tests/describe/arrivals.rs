//! Arrivals, rates and working sets over time.

use workload::describe::{Describer, TraceDescription};
use workload::trace::TraceTiming;

use super::{draws, read};

/// Reads at gaps, in seconds, that are functions of uniform numbers.
fn arriving(requests: u64, gap: impl Fn(f64) -> f64) -> TraceDescription {
    let mut describer = Describer::new(TraceTiming::Exact, 1000);
    let (mut draws, mut now) = (draws(1), 5e9);
    for request in 0..requests {
        describer.add(&read(now as u64, request % 500, 10));
        now += gap(draws.unit()) * 1e9;
    }
    describer.finish()
}

#[test]
fn poisson_arrivals_are_told() {
    let description = arriving(400_000, |uniform| -uniform.ln() / 5000.0);
    let gaps = description.inter_arrival.unwrap();
    assert_eq!(gaps.family, "poisson");
    assert!(gaps.distance < 0.005, "{gaps:?}");
    assert!((gaps.coefficient_of_variation - 1.0).abs() < 0.02, "{gaps:?}");
    assert!((gaps.mean_s * 5000.0 - 1.0).abs() < 0.01, "{gaps:?}");
    let scales = description.dispersion;
    assert!(scales.len() >= 4, "{scales:?}");
    for scale in scales {
        // The index over n intervals has a standard deviation of sqrt(2 / n).
        let error = 5.0 * (2.0 / scale.intervals as f64).sqrt();
        assert!((scale.index - 1.0).abs() < error, "{scale:?}");
    }
    assert!((description.mean_rate_ops_s.unwrap() / 5000.0 - 1.0).abs() < 0.01);
}

#[test]
fn constant_and_heavy_tailed_arrivals_are_told() {
    let constant = arriving(50_000, |_| 1e-3);
    assert_eq!(constant.inter_arrival.unwrap().family, "constant");
    assert!(constant.dispersion.iter().all(|scale| scale.index < 0.1));
    let shape = 0.4;
    let pareto =
        arriving(200_000, |uniform| 1e-3 * (1.0 - shape) / shape * (uniform.powf(-shape) - 1.0));
    let gaps = pareto.inter_arrival.unwrap();
    let found: f64 = gaps.family.strip_prefix("pareto:").unwrap().parse().unwrap();
    assert!((found - shape).abs() < 0.03 && gaps.distance < 0.01, "{gaps:?}");
    assert!(pareto.dispersion[0].index > 1.2);
}

#[test]
fn bursts_have_a_high_dispersion() {
    // Every tenth second has ten times the rate.
    let mut describer = Describer::new(TraceTiming::Seconds, 1000);
    for second in 0..320 {
        let requests = if second % 10 == 0 { 1000 } else { 100 };
        (0..requests).for_each(|key| describer.add(&read(second * 1_000_000_000, key, 10)));
    }
    let description = describer.finish();
    assert_eq!(description.duration_s, Some(320.0));
    assert!(description.inter_arrival.is_none());
    let first = description.dispersion[0];
    // Without the first and the last second, 31 of 318 have the high rate.
    assert_eq!((first.interval_s, first.intervals), (1.0, 318));
    let (share, intervals) = (31.0 / 318.0, 318.0);
    let variance = 900.0 * 900.0 * share * (1.0 - share) * intervals / (intervals - 1.0);
    assert!((first.index - variance / (100.0 + 900.0 * share)).abs() < 0.01, "{first:?}");
    // Ten seconds are always the same.
    assert!(description.dispersion[1].index.abs() < 1e-6);
}

#[test]
fn the_timeline_is_bounded_and_loses_nothing() {
    let mut describer = Describer::new(TraceTiming::Seconds, 20_000);
    for second in 0..10_000u64 {
        // A new key a second, and an old one.
        for key in [second, 0] {
            describer.add(&read(second * 1_000_000_000, key, 10));
        }
    }
    let description = describer.finish();
    let timeline = &description.timeline;
    assert!(timeline.len() <= 128 && timeline.len() > 64);
    assert_eq!(timeline.iter().map(|point| point.requests).sum::<u64>(), 20_000);
    assert_eq!(timeline.iter().map(|point| point.bytes).sum::<u64>(), 200_000);
    let whole = timeline[1];
    assert_eq!((whole.begin, whole.length, whole.requests), (128.0, 128.0, 256));
    assert!((whole.keys / 129.0 - 1.0).abs() < 0.05, "{whole:?}");
    assert_eq!(whole.working_set, 256.0);
    assert_eq!(timeline.last().unwrap().working_set, 10_000.0);
    let length: f64 = timeline.iter().map(|point| point.length).sum();
    assert_eq!(length, 10_000.0);
}
