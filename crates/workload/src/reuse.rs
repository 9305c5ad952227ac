//! Requests that come back: temporal locality beyond popularity.
//!
//! A request is for a record that popularity draws, for the next record of a sweep, or for the
//! record of an earlier request. Which request that is follows from the index alone, so that no
//! state is shared and any thread can draw any operation. Repeating does not change popularity: an
//! earlier request is for each record as often as it is popular. The distances decide how much an
//! LRU cache keeps, as the miss ratio follows from the times between requests of a record (Hu et
//! al., "Kinetic Modeling of Data Eviction in Cache", USENIX ATC 2016).

use model::random::{Draws, RandomStream, below, unit};
use serde::{Deserialize, Serialize};

use crate::alias::Alias;
use crate::popularity::RecordChooser;
use crate::{Popularity, SpecError};

/// The most rows of `distances`.
const MOST_DISTANCES: usize = 4096;
/// The longest distance.
const LONGEST: u64 = 1 << 48;
/// A repeat of a repeat is followed so many times; then popularity draws the record.
const MOST_STEPS: u32 = 256;
/// Separates the draws of the sweep from those of the requests.
const SWEEP: u64 = 0x5177_0000_0000_0000;

/// How requests come back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReuseSpec {
    /// The part of the requests that are for the next record of the swept ones: evenly spread, and
    /// each record once before the first one comes again.
    pub sweep: f64,
    /// The part of the records that are swept, the last ones. Popularity is over the others.
    pub swept: f64,
    /// The part of the requests that are for the record of an earlier one.
    pub repeat: f64,
    /// How many requests earlier: `[most, share of the repeats]`. A row begins above the one before.
    pub distances: Vec<(u64, f64)>,
}

impl ReuseSpec {
    /// # Errors
    /// What is wrong, with the key.
    pub fn check(&self, popularity: &Popularity) -> Result<(), SpecError> {
        match self.problem(popularity) {
            None => Ok(()),
            Some(problem) => Err(SpecError::invalid("reuse", problem)),
        }
    }

    fn problem(&self, popularity: &Popularity) -> Option<String> {
        const ROUNDING: f64 = 1e-6;
        let parts = [self.sweep, self.swept, self.repeat];
        if parts.iter().any(|part| !(0.0..=1.0).contains(part)) {
            return Some("`sweep`, `swept` and `repeat` are parts between 0 and 1".to_owned());
        }
        let sum = self.sweep + self.repeat;
        if sum > 1.0 + ROUNDING {
            return Some("`sweep` and `repeat` sum to more than 1".to_owned());
        }
        if (self.sweep > 0.0) != (self.swept > 0.0) {
            return Some("`sweep` and `swept` are both above 0, or both 0".to_owned());
        }
        if self.swept == 1.0 && sum < 1.0 - ROUNDING {
            return Some(
                "with every record swept, `sweep` and `repeat` sum to 1: nothing is left to \
                 popularity"
                    .to_owned(),
            );
        }
        if matches!(
            popularity,
            Popularity::Sequential
                | Popularity::ScrambledZipfian { .. }
                | Popularity::Latest { .. }
                | Popularity::KeyRanges(_)
        ) {
            return Some(format!(
                "does not go with `{popularity}`; use zipfian, ranks, hotspot, exponential or \
                 uniform"
            ));
        }
        if self.repeat == 0.0 {
            return None;
        }
        if self.distances.is_empty() || self.distances.len() > MOST_DISTANCES {
            return Some(format!("`distances` has 1 to {MOST_DISTANCES} rows"));
        }
        let mut before = 0;
        for (most, share) in &self.distances {
            if *most <= before || *most > LONGEST || !share.is_finite() || *share < 0.0 {
                return Some(
                    "a row of `distances` is a number of requests, above that of the row before, \
                     and a share that is not negative"
                        .to_owned(),
                );
            }
            before = *most;
        }
        let sum: f64 = self.distances.iter().map(|(_, share)| share).sum();
        (sum <= 0.0).then(|| "every share of `distances` is zero".to_owned())
    }

    /// Multiplies the distances. Rows that become the same one are joined.
    pub(crate) fn scale(&mut self, factor: f64) {
        let mut scaled: Vec<(u64, f64)> = Vec::with_capacity(self.distances.len());
        for (most, share) in &self.distances {
            let most = ((*most as f64 * factor).round() as u64).clamp(1, LONGEST);
            match scaled.last_mut() {
                Some(last) if last.0 >= most => last.1 += share,
                _ => scaled.push((most, *share)),
            }
        }
        self.distances = scaled;
    }

    /// So many of the records are drawn by popularity.
    pub(crate) fn popular(&self, records: u64) -> u64 {
        let swept = ((records as f64 * self.swept).round() as u64).min(records);
        records - if self.swept < 1.0 { swept.min(records.saturating_sub(1)) } else { swept }
    }
}

/// A [`ReuseSpec`] compiled for sampling.
#[derive(Debug, Clone)]
pub struct Reuse {
    random: RandomStream,
    sweep: Option<Sweep>,
    /// Records before the swept ones.
    popular: u64,
    /// The part of the requests outside of the sweep that repeat.
    repeat: f64,
    choose: Alias,
    distances: Box<[Distance]>,
}

#[derive(Debug, Clone, Copy)]
struct Distance {
    least: u64,
    width: u64,
}

impl Reuse {
    /// `spec` has been checked.
    pub fn new(spec: &ReuseSpec, records: u64, random: RandomStream) -> Reuse {
        let popular = spec.popular(records);
        let mut least = 1;
        let mut distances = Vec::with_capacity(spec.distances.len());
        for (most, _) in &spec.distances {
            distances.push(Distance { least, width: most + 1 - least });
            least = most + 1;
        }
        let mut weights: Vec<f64> = spec.distances.iter().map(|(_, share)| *share).collect();
        if spec.repeat == 0.0 {
            distances = vec![Distance { least: 1, width: 1 }];
            weights = vec![1.0];
        }
        let sweeps = spec.sweep > 0.0 && records > popular;
        let others = if sweeps { 1.0 - spec.sweep } else { 1.0 };
        Reuse {
            random,
            sweep: sweeps.then(|| Sweep::new(spec.sweep, records - popular, random)),
            popular,
            repeat: if popular == 0 { 1.0 } else { (spec.repeat / others.max(1e-12)).min(1.0) },
            choose: Alias::new(&weights),
            distances: distances.into(),
        }
    }

    /// The record of request `index`; `chooser` draws from the popular ones. Requests before the
    /// first one are drawn as all others, so that the first ones are like the later ones.
    #[inline]
    pub fn record(&self, index: u64, chooser: &RecordChooser) -> u64 {
        let mut at = index as i64;
        for _ in 0..MOST_STEPS {
            if let Some(number) = self.sweep.as_ref().and_then(|sweep| sweep.number(at)) {
                return self.popular + number;
            }
            let mut draws = Draws::from(self.random.at(at as u64));
            if unit(draws.next()) >= self.repeat {
                return chooser.rank(at as u64, &mut draws);
            }
            let range = self.distances[self.choose.pick(draws.next()) as usize];
            at -= (range.least + below(draws.next(), range.width)) as i64;
        }
        match &self.sweep {
            Some(sweep) if self.popular == 0 => sweep.nearest(at),
            _ => chooser.rank(at as u64, &mut Draws::from(self.random.at(at as u64))),
        }
    }
}

/// One request of every so many, at a drawn place among them.
#[derive(Debug, Clone)]
struct Sweep {
    share: f64,
    width: f64,
    records: u64,
    random: RandomStream,
}

impl Sweep {
    fn new(share: f64, records: u64, random: RandomStream) -> Sweep {
        Sweep { share, width: 1.0 / share, records, random }
    }

    fn begin(&self, window: i64) -> i64 {
        (window as f64 * self.width).ceil() as i64
    }

    /// The record of a request, where it is one of the sweep.
    #[inline]
    fn number(&self, at: i64) -> Option<u64> {
        let mut window = (at as f64 * self.share).floor() as i64;
        if self.begin(window) > at {
            window -= 1;
        } else if self.begin(window + 1) <= at {
            window += 1;
        }
        let begin = self.begin(window);
        let width = (self.begin(window + 1) - begin).max(1) as u64;
        // Drawn from another part of the stream than the requests.
        let place = begin + below(self.random.at(!window as u64 ^ SWEEP), width) as i64;
        (place == at).then(|| window.rem_euclid(self.records as i64) as u64)
    }

    fn nearest(&self, at: i64) -> u64 {
        ((at as f64 * self.share).floor() as i64).rem_euclid(self.records as i64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(spec: &ReuseSpec, records: u64, requests: u64) -> Vec<u64> {
        let reuse = Reuse::new(spec, records, RandomStream::new(1, 1));
        let popular = spec.popular(records).max(1);
        let chooser = RecordChooser::new(&Popularity::Uniform, popular, 1);
        (0..requests).map(|index| reuse.record(index, &chooser)).collect()
    }

    #[test]
    fn a_sweep_requests_each_record_once() {
        for sweep in [1.0, 0.7, 0.31, 0.05] {
            let spec = ReuseSpec { sweep, swept: 0.5, ..ReuseSpec::default() };
            let requests = (1000.0 / sweep) as u64;
            let drawn = records(&spec, 2000, requests);
            let mut times = [0u32; 1000];
            for record in drawn.iter().filter(|record| **record >= 1000) {
                times[*record as usize - 1000] += 1;
            }
            assert!(times[..999].iter().all(|times| *times == 1), "{sweep}: {times:?}");
        }
    }

    #[test]
    fn a_fixed_distance_is_a_loop() {
        let spec = ReuseSpec {
            sweep: 0.0,
            swept: 0.0,
            repeat: 0.9,
            distances: vec![(99, 0.0), (100, 1.0)],
        };
        let drawn = records(&spec, 1_000_000, 100_000);
        let repeated = (100..drawn.len()).filter(|at| drawn[*at] == drawn[*at - 100]).count();
        let share = repeated as f64 / (drawn.len() - 100) as f64;
        assert!((share - 0.9).abs() < 0.01, "{share}");
    }

    /// Repeating keeps the shares of the records. Requests are not independent, so that the
    /// tolerance is wider than that of a chi-square test.
    #[test]
    fn repeating_keeps_popularity() {
        let spec = ReuseSpec {
            repeat: 0.6,
            distances: vec![(10, 0.5), (1000, 0.5)],
            ..Default::default()
        };
        let drawn = records(&spec, 10, 400_000);
        for record in 0..10 {
            let share = drawn.iter().filter(|drawn| **drawn == record).count() as f64 / 400_000.0;
            assert!((share - 0.1).abs() < 0.006, "{record}: {share}");
        }
    }

    #[test]
    fn distances_scale_and_stay_a_table() {
        let rows = vec![(1, 0.125), (2, 0.125), (10, 0.25), (4000, 0.5)];
        let spec = ReuseSpec { repeat: 0.5, distances: rows.clone(), ..Default::default() };
        for (factor, due) in [
            (1.0, rows),
            (10.0, vec![(10, 0.125), (20, 0.125), (100, 0.25), (40_000, 0.5)]),
            (0.1, vec![(1, 0.5), (400, 0.5)]),
            (1e-9, vec![(1, 1.0)]),
            (1e30, vec![(LONGEST, 1.0)]),
        ] {
            let mut scaled = spec.clone();
            scaled.scale(factor);
            assert_eq!(scaled.distances, due, "{factor}");
            assert_eq!(scaled.check(&Popularity::Uniform), Ok(()));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let good =
            ReuseSpec { sweep: 0.3, swept: 0.5, repeat: 0.4, distances: vec![(1, 0.5), (9, 0.5)] };
        let zipfian = Popularity::Zipfian { theta: 1.0 };
        assert_eq!(good.check(&zipfian), Ok(()));
        for (bad, says) in [
            (ReuseSpec { sweep: 1.1, ..good.clone() }, "between 0 and 1"),
            (ReuseSpec { repeat: 0.8, ..good.clone() }, "more than 1"),
            (ReuseSpec { swept: 0.0, ..good.clone() }, "both 0"),
            (ReuseSpec { swept: 1.0, ..good.clone() }, "sum to 1"),
            (ReuseSpec { distances: Vec::new(), ..good.clone() }, "1 to 4096"),
            (ReuseSpec { distances: vec![(5, 0.5), (5, 0.5)], ..good.clone() }, "row before"),
            (ReuseSpec { distances: vec![(5, 0.0)], ..good.clone() }, "is zero"),
        ] {
            let error = bad.check(&zipfian).unwrap_err().to_string();
            assert!(error.starts_with("`reuse`") && error.contains(says), "{error}");
        }
        let error = good.check(&Popularity::default()).unwrap_err().to_string();
        assert!(error.contains("does not go with"), "{error}");
    }
}
