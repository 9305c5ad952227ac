//! Shares of the requests by ranges of ranks.

use crate::alias::Alias;
use model::Count;
use model::random::{Draws, below};

/// The most ranges of a table.
pub const MOST_RANGES: usize = 4096;

/// An empirical popularity: each range of ranks has a share of the requests, and each rank of a
/// range the same part of it. Exact, with two numbers a draw.
#[derive(Debug, Clone)]
pub struct RankTable {
    choose: Alias,
    ranges: Box<[RankRange]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RankRange {
    first: u64,
    width: u64,
}

impl RankTable {
    /// `ranges`: numbers of ranks and their weights, checked. They are stretched to `records`; a
    /// range without a record of its own gives its weight to the next one.
    pub fn new(records: u64, ranges: &[(Count, f64)]) -> RankTable {
        let all: f64 = ranges.iter().map(|(ranks, _)| ranks.0 as f64).sum();
        let (mut up_to, mut first, mut carried) = (0.0, 0, 0.0);
        let (mut table, mut weights) = (Vec::new(), Vec::new());
        for (index, (ranks, weight)) in ranges.iter().enumerate() {
            up_to += ranks.0 as f64;
            let last = index + 1 == ranges.len();
            let stretched = (up_to / all * records as f64).round() as u64;
            let end = if last { records } else { stretched.min(records) };
            carried += weight;
            if end > first {
                table.push(RankRange { first, width: end - first });
                weights.push(std::mem::take(&mut carried));
                first = end;
            }
        }
        if let Some(last) = weights.last_mut() {
            *last += carried;
        }
        RankTable { choose: Alias::new(&weights), ranges: table.into() }
    }

    /// Why a table cannot be drawn from.
    pub fn problem(ranges: &[(Count, f64)]) -> Option<String> {
        if ranges.is_empty() || ranges.len() > MOST_RANGES {
            return Some(format!("`ranges` has 1 to {MOST_RANGES} rows"));
        }
        if ranges.iter().any(|(ranks, share)| ranks.0 == 0 || !share.is_finite() || *share < 0.0) {
            return Some(
                "a row of `ranges` is a number of records, at least 1, and a share that is not \
                 negative"
                    .to_owned(),
            );
        }
        let sum: f64 = ranges.iter().map(|(_, share)| share).sum();
        (sum <= 0.0).then(|| "every share of `ranges` is zero".to_owned())
    }

    #[inline]
    pub fn draw(&self, draws: &mut Draws) -> u64 {
        let range = self.ranges[self.choose.pick(draws.next()) as usize];
        range.first + below(draws.next(), range.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::random::RandomStream;

    const ROWS: [(Count, f64); 4] =
        [(Count(1), 0.2), (Count(4), 0.3), (Count(45), 0.4), (Count(50), 0.1)];

    /// Chi-square over all ranks; passed by chance but once in 10^5.
    #[test]
    fn frequencies_are_those_of_the_table() {
        let table = RankTable::new(100, &ROWS);
        let mut observed = [0u64; 100];
        let draws = 500_000;
        for i in 0..draws {
            observed[table.draw(&mut Draws::from(RandomStream::new(1, 1).at(i))) as usize] += 1;
        }
        let mut rank = 0;
        let mut chi = 0.0;
        for (Count(ranks), share) in ROWS {
            let expected = share / ranks as f64 * draws as f64;
            for _ in 0..ranks {
                chi += (observed[rank] as f64 - expected).powi(2) / expected;
                rank += 1;
            }
        }
        assert!(chi < 99.0 + 5.0 * 198f64.sqrt(), "{chi}");
    }

    #[test]
    fn tables_stretch_to_the_records() {
        let of = |records| RankTable::new(records, &ROWS);
        let widths = |table: &RankTable| -> Vec<u64> {
            table.ranges.iter().map(|range| range.width).collect()
        };
        assert_eq!(widths(&of(1000)), [10, 40, 450, 500]);
        assert_eq!(widths(&of(2)), [1, 1]);
        assert_eq!(widths(&of(1)), [1]);
        for records in [1, 2, 3, 7, 1000] {
            assert!((0..1000).all(|i| of(records).draw(&mut Draws::from(i)) < records));
        }
    }
}
