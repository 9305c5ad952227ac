use crate::interval::{Interval, Method, TAIL};
use crate::quantile::{normal, normal_cdf};
use model::random::{Draws, below};

/// Enough that the ends move by about 1 % of the width from seed to seed.
const RESAMPLES: u32 = 4000;
/// Fixed, so that the same values always give the same interval.
const SEED: u64 = 0x6b76_6d65_7465_7231;

/// The bias-corrected and accelerated bootstrap interval of the mean, in the values' unit.
///
/// With B resampled means m*, the ends are their quantiles at
/// `Phi(z0 + (z0 + z) / (1 - a (z0 + z)))` for z = -1.96 and 1.96, where
/// `z0 = Phi^-1(share of m* below the mean)` and `a` is the skewness of the jackknife means / 6.
/// Source: Efron, Tibshirani, "An Introduction to the Bootstrap" (1993), ch. 14.3.
/// `values` has two or more.
pub(crate) fn bca_of_mean(values: &[f64]) -> Interval {
    let method = Method::Bca { resamples: RESAMPLES, seed: SEED };
    let n = values.len();
    let count = n as f64;
    let sum: f64 = values.iter().sum();
    let mean = sum / count;

    let mut random = Draws::from(SEED);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            (0..n).map(|_| values[below(random.next(), n as u64) as usize]).sum::<f64>() / count
        })
        .collect();
    means.sort_by(f64::total_cmp);

    // Ties count half: of equal values none is below, and the interval must still be theirs.
    let below = means.partition_point(|m| *m < mean) as f64;
    let ties = means.partition_point(|m| *m <= mean) as f64 - below;
    let share = (below + ties / 2.0) / f64::from(RESAMPLES);
    let half_a_resample = 0.5 / f64::from(RESAMPLES);
    let bias = normal(share.clamp(half_a_resample, 1.0 - half_a_resample));

    // The mean without value i differs from the mean of all by (mean - x_i) / (n - 1); the
    // factor cancels in the skewness.
    let (mut squares, mut cubes) = (0.0, 0.0);
    for value in values {
        let away = value - mean;
        squares += away * away;
        cubes += away * away * away;
    }
    let acceleration = if squares > 0.0 { cubes / (6.0 * squares.powf(1.5)) } else { 0.0 };

    let end = |tail: f64| {
        let z = bias + normal(tail);
        let adjusted = normal_cdf(bias + z / (1.0 - acceleration * z));
        let last = means.len() - 1;
        means[((adjusted * means.len() as f64).floor() as usize).min(last)]
    };
    Interval { low: end(TAIL), high: end(1.0 - TAIL), method }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_theory_on_a_normal_sample() {
        // The normal quantiles of 200 even shares: mean 0, sd close to 1.
        let values: Vec<f64> = (0..200).map(|i| normal((f64::from(i) + 0.5) / 200.0)).collect();
        let interval = bca_of_mean(&values);
        let half = 1.96 / 200.0_f64.sqrt();
        assert!((interval.low + half).abs() < 0.08 * half, "{interval:?}");
        assert!((interval.high - half).abs() < 0.08 * half, "{interval:?}");
        assert_eq!(interval, bca_of_mean(&values));
    }

    #[test]
    fn leans_towards_the_long_tail() {
        let values: Vec<f64> = (0..60).map(|i| -(1.0 - (f64::from(i) + 0.5) / 60.0).ln()).collect();
        let mean = values.iter().sum::<f64>() / 60.0;
        let interval = bca_of_mean(&values);
        assert!(interval.high - mean > 1.1 * (mean - interval.low), "{interval:?} {mean}");
    }

    #[test]
    fn equal_values_have_an_interval_of_no_width() {
        let interval = bca_of_mean(&[5.0; 30]);
        assert_eq!((interval.low, interval.high), (5.0, 5.0));
    }
}
