//! Where in the stream inserts stand.

use model::random::RandomStream;

use crate::alias::Alias;
use crate::operation::BLOCK;

/// The positions of inserts.
///
/// Inserts are numbered in the order of the stream, so that a block needs to know how many come
/// before it, without drawing them one by one. Hence the number of inserts of each block is drawn
/// first, from its exact binomial distribution, and then their positions, by sequential sampling
/// (Knuth, TAOCP 2, 3.4.2, algorithm S): together the same as a coin for each operation.
#[derive(Debug, Clone)]
pub(crate) struct InsertPositions {
    count: InsertCount,
    pub(crate) random: RandomStream,
}

#[derive(Debug, Clone)]
enum InsertCount {
    None,
    All,
    Binomial(Alias),
}

impl InsertPositions {
    pub fn new(share: f64, random: RandomStream) -> InsertPositions {
        let count = match share {
            0.0 => InsertCount::None,
            1.0 => InsertCount::All,
            p => InsertCount::Binomial(Alias::new(&binomial(p))),
        };
        InsertPositions { count, random }
    }

    #[inline(always)]
    pub(crate) fn of_block(&self, block: u64) -> u64 {
        match &self.count {
            InsertCount::None => 0,
            InsertCount::All => BLOCK,
            InsertCount::Binomial(alias) => u64::from(alias.pick(self.random.at(block))),
        }
    }

    /// Inserts of the blocks from `first` up to, but not with, `last`.
    pub(crate) fn between(&self, first: u64, last: u64) -> u64 {
        match self.count {
            InsertCount::None => 0,
            InsertCount::All => (last - first) * BLOCK,
            InsertCount::Binomial(_) => (first..last).map(|block| self.of_block(block)).sum(),
        }
    }
}

/// P(k of [`BLOCK`] coins), 0 < p < 1.
fn binomial(p: f64) -> Vec<f64> {
    let n = BLOCK as i32;
    let mut ways = 1.0;
    (0..=n)
        .map(|k| {
            let mass = ways * p.powi(k) * (1.0 - p).powi(n - k);
            ways *= f64::from(n - k) / f64::from(k + 1);
            mass
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomial_masses_sum_to_one_with_the_right_mean() {
        for p in [1e-9, 0.05, 0.5, 0.999] {
            let masses = binomial(p);
            let sum: f64 = masses.iter().sum();
            let mean: f64 = masses.iter().enumerate().map(|(k, mass)| k as f64 * mass).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{p}");
            assert!((mean / (p * BLOCK as f64) - 1.0).abs() < 1e-9, "{p}");
        }
    }
}
