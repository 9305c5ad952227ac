use crate::interval::{Interval, IntervalMethod, TAIL};
use crate::moments::{Moments, moments};
use model::random::{Draws, below};

/// Enough that the ends move by about 1 % of the width from seed to seed.
const RESAMPLES: u32 = 4000;
/// Fixed, so that the same values always give the same interval.
const SEED: u64 = 0x6b76_6d65_7465_7231;

/// The bootstrap-t interval of the mean, in the values' unit; None where many resamples have no
/// spread (few different values), so that their t is undefined.
///
/// With resampled means m* and standard deviations s*, the ends are
/// `m - q(0.975) s / sqrt(n)` and `m - q(0.025) s / sqrt(n)`, q the quantiles of
/// `t* = (m* - m) / (s* / sqrt(n))`: the values' own distribution of t in place of Student's.
/// Source: Efron, Tibshirani, "An Introduction to the Bootstrap" (1993), ch. 12.5.
/// `values` has two or more.
pub(crate) fn bootstrap_t_of_mean(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    let root = (n as f64).sqrt();
    let Moments { mean, sd } = moments(values);
    let error = sd? / root;
    let method = IntervalMethod::BootstrapT { resamples: RESAMPLES, seed: SEED };
    if error == 0.0 {
        return Some(Interval { low: mean, high: mean, method });
    }
    let mut random = Draws::from(SEED);
    let mut sample = vec![0.0; n];
    let mut t: Vec<f64> = Vec::with_capacity(RESAMPLES as usize);
    for _ in 0..RESAMPLES {
        sample.fill_with(|| values[below(random.next(), n as u64) as usize]);
        let Moments { mean: again, sd } = moments(&sample);
        // A sum of equal values is not always exactly their multiple.
        let spread = sd.filter(|sd| *sd > 1e-9 * error);
        t.extend(spread.map(|sd| (again - mean) / (sd / root)));
    }
    let lost = 1.0 - t.len() as f64 / f64::from(RESAMPLES);
    if lost > TAIL {
        return None;
    }
    t.sort_by(f64::total_cmp);
    let quantile = |share: f64| t[((share * t.len() as f64) as usize).min(t.len() - 1)];
    let end = |share: f64| mean - quantile(share) * error;
    Some(Interval { low: end(1.0 - TAIL), high: end(TAIL), method })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantile::normal;

    #[test]
    fn agrees_with_theory_on_a_normal_sample() {
        // The normal quantiles of 200 even shares: mean 0, sd close to 1.
        let values: Vec<f64> = (0..200).map(|i| normal((f64::from(i) + 0.5) / 200.0)).collect();
        let interval = bootstrap_t_of_mean(&values).unwrap();
        let half = 1.972 / 200.0_f64.sqrt();
        assert!((interval.low + half).abs() < 0.08 * half, "{interval:?}");
        assert!((interval.high - half).abs() < 0.08 * half, "{interval:?}");
        assert_eq!(Some(interval), bootstrap_t_of_mean(&values));
    }

    #[test]
    fn leans_towards_the_long_tail() {
        let values: Vec<f64> = (0..60).map(|i| -(1.0 - (f64::from(i) + 0.5) / 60.0).ln()).collect();
        let mean = values.iter().sum::<f64>() / 60.0;
        let interval = bootstrap_t_of_mean(&values).unwrap();
        assert!(interval.high - mean > 1.2 * (mean - interval.low), "{interval:?} {mean}");
    }

    #[test]
    fn values_that_hardly_differ_have_no_width_or_no_bootstrap() {
        let interval = bootstrap_t_of_mean(&[5.0; 30]).unwrap();
        assert_eq!((interval.low, interval.high), (5.0, 5.0));
        // One in ten is another: every third resample is without it.
        let mut values = [5.1; 10];
        values[3] = 6.0;
        assert_eq!(bootstrap_t_of_mean(&values), None);
    }
}
