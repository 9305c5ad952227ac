//! Where a series changes its level: E-divisive means, by bisection.
//!
//! Source: Matteson and James, "A Nonparametric Approach for Multiple Change Point Analysis of
//! Multivariate Data", JASA 109 (2014), with exponent 1. Each segment is split where the scaled
//! energy distance of its sides is greatest, as long as a permutation test finds that distance
//! greater than chance.

use model::random::{Draws, RandomStream, below};

use crate::describe::median;

/// Permutations of each test: the least p is 0.001.
const PERMUTATIONS: u32 = 999;
/// A change is one that chance gives in at most one of so many segments without a change.
const LEVEL: f64 = 0.01;
/// The fewest values on each side: 4 of 8 stand first in one of 35 orders that differ, 5 of 10 in
/// one of 126, which is rarer than [`LEVEL`].
const FEWEST: usize = 5;
/// The fewest values in which a change can be found.
pub const CHANGES_FROM: usize = 2 * FEWEST;
const SEED: u64 = 0x6b76_6d65_7465_7221;

/// Where the level changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The first value of the new level, counted from 0.
    pub at: usize,
    /// How often chance gives a distance as great: of 1,000 permutations.
    pub p: f64,
    /// Medians of the levels before and from there on.
    pub before: f64,
    pub after: f64,
}

impl ChangePoint {
    /// The new level over the old one.
    pub fn ratio(&self) -> f64 {
        self.after / self.before
    }
}

/// The changes of a series, in its order. Values that are no numbers must be left out before.
/// Takes O(n log n) a permutation.
pub fn change_points(values: &[f64]) -> Vec<ChangePoint> {
    let mut found: Vec<(usize, f64)> = Vec::new();
    let mut segments = vec![(0, values.len())];
    while let Some((start, end)) = segments.pop() {
        if let Some((at, p)) = split(&values[start..end], start as u64) {
            found.push((start + at, p));
            segments.extend([(start, start + at), (start + at, end)]);
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let ends = found.iter().map(|(at, _)| *at).skip(1).chain([values.len()]);
    let starts = [0].into_iter().chain(found.iter().map(|(at, _)| *at));
    let level = |range: std::ops::Range<usize>| median(&values[range]);
    let change = |((start, (at, p)), end): ((usize, &(usize, f64)), usize)| ChangePoint {
        at: *at,
        p: *p,
        before: level(start..*at),
        after: level(*at..end),
    };
    starts.zip(&found).zip(ends).map(change).collect()
}

/// The split of one segment and its p, if it is more than chance.
fn split(values: &[f64], purpose: u64) -> Option<(usize, f64)> {
    if values.len() < CHANGES_FROM {
        return None;
    }
    let mut ranks = Ranks::of(values);
    let (at, greatest) = ranks.best_split();
    let mut draws = Draws::from(RandomStream::new(SEED, purpose).at(values.len() as u64));
    let mut as_great = 0;
    for _ in 0..PERMUTATIONS {
        ranks.shuffle(&mut draws);
        as_great += u32::from(ranks.best_split().1 >= greatest);
        // It cannot become rare any more.
        if f64::from(as_great + 1) > LEVEL * f64::from(PERMUTATIONS + 1) {
            return None;
        }
    }
    Some((at, f64::from(as_great + 1) / f64::from(PERMUTATIONS + 1)))
}

/// A segment by the ranks of its values.
struct Ranks {
    /// All values, ascending.
    sorted: Vec<f64>,
    /// The rank of each value, in the order of the series.
    order: Vec<usize>,
    /// Sums of distances within the first values and within the last ones, by their number.
    before: Vec<f64>,
    after: Vec<f64>,
    counts: Fenwick,
    sums: Fenwick,
}

impl Ranks {
    fn of(values: &[f64]) -> Ranks {
        let mut by_value: Vec<usize> = (0..values.len()).collect();
        by_value.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut order = vec![0; values.len()];
        for (rank, at) in by_value.iter().enumerate() {
            order[*at] = rank;
        }
        let sorted = by_value.iter().map(|at| values[*at]).collect();
        let none = || vec![0.0; values.len() + 1];
        let tree = || Fenwick(none());
        Ranks { sorted, order, before: none(), after: none(), counts: tree(), sums: tree() }
    }

    fn shuffle(&mut self, draws: &mut Draws) {
        for last in (1..self.order.len()).rev() {
            self.order.swap(last, below(draws.next(), last as u64 + 1) as usize);
        }
    }

    /// The split with the greatest scaled energy distance of its sides, and that distance.
    fn best_split(&mut self) -> (usize, f64) {
        let n = self.order.len();
        let Ranks { sorted, order, before, after, counts, sums } = self;
        within(sorted, order.iter(), before, (counts, sums));
        within(sorted, order.iter().rev(), after, (counts, sums));
        let all = before[n];
        let mut best = (FEWEST, f64::NEG_INFINITY);
        for first in FEWEST..=n - FEWEST {
            let (a, b) = (first as f64, (n - first) as f64);
            let (within_a, within_b) = (before[first], after[n - first]);
            let between = all - within_a - within_b;
            let pairs = |count: f64| count * (count - 1.0) / 2.0;
            let distance = 2.0 * between / (a * b) - within_a / pairs(a) - within_b / pairs(b);
            let scaled = a * b / (a + b) * distance;
            if scaled > best.1 {
                best = (first, scaled);
            }
        }
        best
    }
}

/// The sum of distances of all pairs among the first values of an order, for each number of them.
fn within<'r>(
    sorted: &[f64],
    order: impl Iterator<Item = &'r usize>,
    into: &mut [f64],
    (counts, sums): (&mut Fenwick, &mut Fenwick),
) {
    counts.clear();
    sums.clear();
    let (mut count, mut sum, mut distances) = (0.0, 0.0, 0.0);
    for (rank, total) in order.zip(&mut into[1..]) {
        let value = sorted[*rank];
        let (less, sum_of_less) = (counts.below(*rank), sums.below(*rank));
        distances += value * less - sum_of_less + (sum - sum_of_less) - value * (count - less);
        *total = distances;
        counts.add(*rank, 1.0);
        sums.add(*rank, value);
        count += 1.0;
        sum += value;
    }
}

/// Prefix sums that can be changed. Source: Fenwick, "A New Data Structure for Cumulative Frequency
/// Tables" (1994).
struct Fenwick(Vec<f64>);

impl Fenwick {
    fn clear(&mut self) {
        self.0.fill(0.0);
    }

    fn add(&mut self, at: usize, value: f64) {
        let mut node = at + 1;
        while node < self.0.len() {
            self.0[node] += value;
            node += node & node.wrapping_neg();
        }
    }

    /// The sum of everything below a place.
    fn below(&self, at: usize) -> f64 {
        let (mut node, mut sum) = (at, 0.0);
        while node > 0 {
            sum += self.0[node];
            node &= node - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values with a standard deviation of about 1 around a level.
    fn noise(seed: u64, count: usize) -> Vec<f64> {
        let mut draws = Draws::from(RandomStream::new(seed, 1).at(0));
        // Irwin-Hall: close to normal.
        let one = |_| (0..12).map(|_| draws.unit()).sum::<f64>() - 6.0;
        (0..count).map(one).collect()
    }

    fn stepped(seed: u64, levels: &[(usize, f64)]) -> Vec<f64> {
        let count = levels.iter().map(|(count, _)| count).sum();
        let levels = levels.iter().flat_map(|(count, level)| std::iter::repeat_n(level, *count));
        noise(seed, count)
            .into_iter()
            .zip(levels)
            .map(|(noise, level)| 100.0 + level + noise)
            .collect()
    }

    #[test]
    fn distances_are_those_of_all_pairs() {
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0];
        let mut ranks = Ranks::of(&values);
        ranks.best_split();
        let pairs = |values: &[f64]| {
            let mut sum = 0.0;
            for (at, a) in values.iter().enumerate() {
                sum += values[..at].iter().map(|b| (a - b).abs()).sum::<f64>();
            }
            sum
        };
        for first in 0..=values.len() {
            assert!((ranks.before[first] - pairs(&values[..first])).abs() < 1e-9);
            assert!((ranks.after[first] - pairs(&values[values.len() - first..])).abs() < 1e-9);
        }
    }

    #[test]
    fn steps_are_found_where_they_are() {
        let values = stepped(7, &[(40, 0.0), (30, 4.0), (30, 1.0)]);
        let found = change_points(&values);
        let at: Vec<usize> = found.iter().map(|change| change.at).collect();
        assert_eq!(at.len(), 2, "{found:?}");
        assert!(at[0].abs_diff(40) <= 2 && at[1].abs_diff(70) <= 2, "{found:?}");
        assert!(found.iter().all(|change| change.p <= LEVEL));
        let levels = [(found[0].before, 100.0), (found[0].after, 104.0), (found[1].after, 101.0)];
        assert!(levels.iter().all(|(level, real)| (level - real).abs() < 0.6), "{found:?}");
        assert_eq!(found[0].after, found[1].before);
    }

    #[test]
    fn a_spike_and_equal_values_are_no_change() {
        let mut values = noise(3, 60);
        values[30] += 50.0;
        assert_eq!(change_points(&values), []);
        assert_eq!(change_points(&[5.0; 50]), []);
        assert_eq!(change_points(&[]), []);
        assert_eq!(change_points(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0]), []);
    }

    #[test]
    fn chance_changes_hardly_anything_and_a_step_of_two_deviations_is_found() {
        let alone = (0..300).filter(|seed| !change_points(&noise(*seed, 40)).is_empty()).count();
        // 1 % of 300: 3; nine or more come in 4 of 1,000 attempts.
        assert!(alone <= 8, "{alone} of 300");
        let found = (0..100)
            .filter(|seed| {
                let found = change_points(&stepped(1000 + seed, &[(20, 0.0), (20, 2.0)]));
                found.iter().any(|change| change.at.abs_diff(20) <= 3)
            })
            .count();
        assert!(found >= 95, "{found} of 100");
    }
}
