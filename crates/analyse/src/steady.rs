/// How many rounds the steady state is judged by.
pub const STEADY_ROUNDS: usize = 5;
/// The largest excursion of the rounds, as a share of their mean.
pub const STEADY_RANGE: f64 = 0.20;
/// The largest excursion of the fitted line, as a share of the mean.
pub const STEADY_FIT_RANGE: f64 = 0.10;

/// Five rounds, judged; in the rounds' unit, e.g. ops/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyRounds {
    pub mean: f64,
    /// Largest round - smallest round.
    pub range: f64,
    /// Slope of the least-squares line, per round; negative where it falls.
    pub slope: f64,
    /// How far that line moves over the five rounds: `4 |slope|`.
    pub fit_range: f64,
    pub steady: bool,
}

/// Whether five consecutive rounds are steady.
///
/// `max - min <= 0.20 mean` and `|slope| (5 - 1) <= 0.10 mean`, the slope by least squares over
/// the rounds' numbers. Source: SNIA Solid State Storage Performance Test Specification 2.0.1,
/// definition of the steady state. A mean that is not positive, or a round that is not a
/// number, is not steady.
pub fn steady(rounds: &[f64; STEADY_ROUNDS]) -> SteadyRounds {
    let n = STEADY_ROUNDS as f64;
    let mean = rounds.iter().sum::<f64>() / n;
    let highest = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lowest = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let middle = (n - 1.0) / 2.0;
    let (mut along, mut squares) = (0.0, 0.0);
    for (round, value) in rounds.iter().enumerate() {
        let x = round as f64 - middle;
        along += x * (value - mean);
        squares += x * x;
    }
    let slope = along / squares;
    let range = highest - lowest;
    let fit_range = slope.abs() * (n - 1.0);
    // A NaN fails every one of these.
    let steady = mean > 0.0 && range <= STEADY_RANGE * mean && fit_range <= STEADY_FIT_RANGE * mean;
    SteadyRounds { mean, range, slope, fit_range, steady }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_condition_decides_by_itself() {
        assert!(steady(&[100.0; 5]).steady);
        // Range 20, no slope: at the limit.
        assert!(steady(&[110.0, 90.0, 100.0, 90.0, 110.0]).steady);
        // Range 22, no slope.
        let wide = steady(&[111.0, 89.0, 100.0, 89.0, 111.0]);
        assert!(!wide.steady && wide.fit_range < 1e-9);
        // Rises by 2.5 a round: fit range 10 of a mean of 100; by 3 it is 12 and not steady.
        assert!(steady(&[95.0, 97.5, 100.0, 102.5, 105.0]).steady);
        let rising = steady(&[94.0, 97.0, 100.0, 103.0, 106.0]);
        assert!(!rising.steady && rising.range <= STEADY_RANGE * rising.mean);
        assert!((rising.slope - 3.0).abs() < 1e-12 && (rising.fit_range - 12.0).abs() < 1e-12);
        assert!(!steady(&[106.0, 103.0, 100.0, 97.0, 94.0]).steady);
    }

    #[test]
    fn non_positive_and_non_finite_rounds_are_not_steady() {
        assert!(!steady(&[0.0; 5]).steady);
        assert!(!steady(&[1.0, 1.0, f64::NAN, 1.0, 1.0]).steady);
        assert!(!steady(&[1.0, 1.0, f64::INFINITY, 1.0, 1.0]).steady);
    }
}
