use crate::interval::{Interval, IntervalMethod, NoInterval, TAIL};
use crate::moments::moments;
use crate::quantile::student;
use crate::series::WithinRun;

/// One side of a comparison: the mean of its logarithms and its variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LogSample {
    log: f64,
    /// Of `log`, not of a single value.
    variance: f64,
    df: f64,
    within_run: bool,
}

impl LogSample {
    /// From the repeats: mean of the logarithms, `s^2 / n`, n - 1 degrees of freedom.
    /// Errors: a value that is not positive; fewer than two values.
    pub(crate) fn between(values: &[f64]) -> Result<LogSample, NoInterval> {
        if values.iter().any(|v| *v <= 0.0) {
            return Err(NoInterval::NotPositive);
        }
        let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
        let result = moments(&logs);
        let sd = result.sd.ok_or(NoInterval::OneValue)?;
        let n = logs.len() as f64;
        Ok(LogSample { log: result.mean, variance: sd * sd / n, df: n - 1.0, within_run: false })
    }

    /// From a single run and the variance within it. Errors: a value that is not positive.
    pub(crate) fn within(value: f64, within: WithinRun) -> Result<LogSample, NoInterval> {
        if value <= 0.0 {
            return Err(NoInterval::NotPositive);
        }
        let WithinRun { relative_variance, df } = within;
        Ok(LogSample { log: value.ln(), variance: relative_variance, df, within_run: true })
    }

    /// The number of repeats of [`LogSample::between`].
    pub(crate) fn repeats(&self) -> f64 {
        self.df + 1.0
    }

    /// The same mean and spread from another number of repeats.
    pub(crate) fn with_repeats(self, repeats: f64) -> LogSample {
        let single = self.variance * self.repeats();
        LogSample { variance: single / repeats, df: repeats - 1.0, ..self }
    }
}

/// The difference of the mean logarithms, b less a, and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LogDifference {
    pub(crate) log: f64,
    pub(crate) se: f64,
    pub(crate) df: f64,
}

/// `se^2 = v_a + v_b` and `df = (v_a + v_b)^2 / (v_a^2 / df_a + v_b^2 / df_b)` (Welch, Biometrika
/// 34, 1947).
pub(crate) fn log_difference(a: LogSample, b: LogSample) -> LogDifference {
    let variance = a.variance + b.variance;
    let df = if variance > 0.0 {
        variance * variance / (a.variance * a.variance / a.df + b.variance * b.variance / b.df)
    } else {
        a.df + b.df
    };
    LogDifference { log: b.log - a.log, se: variance.sqrt(), df }
}

/// The 95 % interval of the ratio b / a.
///
/// `exp(d +- (t(0.975, df) se + resolution))` with `d`, `se` and `df` of [`log_difference`] (the
/// logarithm makes "10 % more" and "10 % less" opposite). `resolution` is the relative rounding of
/// the values: a smaller difference is not significant.
pub(crate) fn ratio_interval(a: LogSample, b: LogSample, resolution: f64) -> Interval {
    let LogDifference { log, se, df } = log_difference(a, b);
    let half = if se > 0.0 { student(1.0 - TAIL, df) * se } else { 0.0 };
    let half = half + resolution;
    let method = if a.within_run || b.within_run {
        IntervalMethod::WithinRun { df }
    } else {
        IntervalMethod::BetweenRuns { df }
    };
    Interval { low: (log - half).exp(), high: (log + half).exp(), method }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_sleep_data() {
        // The logarithms of these are Student's data, so the interval is R's
        // t.test(extra ~ group): df = 17.776, -3.3654832 0.2054832, of group 1 - group 2.
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0].map(f64::exp);
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4].map(f64::exp);
        let (first, second) =
            (LogSample::between(&first).unwrap(), LogSample::between(&second).unwrap());
        let result = ratio_interval(second, first, 0.0);
        assert!((result.low.ln() + 3.365_483_2).abs() < 1e-6, "{}", result.low.ln());
        assert!((result.high.ln() - 0.205_483_2).abs() < 1e-6, "{}", result.high.ln());
        let IntervalMethod::BetweenRuns { df } = result.method else { panic!("{result:?}") };
        assert!((df - 17.776).abs() < 1e-3);
    }

    #[test]
    fn exchanging_the_sides_inverts_the_interval() {
        let a = LogSample::between(&[100.0, 104.0, 99.0]).unwrap();
        let b = LogSample::between(&[90.0, 93.0, 95.0, 91.0]).unwrap();
        let (ab, ba) = (ratio_interval(a, b, 0.001), ratio_interval(b, a, 0.001));
        assert!((ab.low * ba.high - 1.0).abs() < 1e-12);
        assert!((ab.high * ba.low - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_difference_below_the_resolution_is_not_significant() {
        let a = LogSample::between(&[1000.0, 1000.0]).unwrap();
        let b = LogSample::between(&[1000.5, 1000.5]).unwrap();
        assert!(ratio_interval(a, b, 0.001).covers(1.0));
        assert!(!ratio_interval(a, b, 0.0).covers(1.0));
    }
}
