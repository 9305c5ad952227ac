use std::fmt;

use thiserror::Error;

/// Every interval of this crate is meant to cover the truth this often.
pub const LEVEL: f64 = 0.95;
/// The probability outside of it on each side.
pub(crate) const TAIL: f64 = (1.0 - LEVEL) / 2.0;

/// A 95 % interval and how it was obtained. `docs/statistics.md` says what each covers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    pub method: IntervalMethod,
}

impl Interval {
    pub fn covers(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// How an interval was obtained, with what is needed to obtain it again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IntervalMethod {
    /// Student's t around the mean of independent values.
    StudentT { df: f64 },
    /// Student's t around the mean of the logarithms, and so around the median of values whose
    /// logarithms are about normal.
    LogarithmicT { df: f64 },
    /// Bootstrap-t around the mean: t with the values' own distribution.
    BootstrapT { resamples: u32, seed: u64 },
    /// Order statistics of these ranks, counted from 1: no distribution is assumed.
    OrderStatistics { low_rank: u64, high_rank: u64 },
    /// Welch's t on logarithms, from repeats on both sides.
    BetweenRuns { df: f64 },
    /// The same, with a side of a single run whose variance is from within it.
    WithinRun { df: f64 },
    /// From the variation of a figure within each of these runs, by batches on logarithms.
    Batches { df: f64, runs: u64 },
    /// Welch's t of a contrast of cells in a factorial: of their means, or where a cell has 5
    /// repeats or more of 20 % trimmed means (`trimmed`); of logarithms or of the values
    /// themselves. `pooled`: a cell with a single repeat took the spread of the others.
    Contrast { df: f64, logarithms: bool, trimmed: bool, pooled: bool },
    /// The same runs are on both sides.
    SameRuns,
}

impl fmt::Display for IntervalMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntervalMethod::StudentT { df } => write!(f, "Student's t, {df} degrees of freedom"),
            IntervalMethod::LogarithmicT { df } => {
                write!(f, "Student's t on logarithms, {df} degrees of freedom")
            }
            IntervalMethod::BootstrapT { resamples, seed } => {
                write!(f, "bootstrap-t of the mean, {resamples} resamples, seed {seed}")
            }
            IntervalMethod::OrderStatistics { low_rank, high_rank } => {
                write!(f, "order statistics {low_rank} and {high_rank}")
            }
            IntervalMethod::BetweenRuns { df } => {
                write!(f, "between runs: Welch's t on logarithms, {df:.1} degrees of freedom")
            }
            IntervalMethod::WithinRun { df } => write!(
                f,
                "within a run: Welch's t on logarithms, {df:.1} degrees of freedom; \
                 variation from run to run is not covered"
            ),
            IntervalMethod::Batches { df, runs: 1 } => write!(
                f,
                "within the run: batches on logarithms, {df:.1} degrees of freedom; variation \
                 from run to run is not covered"
            ),
            IntervalMethod::Batches { df, runs } => write!(
                f,
                "within the {runs} runs, which vary more in themselves than they differ: batches on \
                 logarithms, {df:.1} degrees of freedom"
            ),
            IntervalMethod::Contrast { df, logarithms, trimmed, pooled } => {
                let of = match (trimmed, logarithms) {
                    (true, true) => "20 % trimmed means of logarithms",
                    (true, false) => "20 % trimmed means",
                    (false, true) => "means of logarithms",
                    (false, false) => "means",
                };
                write!(f, "contrast of cells: Welch's t on {of}, {df:.1} degrees of freedom")?;
                match pooled {
                    true => f.write_str("; a cell with one run took the spread of the others"),
                    false => Ok(()),
                }
            }
            IntervalMethod::SameRuns => f.write_str("the same runs on both sides"),
        }
    }
}

/// Why there is no interval.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum NoInterval {
    #[error("one value has no interval; repeat the measurement")]
    OneValue,
    #[error("{got} values are too few for this interval; it needs {needed}")]
    TooFewValues { got: u64, needed: u64 },
    #[error("{got} samples are too few for p{percentile}; its interval needs {needed}")]
    TooFewSamples { percentile: f64, got: u64, needed: u64 },
    #[error("no percentile of 0 or below, or of 100 or above, has an interval (got {0})")]
    Percentile(f64),
    #[error(
        "not enough data: {got} full intervals in the time series of a single run, of which \
         {needed} are needed; measure longer or repeat"
    )]
    ShortSeries { got: usize, needed: usize },
    #[error(
        "not enough data: {got:.0} operations in a typical interval of the time series, of \
         which p{percentile} needs {needed:.0}; repeat the runs"
    )]
    SparseSeries { percentile: f64, got: f64, needed: f64 },
    #[error(
        "not enough data: neighbouring intervals of a single run are correlated, and worth only \
         {effective:.1} independent ones; measure longer or repeat"
    )]
    Correlated { effective: f64 },
    #[error("not enough data: a single run has one value of this; repeat the runs")]
    NoSeries,
    #[error("a value of zero or below has no ratio")]
    NotPositive,
}
