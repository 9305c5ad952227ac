//! Ranges of keys that are hot or cold as a whole, as RocksDB's mixgraph has them.

use model::random::{Draws, below, mix};
use serde::{Deserialize, Serialize};

use crate::alias::Alias;

/// The most ranges.
const MOST_RANGES: u32 = 4096;
/// Ranks above it are not exact as an `f64`.
const MOST_RANKS: f64 = 9_007_199_254_740_992.0;

/// The parameters of db_bench's mixgraph: Cao et al., "Characterizing, Modeling, and Benchmarking
/// RocksDB Key-Value Workloads at Facebook", FAST 2020.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRanges {
    /// Ranges of as many records each (`keyrange_num`).
    pub count: u32,
    /// a, b, c and d of the share of the requests that range x has, a exp(b x) + c exp(d x), x from
    /// 1 on (`keyrange_dist_a` to `_d`). Shares are proportions.
    pub range: [f64; 4],
    /// a and b of P(rank <= k) = a k^b within a range (`key_dist_a`, `key_dist_b`). A hash says
    /// which record has a rank. Every record of a range equally often where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<[f64; 2]>,
}

impl KeyRanges {
    /// The unscaled share of range `x`, from 1 on.
    fn share(&self, x: u32) -> f64 {
        let [a, b, c, d] = self.range;
        let x = f64::from(x);
        a * (b * x).exp() + c * (d * x).exp()
    }

    /// Why it cannot be drawn from.
    pub fn problem(&self) -> Option<String> {
        if !(1..=MOST_RANGES).contains(&self.count) {
            return Some(format!("`count` is {}; there are 1 to {MOST_RANGES} ranges", self.count));
        }
        let mut sum = 0.0;
        for x in 1..=self.count {
            let share = self.share(x);
            if !share.is_finite() || share < 0.0 {
                let limits = "a share is finite and not negative";
                return Some(format!("`range` gives range {x} a share of {share}; {limits}"));
            }
            sum += share;
        }
        if !sum.is_finite() || sum <= 0.0 {
            return Some("`range` gives every range a share of 0".to_owned());
        }
        let [a, b] = self.key?;
        let ranks = (1.0 / a).powf(1.0 / b);
        if a > 0.0 && b > 0.0 && ranks < MOST_RANKS {
            return None;
        }
        Some(format!("`key` is {a}, {b}; both are above 0, and a k^b comes to 1 below 2^53 ranks"))
    }
}

/// Compiled for a number of records: two numbers a draw.
#[derive(Debug, Clone)]
pub struct RangeChooser {
    choose: Alias,
    pub(super) ranges: Box<[KeyRange]>,
    /// 1 / a and 1 / b.
    key: Option<[f64; 2]>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct KeyRange {
    pub first: u64,
    pub width: u64,
    /// Its part of the requests.
    pub share: f64,
}

impl RangeChooser {
    /// The ranges lie in an order that looks random and depends on their number alone, as in
    /// db_bench: hot ranges are not neighbours. There are at most as many as records.
    pub fn new(records: u64, spec: &KeyRanges) -> RangeChooser {
        let count = u64::from(spec.count).min(records);
        let mut places: Vec<u64> = (0..count).collect();
        places.sort_by_key(|place| mix(*place));
        let mut shares: Vec<f64> = (1..=count as u32).map(|x| spec.share(x)).collect();
        let mut sum: f64 = shares.iter().sum();
        // The ranges beyond the records may have had all of the requests.
        if sum <= 0.0 {
            shares.fill(1.0);
            sum = shares.len() as f64;
        }
        let begin =
            |place: u64| (u128::from(records) * u128::from(place) / u128::from(count)) as u64;
        let range = |(&place, share): (&u64, &f64)| {
            let first = begin(place);
            KeyRange { first, width: begin(place + 1) - first, share: share / sum }
        };
        RangeChooser {
            ranges: places.iter().zip(&shares).map(range).collect(),
            choose: Alias::new(&shares),
            key: spec.key.map(|[a, b]| [1.0 / a, 1.0 / b]),
        }
    }

    /// The record within a range of `width` that has a rank, from 1 on.
    #[inline(always)]
    fn offset(rank: u64, width: u64) -> u64 {
        below(mix(rank), width)
    }

    /// The part of a range's requests that each of its records has. Of more than `most` ranks, the
    /// rarer ones are spread evenly.
    pub(super) fn masses(&self, width: u64, most: u64) -> Vec<f64> {
        let mut masses = vec![0.0; width as usize];
        let (mut rank, mut below) = (0, 0.0);
        if let Some([a, b]) = self.key {
            while rank < most && below < 1.0 {
                rank += 1;
                let up_to = ((rank as f64).powf(1.0 / b) / a).min(1.0);
                masses[RangeChooser::offset(rank, width) as usize] += up_to - below;
                below = up_to;
            }
        }
        let rest = (1.0 - below) / width as f64;
        masses.iter_mut().for_each(|mass| *mass += rest);
        masses
    }

    #[inline]
    pub fn draw(&self, draws: &mut Draws) -> u64 {
        let KeyRange { first, width, .. } = self.ranges[self.choose.pick(draws.next()) as usize];
        first
            + match self.key {
                None => below(draws.next(), width),
                Some([a, b]) => {
                    RangeChooser::offset((draws.unit() * a).powf(b).ceil() as u64, width)
                }
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::random::RandomStream;

    const RANGE: [f64; 4] = [14.18, -2.917, 0.0164, -0.08082];

    fn drawn(spec: &KeyRanges, records: u64, draws: u64) -> Vec<u64> {
        assert_eq!(spec.problem(), None);
        let chooser = RangeChooser::new(records, spec);
        let random = RandomStream::new(1, 1);
        (0..draws).map(|i| chooser.draw(&mut Draws::from(random.at(i)))).collect()
    }

    /// Chi-square of counts against probabilities; passed by chance but once in 10^5.
    fn agrees(observed: &[u64], expected: &[f64]) {
        let draws = observed.iter().sum::<u64>() as f64;
        let (mut chi, mut freedom) = (0.0, -1.0);
        for (&observed, &p) in observed.iter().zip(expected) {
            chi += (observed as f64 - draws * p).powi(2) / (draws * p);
            freedom += 1.0;
        }
        assert!(chi < freedom + 5.0 * (2.0f64 * freedom).sqrt(), "{chi} of {freedom}");
    }

    #[test]
    fn ranges_have_the_mass_of_two_exponentials() {
        for key in [None, Some([0.002_312, 0.3467])] {
            let spec = KeyRanges { count: 30, range: RANGE, key };
            let (records, mut observed) = (3_000_000, [0u64; 30]);
            for record in drawn(&spec, records, 1_000_000) {
                observed[(record / 100_000) as usize] += 1;
            }
            // Shuffled, so that both are sorted; the shares differ enough for that.
            let mass = |x: f64| 14.18 * (-2.917 * x).exp() + 0.0164 * (-0.08082 * x).exp();
            let sum: f64 = (1..=30).map(|x| mass(f64::from(x))).sum();
            let order: Vec<usize> = {
                let mut places: Vec<usize> = (0..30).collect();
                places.sort_by_key(|place| mix(*place as u64));
                places
            };
            assert_ne!(order, (0..30).collect::<Vec<_>>());
            let observed: Vec<u64> = order.iter().map(|&place| observed[place]).collect();
            let expected: Vec<f64> = (1..=30).map(|x| mass(f64::from(x)) / sum).collect();
            assert!((expected[0] - 0.791).abs() < 0.001, "{}", expected[0]);
            agrees(&observed, &expected);
        }
    }

    /// P(record) is the sum over the ranks that hash onto it.
    #[test]
    fn keys_of_a_range_have_the_power_law() {
        let (a, b) = (0.1, 0.5);
        let spec = KeyRanges { count: 2, range: [1.0, 0.0, 0.0, 0.0], key: Some([a, b]) };
        let mut expected = vec![0.0; 40];
        let below_rank = |rank: u64| (a * (rank as f64).powf(b)).min(1.0);
        for rank in 1..=100 {
            let offset = below(mix(rank), 20) as usize;
            for first in [0, 20] {
                expected[first + offset] += (below_rank(rank) - below_rank(rank - 1)) / 2.0;
            }
        }
        let mut observed = vec![0u64; 40];
        for record in drawn(&spec, 40, 1_000_000) {
            observed[record as usize] += 1;
        }
        let hit: Vec<usize> = (0..40).filter(|&record| expected[record] > 0.0).collect();
        assert!(hit.len() > 30, "{hit:?}");
        assert_eq!(hit.iter().map(|&record| observed[record]).sum::<u64>(), 1_000_000);
        agrees(
            &hit.iter().map(|&record| observed[record]).collect::<Vec<_>>(),
            &hit.iter().map(|&record| expected[record]).collect::<Vec<_>>(),
        );
    }

    #[test]
    fn few_records_and_odd_numbers_are_covered() {
        let spec = KeyRanges { count: 30, range: RANGE, key: None };
        for records in [1, 2, 7, 29, 31, 100] {
            let mut seen = vec![false; records as usize];
            for record in drawn(&spec, records, 20_000) {
                seen[record as usize] = true;
            }
            assert!(seen.iter().all(|seen| *seen), "{records}");
        }
        let nothing = KeyRanges { count: 30, range: [0.0, 0.0, 1e-300, 20.0], key: None };
        assert!(drawn(&nothing, 1, 10).iter().all(|record| *record == 0));
    }

    #[test]
    fn bad_parameters_are_named() {
        let spec = KeyRanges { count: 30, range: RANGE, key: None };
        for (bad, says) in [
            (KeyRanges { count: 0, ..spec }, "`count` is 0"),
            (KeyRanges { count: 4097, ..spec }, "`count` is 4097"),
            (KeyRanges { range: [-1.0, 0.0, 0.0, 0.0], ..spec }, "range 1 a share of -1"),
            (KeyRanges { range: [f64::NAN, 0.0, 0.0, 0.0], ..spec }, "a share of NaN"),
            (KeyRanges { range: [1.0, 1e3, 0.0, 0.0], ..spec }, "a share of inf"),
            (KeyRanges { range: [0.0; 4], ..spec }, "every range a share of 0"),
            (KeyRanges { key: Some([0.0, 1.0]), ..spec }, "`key` is 0, 1"),
            (KeyRanges { key: Some([1.0, f64::NAN]), ..spec }, "`key` is 1, NaN"),
            (KeyRanges { key: Some([1e-9, 0.1]), ..spec }, "2^53 ranks"),
        ] {
            assert!(bad.problem().unwrap().contains(says), "{bad:?}");
        }
    }
}
