//! How many more repeats would decide.

use super::judge::Change;
use crate::quantile::student;
use crate::welch::log_difference;

/// The share of cases in which so many repeats would suffice.
const POWER: f64 = 0.9;
/// Beyond so many for each side the number means nothing: the change is at the threshold.
const MOST: u32 = 1000;

/// The least number of repeats that each side needs more, so that `(t(1 - tail, df) +
/// t(0.9, df)) se + resolution <= |beyond|`, with the change, and the variances of single
/// repeats, as they are now. None of more than 1,000.
///
/// The usual approximation of a t test's power, with a central t for the second term (Chow, Shao,
/// Wang, "Sample Size Calculations in Clinical Research", 2008, ch. 3.2).
pub(super) fn more(change: &Change, tail: f64) -> Option<u32> {
    let suffices = |more: u32| {
        let extra = f64::from(more);
        let a = change.a.with_repeats(change.a.repeats() + extra);
        let b = change.b.with_repeats(change.b.repeats() + extra);
        let then = log_difference(a, b);
        let needed = match then.se > 0.0 {
            true => (student(1.0 - tail, then.df) + student(POWER, then.df)) * then.se,
            false => 0.0,
        };
        needed + change.resolution <= change.beyond.abs()
    };
    if !suffices(MOST) {
        return None;
    }
    let (mut low, mut high) = (0, MOST);
    while high - low > 1 {
        let middle = u32::midpoint(low, high);
        if suffices(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}
