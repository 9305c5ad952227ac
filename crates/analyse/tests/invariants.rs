//! What holds for any data.

use analyse::{IntervalMethod, describe, percentile_interval, samples_needed, steady};
use hdrhistogram::Histogram;
use proptest::collection::vec;
use proptest::prelude::*;

fn histogram(values: &[u64]) -> Histogram<u64> {
    let mut made = Histogram::new(3).expect("3 digits");
    values.iter().for_each(|value| made.record(*value).expect("it grows"));
    made
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_description_is_within_its_values(
        values in prop_oneof![vec(-1e6..1e6_f64, 1..60), vec(1e-6..1e6_f64, 1..7)],
    ) {
        let d = describe(&values).unwrap();
        let slack = 1e-9 * d.max.abs().max(d.min.abs());
        prop_assert!(d.min <= d.median && d.median <= d.max);
        prop_assert!(d.min - slack <= d.mean && d.mean <= d.max + slack);
        if let Ok(interval) = &d.median_interval {
            prop_assert!(interval.covers(d.median));
        }
        if let Ok(interval) = &d.mean_interval {
            prop_assert!(interval.low <= d.mean + slack && d.mean <= interval.high + slack);
        }
        prop_assert_eq!(d.mean_interval.is_ok(), values.len() > 1);
        prop_assert_eq!(d.median_interval.is_ok(), values.len() > 1);
    }

    #[test]
    fn a_description_scales(values in vec(1.0..1e6_f64, 2..40), factor in 0.001..1000.0_f64) {
        let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        let (plain, scaled) = (describe(&values).unwrap(), describe(&scaled).unwrap());
        let like = |a: f64, b: f64| (a * factor - b).abs() <= 1e-6 * b.abs().max(factor);
        prop_assert!(like(plain.median, scaled.median) && like(plain.mean, scaled.mean));
        let (a, b) = (plain.mean_interval.unwrap(), scaled.mean_interval.unwrap());
        prop_assert!(like(a.low, b.low) && like(a.high, b.high));
        prop_assert!((plain.cv.unwrap() - scaled.cv.unwrap()).abs() < 1e-9);
    }

    #[test]
    fn a_percentile_lies_in_its_interval(
        values in vec(1_u64..10_000_000, 400..800),
        percentile in prop::sample::select(vec![10.0, 50.0, 90.0, 99.0]),
    ) {
        let made = histogram(&values);
        let interval = percentile_interval(&made, percentile).unwrap();
        prop_assert!(interval.covers(made.value_at_percentile(percentile) as f64));
        // The exact order statistics lie in it too: it covers what the buckets rounded.
        let mut sorted = values;
        sorted.sort_unstable();
        let IntervalMethod::OrderStatistics { low_rank, high_rank } = interval.method else {
            return Err(TestCaseError::fail("another method"));
        };
        prop_assert!(interval.low <= sorted[low_rank as usize - 1] as f64);
        prop_assert!(interval.high >= sorted[high_rank as usize - 1] as f64);
    }

    #[test]
    fn fewer_samples_than_needed_never_have_an_interval(
        percentile in 0.001..99.999_f64,
        n in 0_u64..2000,
    ) {
        let mut made = histogram(&[]);
        made.record_n(5, n).unwrap();
        let needed = samples_needed(percentile).unwrap();
        prop_assert_eq!(percentile_interval(&made, percentile).is_ok(), n >= needed);
    }

    #[test]
    fn the_steady_state_has_no_unit_and_no_direction(
        rounds in prop::array::uniform5(50.0..150.0_f64),
        factor in 0.001..1000.0_f64,
    ) {
        let result = steady(&rounds);
        let mut back = rounds;
        back.reverse();
        let back = steady(&back);
        prop_assert!((result.slope + back.slope).abs() < 1e-9);
        prop_assert!(result.fit_range <= result.range * 1.2 + 1e-9);
        let scaled = steady(&rounds.map(|round| round * factor));
        prop_assert!((scaled.range - result.range * factor).abs() < 1e-6 * factor);
    }
}
