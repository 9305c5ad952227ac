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
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Drift {
    pub intervals: usize,
    pub requests_each: u64,
    /// Share of the 100 most popular keys that two halves of the same interval have in common: what
    /// chance leaves.
    pub within: f64,
    /// The same of successive intervals, and of the first and the last one.
    pub successive: f64,
    pub first_and_last: f64,
    /// Whether the set moves: successive intervals, or the first and the last, have clearly less in
    /// common than chance leaves.
    pub moves: bool,
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
        let within = mean(sets.iter().map(|[a, b]| overlap(a, b)));
        let successive = mean(sets.windows(2).map(|pair| overlap(&pair[0][0], &pair[1][1])));
        let first_and_last = overlap(&first[0], &last[1]);
        Some(Drift {
            intervals: sets.len(),
            requests_each: self.each,
            within,
            successive,
            first_and_last,
            moves: successive < within - 0.1 || first_and_last < within - 0.2,
        })
    }
}

fn overlap(a: &HashSet<u64>, b: &HashSet<u64>) -> f64 {
    a.intersection(b).count() as f64 / a.len().max(b.len()).max(1) as f64
}

fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = numbers.len().max(1) as f64;
    numbers.sum::<f64>() / count
}
