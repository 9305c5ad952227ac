//! Quantiles of the distributions that the intervals are built from.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use statrs::function::beta::checked_beta_reg;
use statrs::function::gamma::ln_gamma;

/// Above this many degrees of freedom the expansion in 1/df is exact to 10^-8.
const EXPAND_FROM_DF: f64 = 1000.0;

/// The upper quantile (`p` in 0.5..1) of Student's t with `df` degrees of freedom, any number;
/// without a positive one there is no information and no bound.
/// The cumulative distribution is inverted by bisection, which ends for any `df`; above 1,000
/// it is the expansion of Abramowitz and Stegun 26.7.5.
pub(crate) fn student(p: f64, df: f64) -> f64 {
    if df >= EXPAND_FROM_DF {
        let z = normal(p);
        let first = (z.powi(3) + z) / 4.0;
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
        return z + first / df + second / (df * df);
    }
    let Ok(t) = StudentsT::new(0.0, 1.0, df) else { return f64::INFINITY };
    let (mut low, mut high) = (0.0, 1.0);
    while t.cdf(high) < p {
        low = high;
        high *= 2.0;
        if high > 1e300 {
            return f64::INFINITY;
        }
    }
    // Halving 60 times leaves less than the spacing of f64 at `high`.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if t.cdf(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Above this many degrees of freedom the tails are the normal's to 10^-6.
const NORMAL_FROM_DF: f64 = 1e6;

/// `P(|T| >= t)` of Student's t with `df` degrees of freedom, for `t` of 0 or more: the
/// regularised incomplete beta function `I(df / (df + t^2); df / 2, 1 / 2)` (Abramowitz and
/// Stegun 26.5.27), which keeps its digits where it is small. 1 without a positive `df`.
pub(crate) fn student_tails(t: f64, df: f64) -> f64 {
    let df = df.min(NORMAL_FROM_DF);
    // The function refuses an invalid number of degrees.
    checked_beta_reg(df / 2.0, 0.5, df / (df + t * t)).unwrap_or(1.0)
}

pub(crate) fn normal(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// Above this variance the normal approximation with its first Cornish-Fisher term is within
/// one rank of the exact quantile, of a standard deviation of more than 100 ranks.
const EXACT_UP_TO_VARIANCE: f64 = 1e4;

/// The smallest k with P(Binomial(n, p) <= k) >= q, for 0 < p < 1 and 0 < q < 1.
/// Exact by summation up to n p (1 - p) = 10^4; above it Cornish-Fisher (Abramowitz and
/// Stegun 26.2.49 with the binomial's skewness), within one rank.
pub(crate) fn binomial(q: f64, n: u64, p: f64) -> u64 {
    let (count, mean) = (n as f64, n as f64 * p);
    let variance = mean * (1.0 - p);
    if variance > EXACT_UP_TO_VARIANCE {
        let z = normal(q);
        let skew = (1.0 - 2.0 * p) * (z * z - 1.0) / 6.0;
        // The half is the correction for continuity, the ceiling makes it a rank.
        let k = mean + z * variance.sqrt() + skew - 0.5;
        return k.ceil().clamp(0.0, count) as u64;
    }
    // Below this the mass is under 10^-20, and its terms are still far above the least f64.
    let mut k = (mean - 12.0 * variance.sqrt() - 12.0).floor().max(0.0);
    let ln_choose = ln_gamma(count + 1.0) - ln_gamma(k + 1.0) - ln_gamma(count - k + 1.0);
    let mut mass = (ln_choose + k * p.ln() + (count - k) * (-p).ln_1p()).exp();
    let mut below = mass;
    while below < q && k < count {
        mass *= (count - k) / (k + 1.0) * (p / (1.0 - p));
        below += mass;
        k += 1.0;
    }
    k as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_agrees_with_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, two-sided 95 %.
        for (df, t) in
            [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (9.0, 2.262), (30.0, 2.042), (100.0, 1.984)]
        {
            assert!((student(0.975, df) - t).abs() < 6e-4, "{df}: {}", student(0.975, df));
        }
        // df 2 has a closed form: t = (2p - 1) sqrt(2 / (1 - (2p - 1)^2)).
        let exact = 0.95 * (2.0_f64 / (1.0 - 0.95 * 0.95)).sqrt();
        assert!((student(0.975, 2.0) - exact).abs() < 1e-9);
        assert!((student(0.975, 1e9) - 1.959_964).abs() < 1e-5);
        let (below, above) = (student(0.975, 999.999), student(0.975, 1000.0));
        assert!((below - above).abs() < 1e-7, "{below} {above}");
        assert!(student(0.975, 0.0).is_infinite());
    }

    #[test]
    fn tails_invert_the_quantile() {
        for df in [1.0, 2.9, 9.0, 100.0, 5e3] {
            for p in [0.1, 0.05, 0.001] {
                let result = student_tails(student(1.0 - p / 2.0, df), df);
                assert!((result / p - 1.0).abs() < 1e-5, "{df} {p} {result}");
            }
        }
        // df 1 is Cauchy's: 1 - 2 atan(t) / pi, which is 2 / (pi t) far out.
        assert!((student_tails(1e9, 1.0) * 1e9 * std::f64::consts::PI / 2.0 - 1.0).abs() < 1e-6);
        assert_eq!(student_tails(0.0, 5.0), 1.0);
        assert_eq!(student_tails(3.0, 0.0), 1.0);
        assert!((student_tails(1.959_964, 1e12) - 0.05).abs() < 1e-6);
    }

    #[test]
    fn normal_agrees_with_tables() {
        assert!((normal(0.975) - 1.959_963_985).abs() < 1e-8);
    }

    #[test]
    fn binomial_by_hand() {
        // Binomial(10, 1/2): cumulative 1, 11, 56, 176, 386, ... of 1024.
        assert_eq!(binomial(0.025, 10, 0.5), 2);
        assert_eq!(binomial(0.5, 10, 0.5), 5);
        assert_eq!(binomial(0.975, 10, 0.5), 8);
        assert_eq!(binomial(11.0 / 1024.0, 10, 0.5), 1);
        // Binomial(100, 0.99): P(all 100) = 0.366, so the upper quantile is 100.
        assert_eq!(binomial(0.975, 100, 0.99), 100);
        assert_eq!(binomial(0.025, 100, 0.99), 97);
    }

    #[test]
    fn approximation_agrees_with_the_sum() {
        // Both sides of the limit, where variance = n p (1 - p) = 10^4.
        for p in [0.5, 0.9, 0.99, 0.999] {
            let n = (EXACT_UP_TO_VARIANCE / (p * (1.0 - p))) as u64;
            for q in [0.025, 0.975] {
                let exact = binomial(q, n - n / 1000, p) as f64;
                let approximate = binomial(q, n + n / 1000, p) as f64;
                // The mean moves by 2 n / 1000 p between the two.
                let moved = (2.0 * (n / 1000) as f64 * p).round();
                assert!((approximate - exact - moved).abs() <= 2.5, "{p} {q}");
            }
        }
    }
}
