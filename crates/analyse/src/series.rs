use crate::interval::NoInterval;
use crate::moments::moments;

/// The fewest intervals for an estimate of autocorrelation.
pub(crate) const MIN_INTERVALS: usize = 10;
/// A long series is cut into this many batches, so that most of the correlation stays inside one
/// (Schmeiser, "Batch size effects in the analysis of simulation output", 1982: more than about 30
/// gain nothing).
const BATCHES: usize = 20;
/// The fewest independent values for an estimate of variance.
const MIN_EFFECTIVE: f64 = 4.0;

/// The variance of a figure within one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WithinRun {
    /// Variance of the figure over its square: the variance of its logarithm.
    pub(crate) relative_variance: f64,
    pub(crate) df: f64,
}

/// The variance of a figure of a whole run from its value in each interval of the run.
///
/// From 40 intervals on they are averaged into 20 batches. Of the k batches x_i and the
/// figure T of the whole run: `s^2 = sum (x_i - T)^2 / (k - 1)` (sectioning: Asmussen and
/// Glynn, "Stochastic Simulation", 2007, III.5), `var T = s^2 / k_eff`,
/// `k_eff = k (1 - r) / (1 + r)`, `df = k_eff - 1`. `r` is the lag-1 autocorrelation corrected
/// for its bias, `(k r1 + 1) / (k - 4)` (Marriott and Pope, Biometrika 41, 1954), not below 0.
/// Errors: fewer than 10 intervals; k_eff below 4; a figure that is not positive.
pub(crate) fn within(values: &[f64], whole: f64) -> Result<WithinRun, NoInterval> {
    if values.len() < MIN_INTERVALS {
        return Err(NoInterval::ShortSeries { got: values.len(), needed: MIN_INTERVALS });
    }
    if whole <= 0.0 {
        return Err(NoInterval::NotPositive);
    }
    let size = (values.len() / BATCHES).max(1);
    // Intervals that do not fill a batch are left out at the front, where a run settles.
    let batches: Vec<f64> = values[values.len() % size..]
        .chunks_exact(size)
        .map(|batch| batch.iter().sum::<f64>() / size as f64)
        .collect();
    let k = batches.len() as f64;
    let squares: f64 = batches.iter().map(|x| (x - whole) * (x - whole)).sum();
    let r = (k * lag_one(&batches) + 1.0) / (k - 4.0);
    let r = r.clamp(0.0, 1.0);
    let effective = k * (1.0 - r) / (1.0 + r);
    if effective < MIN_EFFECTIVE {
        return Err(NoInterval::Correlated { effective });
    }
    let relative_variance = squares / (k - 1.0) / effective / (whole * whole);
    Ok(WithinRun { relative_variance, df: effective - 1.0 })
}

/// Lag-1 autocorrelation; 0 of a series that does not move.
fn lag_one(values: &[f64]) -> f64 {
    let mean = moments(values).mean;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    values.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / squares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autocorrelation_by_hand() {
        // 1 2 3 4: mean 2.5, products (-1.5)(-0.5) + (-0.5)(0.5) + (0.5)(1.5) = 1.25 over 5.
        assert!((lag_one(&[1.0, 2.0, 3.0, 4.0]) - 0.25).abs() < 1e-12);
        assert_eq!(lag_one(&[3.0; 8]), 0.0);
    }

    #[test]
    fn alternating_values_are_taken_as_independent() {
        let values: Vec<f64> =
            (0..12).map(|i| 100.0 + if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let result = within(&values, 100.0).unwrap();
        // s^2 = 12 / 11, and no neighbour is alike: 12 effective values.
        assert!((result.relative_variance - 12.0 / 11.0 / 12.0 / 1e4).abs() < 1e-15);
        assert_eq!(result.df, 11.0);
    }

    #[test]
    fn a_trend_or_a_short_series_is_not_enough() {
        let rising: Vec<f64> = (0..30).map(|i| 100.0 + f64::from(i)).collect();
        assert!(matches!(within(&rising, 114.5), Err(NoInterval::Correlated { .. })));
        let long: Vec<f64> = (0..300).map(|i| 100.0 + f64::from(i)).collect();
        assert!(matches!(within(&long, 249.5), Err(NoInterval::Correlated { .. })));
        assert_eq!(
            within(&rising[..9], 100.0),
            Err(NoInterval::ShortSeries { got: 9, needed: MIN_INTERVALS })
        );
        assert_eq!(within(&[0.0; 20], 0.0), Err(NoInterval::NotPositive));
    }
}
