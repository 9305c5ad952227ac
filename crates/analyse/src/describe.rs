use thiserror::Error;

use crate::bootstrap::bootstrap_t_of_mean;
use crate::interval::{Interval, IntervalMethod, LEVEL, NoInterval, TAIL};
use crate::moments::{Moments, moments};
use crate::quantile::{binomial, student};

/// From this many values on, the interval of the mean is bootstrapped. Below it the bootstrap
/// covers too little or is far too wide, because few values repeat too often in a resample
/// (docs/decisions/0011-bootstrap-t.md).
pub const BOOTSTRAP_FROM: usize = 6;

#[derive(Debug, Clone, PartialEq, Error)]
pub enum DescribeError {
    #[error("there are no values to describe")]
    Empty,
    #[error("value {index} is {value}, which is not a number that can be described")]
    NotFinite { index: usize, value: f64 },
}

/// A summary of repeats, in the values' own unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    pub n: usize,
    /// The middle value; of an even number the mean of the two middle ones.
    pub median: f64,
    pub mean: f64,
    /// Sample standard deviation, with n - 1; None of a single value.
    pub sd: Option<f64>,
    /// Coefficient of variation, `sd / |mean|`; None of a single value or a mean of 0.
    pub cv: Option<f64>,
    pub min: f64,
    pub max: f64,
    pub mean_interval: Result<Interval, NoInterval>,
    pub median_interval: Result<Interval, NoInterval>,
}

impl Description {
    /// The interval to print beside the median: the median's own; of a single run that of the
    /// variation within it, where that is known. [`IntervalMethod`] says which it is.
    pub fn interval(&self) -> Result<Interval, NoInterval> {
        self.median_interval.clone().or_else(|_| self.mean_interval.clone())
    }
}

/// Describes independent values, such as the repeats of one cell.
///
/// - mean: `mean +- t(0.975, n - 1) sd / sqrt(n)` for 2 to 5 values (Student, Biometrika 6,
///   1908), from 6 on the bootstrap-t (Efron and Tibshirani 1993, ch. 12.5) with a fixed seed, or
///   still Student's where the values hardly differ;
/// - median: from 6 values on the order statistics of ranks `l` and `n + 1 - l` with
///   `P(Binomial(n, 1/2) < l) <= 0.025` (Hahn and Meeker, "Statistical Intervals", 1991, ch.
///   5.2); of 2 to 5 positive values Student's on their logarithms, `exp(m +- t s / sqrt(n))`, which
///   is about the median where they are log-normal (ch. 4.4) and never reaches 0; of 2 to 5 others
///   Student's;
/// - a single value has neither.
///
/// Errors: no values; a value that is NaN or infinite.
pub fn describe(values: &[f64]) -> Result<Description, DescribeError> {
    describe_with(values, mean_interval)
}

/// As [`describe`], but with Student's interval of the mean at every size: for where only
/// [`Description::interval`] is shown, which is the same. A bootstrap of each of a study's cells
/// takes minutes where they are many.
///
/// Errors: as of [`describe`].
pub fn describe_by_median(values: &[f64]) -> Result<Description, DescribeError> {
    describe_with(values, |values, mean, sd| students_interval(values.len(), mean, sd))
}

fn describe_with(
    values: &[f64],
    mean_interval: impl Fn(&[f64], f64, Option<f64>) -> Result<Interval, NoInterval>,
) -> Result<Description, DescribeError> {
    if let Some((index, value)) = values.iter().enumerate().find(|(_, v)| !v.is_finite()) {
        return Err(DescribeError::NotFinite { index, value: *value });
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
        return Err(DescribeError::Empty);
    };
    let Moments { mean, sd } = moments(values);
    Ok(Description {
        n: values.len(),
        median: median_of_sorted(&sorted),
        mean,
        sd,
        cv: sd.filter(|_| mean != 0.0).map(|sd| sd / mean.abs()),
        min,
        max,
        mean_interval: mean_interval(values, mean, sd),
        median_interval: median_interval(&sorted, mean, sd),
    })
}

/// NaN of no values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

/// NaN of no values: callers have at least one.
fn median_of_sorted(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => sorted[n / 2 - 1].midpoint(sorted[n / 2]),
    }
}

fn mean_interval(values: &[f64], mean: f64, sd: Option<f64>) -> Result<Interval, NoInterval> {
    if values.len() >= BOOTSTRAP_FROM
        && let Some(interval) = bootstrap_t_of_mean(values)
    {
        return Ok(interval);
    }
    students_interval(values.len(), mean, sd)
}

fn students_interval(n: usize, mean: f64, sd: Option<f64>) -> Result<Interval, NoInterval> {
    let sd = sd.ok_or(NoInterval::OneValue)?;
    let n = n as f64;
    let df = n - 1.0;
    let half = student(1.0 - TAIL, df) * sd / n.sqrt();
    Ok(Interval { low: mean - half, high: mean + half, method: IntervalMethod::StudentT { df } })
}

fn median_interval(sorted: &[f64], mean: f64, sd: Option<f64>) -> Result<Interval, NoInterval> {
    /// 2 (1/2)^n <= 0.05 from here on.
    const NEEDED: u64 = 6;
    let n = sorted.len() as u64;
    if n < NEEDED {
        let of = match sorted.first() {
            Some(least) if *least > 0.0 => logarithmic_interval(sorted),
            _ => students_interval(sorted.len(), mean, sd),
        }?;
        // Equal values have no width, and the median is beside them by rounding.
        let median = median_of_sorted(sorted);
        return Ok(Interval { low: of.low.min(median), high: of.high.max(median), ..of });
    }
    let low_rank = rank_with_tail_below(n);
    let high_rank = n + 1 - low_rank;
    Ok(Interval {
        low: sorted[low_rank as usize - 1],
        high: sorted[high_rank as usize - 1],
        method: IntervalMethod::OrderStatistics { low_rank, high_rank },
    })
}

/// Student's interval of the logarithms of positive values.
fn logarithmic_interval(values: &[f64]) -> Result<Interval, NoInterval> {
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let Moments { mean, sd } = moments(&logarithms);
    let of_logarithms = students_interval(values.len(), mean, sd)?;
    Ok(Interval {
        low: of_logarithms.low.exp(),
        high: of_logarithms.high.exp(),
        method: IntervalMethod::LogarithmicT { df: values.len() as f64 - 1.0 },
    })
}

/// The largest l with P(Binomial(n, 1/2) <= l - 1) <= 0.025, at least 1.
fn rank_with_tail_below(n: u64) -> u64 {
    // The quantile is the smallest k with P(<= k) >= 0.025, so P(<= k - 1) is below it.
    binomial((1.0 - LEVEL) / 2.0, n, 0.5).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's sleep data (Biometrika 6, 1908): extra hours, second drug.
    const SLEEP: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

    fn close(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() <= within, "{a} is not {b}");
    }

    #[test]
    fn students_sleep_data() {
        let d = describe(&SLEEP).unwrap();
        close(d.mean, 2.33, 1e-12);
        close(d.sd.unwrap(), 2.002_249, 1e-6);
        close(d.median, 1.75, 1e-12);
        close(d.cv.unwrap(), 2.002_249 / 2.33, 1e-6);
        assert_eq!((d.n, d.min, d.max), (10, -0.1, 5.5));
        // R: t.test(sleep$extra[11:20])$conf.int is 0.8976775 3.7623225; the bootstrap leans
        // towards the long tail.
        let mean = d.mean_interval.unwrap();
        assert!(matches!(mean.method, IntervalMethod::BootstrapT { .. }));
        close(mean.low, 0.897_677_5, 0.25);
        close(mean.high, 3.762_322_5, 0.6);
        // Of the first five by hand: mean 0.76, sd^2 = 2.592 / 4, t(0.975, 4) = 2.776445.
        let mean = describe(&SLEEP[..5]).unwrap().mean_interval.unwrap();
        let half = 2.776_445 * (2.592_f64 / 4.0 / 5.0).sqrt();
        close(mean.low, 0.76 - half, 1e-6);
        close(mean.high, 0.76 + half, 1e-6);
        assert_eq!(mean.method, IntervalMethod::StudentT { df: 4.0 });
    }

    #[test]
    fn median_interval_has_the_ranks_of_published_tables() {
        // Two-sided 95 % ranks of the sign test's table.
        for (n, low, high) in
            [(6, 1, 6), (9, 2, 8), (10, 2, 9), (15, 4, 12), (20, 6, 15), (25, 8, 18)]
        {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            let interval = describe(&values).unwrap().median_interval.unwrap();
            assert_eq!((interval.low, interval.high), (f64::from(low), f64::from(high)), "{n}");
        }
    }

    #[test]
    fn statistics_are_absent_where_undefined() {
        let one = describe(&[7.0]).unwrap();
        assert_eq!((one.median, one.sd, one.cv), (7.0, None, None));
        assert_eq!(one.interval(), Err(NoInterval::OneValue));
        assert_eq!(describe(&[]), Err(DescribeError::Empty));
        assert!(matches!(
            describe(&[1.0, f64::NAN]),
            Err(DescribeError::NotFinite { index: 1, .. })
        ));
        assert_eq!(describe(&[-1.0, 1.0]).unwrap().cv, None);
    }

    /// By hand: the logarithms of 1, 2 and 4 have the mean ln 2 and the sd ln 2; t(0.975, 2) is
    /// 4.302653.
    #[test]
    fn few_values_have_an_interval_of_their_median_above_zero() {
        let of = describe(&[4.0, 1.0, 2.0]).unwrap();
        let interval = of.interval().unwrap();
        let factor = (4.302_653 * 2.0_f64.ln() / 3.0_f64.sqrt()).exp();
        close(interval.low, 2.0 / factor, 1e-6);
        close(interval.high, 2.0 * factor, 1e-5);
        assert_eq!(interval.method, IntervalMethod::LogarithmicT { df: 2.0 });
        assert!(of.mean_interval.unwrap().low < 0.0);
        // Values on both sides of 0 have no logarithms.
        let of = describe(&[-1.0, 1.0, 2.0]).unwrap();
        assert_eq!(of.median_interval, of.mean_interval);
    }

    #[test]
    fn many_values_are_bootstrapped() {
        let values: Vec<f64> = (0..40).map(f64::from).collect();
        let d = describe(&values).unwrap();
        let interval = d.mean_interval.clone().unwrap();
        assert!(matches!(interval.method, IntervalMethod::BootstrapT { .. }));
        let half = 2.022_69 * d.sd.unwrap() / 40.0_f64.sqrt();
        close(interval.high - interval.low, 2.0 * half, 0.12 * half);
        assert!(matches!(d.interval().unwrap().method, IntervalMethod::OrderStatistics { .. }));
    }
}
