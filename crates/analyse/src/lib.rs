//! What measurements say: pure functions over runs, histograms and numbers. No I/O.
//!
//! `docs/statistics.md` says which interval is shown when, and what none of them covers.
#![forbid(unsafe_code)]

mod bootstrap;
mod describe;
mod interval;
mod percentile;
mod quantile;
mod random;
mod steady;

pub use describe::{BOOTSTRAP_FROM, DescribeError, Description, describe};
pub use interval::{Interval, LEVEL, Method, NoInterval};
pub use percentile::{MergeError, merge, percentile_interval, samples_needed};
pub use steady::{STEADY_FIT_RANGE, STEADY_RANGE, STEADY_ROUNDS, Steady, steady};
