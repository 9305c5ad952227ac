//! Whether the popular keys change in the course of the trace.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

/// Intervals before two become one, and the requests of the first ones.
const MOST_INTERVALS: usize = 16;
const FIRST: u64 = 1 << 14;
/// Keys that a sketch holds before it drops the lesser half.
const MOST_KEYS: usize = 4096;
/// The popular set.
const TOP: usize = 100;

/// How much of the popular set stays from one interval to the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift {
    pub intervals: usize,
    pub requests_each: u64,
    /// Share of the 100 most popular keys that two halves of the same interval have in common: what
    /// chance leaves.
    pub within: f64,
    /// The same of successive intervals, and of the first and the last one.
    pub successive: f64,
    pub first_and_last: f64,
    /// The same of all intervals that are at least half of the trace apart, and the standard error
    /// of how much less than `within` that is.
    pub far: f64,
    pub far_error: f64,
    /// By distance, from successive intervals on.
    pub by_distance: Vec<DriftDistance>,
    /// After so many requests half of the popular set is another, from all distances. None where
    /// the set stays.
    pub half_life_requests: Option<f64>,
    /// Whether the set moves: intervals have clearly less in common than chance leaves, at once or
    /// only far apart.
    pub moves: bool,
    /// It moves, and only intervals that are far apart show it.
    pub is_slow: bool,
}

/// What intervals of one distance have in common.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DriftDistance {
    pub requests: u64,
    pub in_common: f64,
}

/// The most frequent keys: J. Misra and D. Gries (1982), in batches. Every key that has more than
/// `1 / 2048` of the requests is in it.
#[derive(Debug, Default)]
struct TopKeys(HashMap<u64, u64>);

impl TopKeys {
    #[inline]
    fn add(&mut self, key: u64, count: u64) {
        *self.0.entry(key).or_insert(0) += count;
        if self.0.len() > MOST_KEYS {
            let mut counts: Vec<u64> = self.0.values().copied().collect();
            let (_, median, _) = counts.select_nth_unstable(MOST_KEYS / 2);
            let median = *median;
            self.0.retain(|_, count| {
                *count = count.saturating_sub(median);
                *count > 0
            });
        }
    }

    fn merge(&mut self, other: TopKeys) {
        other.0.into_iter().for_each(|(key, count)| self.add(key, count));
    }

    fn top(&self) -> HashSet<u64> {
        let mut keys: Vec<(u64, u64)> = self.0.iter().map(|(key, count)| (*count, *key)).collect();
        keys.sort_unstable_by(|a, b| b.cmp(a));
        keys.iter().take(TOP).map(|(_, key)| *key).collect()
    }
}

/// Two halves: every other request.
type Halves = [TopKeys; 2];

#[derive(Debug)]
pub(super) struct PopularSets {
    each: u64,
    of_last: u64,
    intervals: Vec<Halves>,
}

impl PopularSets {
    pub fn new() -> PopularSets {
        PopularSets { each: FIRST, of_last: 0, intervals: vec![Halves::default()] }
    }

    #[inline]
    pub fn add(&mut self, hash: u64) {
        if self.of_last == self.each {
            if self.intervals.len() == MOST_INTERVALS {
                self.double();
            }
            self.intervals.push(Halves::default());
            self.of_last = 0;
        }
        let half = (self.of_last & 1) as usize;
        if let Some(last) = self.intervals.last_mut() {
            last[half].add(hash, 1);
        }
        self.of_last += 1;
    }

    fn double(&mut self) {
        self.each *= 2;
        let mut old = std::mem::take(&mut self.intervals).into_iter();
        while let (Some([mut a, mut b]), Some([c, d])) = (old.next(), old.next()) {
            a.merge(c);
            b.merge(d);
            self.intervals.push([a, b]);
        }
    }

    /// `None` below four whole intervals.
    pub fn drift(mut self) -> Option<Drift> {
        if self.of_last < self.each {
            self.intervals.pop();
        }
        let sets: Vec<[HashSet<u64>; 2]> =
            self.intervals.iter().map(|halves| [halves[0].top(), halves[1].top()]).collect();
        if sets.len() < 4 {
            return None;
        }
        let (first, last) = (sets.first()?, sets.last()?);
        let each_within: Vec<f64> = sets.iter().map(|[a, b]| overlap(a, b)).collect();
        let within = mean(each_within.iter().copied());
        let first_and_last = overlap(&first[0], &last[1]);
        let at = |distance: usize| -> Vec<f64> {
            sets.iter().zip(&sets[distance..]).map(|(a, b)| overlap(&a[0], &b[1])).collect()
        };
        let by_distance: Vec<DriftDistance> = (1..sets.len())
            .map(|distance| DriftDistance {
                requests: distance as u64 * self.each,
                in_common: mean(at(distance).into_iter()),
            })
            .collect();
        let successive = by_distance.first()?.in_common;
        let apart: Vec<f64> = (sets.len() / 2..sets.len()).flat_map(at).collect();
        let far = mean(apart.iter().copied());
        // Pairs share intervals: half as many as there are intervals are independent. How much they
        // differ by drift is no error.
        let (all, independent) = (sets.len() as f64, sets.len() as f64 / 2.0);
        let far_error = (variance(&each_within) * (1.0 / all + 1.0 / independent)).sqrt();
        let is_fast = successive < within - FAST;
        let is_far = within - far > SLOW.max(ERRORS * far_error);
        let moves = is_fast || is_far || first_and_last < within - FAST - CHANCE;
        Some(Drift {
            intervals: sets.len(),
            requests_each: self.each,
            within,
            successive,
            first_and_last,
            far,
            far_error,
            half_life_requests: moves.then(|| half_life(within, &by_distance)).flatten(),
            by_distance,
            moves,
            is_slow: moves && !is_fast,
        })
    }
}

/// Differences that are drift: of successive intervals, of those far apart, and what one pair has
/// by chance beside.
const FAST: f64 = 0.1;
const SLOW: f64 = 0.03;
const CHANCE: f64 = 0.1;
/// Standard errors that a slow drift must be beyond.
const ERRORS: f64 = 3.0;

/// Of a set of which an equal share is replaced in equal times: least squares of the logarithm,
/// through what is in common at distance 0.
fn half_life(within: f64, by_distance: &[DriftDistance]) -> Option<f64> {
    // What little is in common is chance.
    let points = by_distance.iter().filter(|point| point.in_common > 0.1 * within);
    let (mut above, mut below) = (0.0, 0.0);
    for point in points {
        let requests = point.requests as f64;
        above -= requests * (point.in_common / within).ln();
        below += requests * requests;
    }
    let rate = above / below;
    match rate.is_finite() {
        true => (rate > 0.0).then(|| std::f64::consts::LN_2 / rate),
        // Nothing is left at the least distance.
        false => by_distance.first().map(|point| point.requests as f64),
    }
}

fn variance(numbers: &[f64]) -> f64 {
    let middle = mean(numbers.iter().copied());
    let squares: f64 = numbers.iter().map(|number| (number - middle).powi(2)).sum();
    squares / (numbers.len() as f64 - 1.0).max(1.0)
}

fn overlap(a: &HashSet<u64>, b: &HashSet<u64>) -> f64 {
    a.intersection(b).count() as f64 / a.len().max(b.len()).max(1) as f64
}

fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = numbers.len().max(1) as f64;
    numbers.sum::<f64>() / count
}
