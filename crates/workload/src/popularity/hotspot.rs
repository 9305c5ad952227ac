//! A hot set of records that takes a given share of the requests.

use model::random::{Draws, below, unit};

/// YCSB's hotspot: the first records are hot; a share of the operations reads them, uniformly, and
/// the others read the cold ones, uniformly.
#[derive(Debug, Clone)]
pub struct Hotspot {
    hot: u64,
    cold: u64,
    /// The probability of a hot operation.
    share: f64,
}

impl Hotspot {
    /// `keys`: the part of `records` that is hot, at least one record; `operations`: the part of
    /// the operations that reads it. Where all records are hot, so are all operations.
    pub fn new(records: u64, keys: f64, operations: f64) -> Hotspot {
        let hot = ((records as f64 * keys).round() as u64).clamp(1, records);
        let cold = records - hot;
        Hotspot { hot, cold, share: if cold == 0 { 1.0 } else { operations } }
    }

    #[inline]
    pub fn draw(&self, draws: &mut Draws) -> u64 {
        // `unit` is below 1, so that a share of 1 leaves nothing to the cold records.
        if unit(draws.next()) < self.share {
            below(draws.next(), self.hot)
        } else {
            self.hot + below(draws.next(), self.cold)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::random::RandomStream;

    #[test]
    fn hot_and_cold_take_their_shares_evenly() {
        let hotspot = Hotspot::new(100, 0.2, 0.8);
        let mut observed = [0u64; 100];
        let draws = 500_000;
        for i in 0..draws {
            observed[hotspot.draw(&mut Draws::from(RandomStream::new(1, 1).at(i))) as usize] += 1;
        }
        for (record, &observed) in observed.iter().enumerate() {
            let p: f64 = if record < 20 { 0.8 / 20.0 } else { 0.2 / 80.0 };
            let sigma = (draws as f64 * p * (1.0 - p)).sqrt();
            assert!(
                (observed as f64 - draws as f64 * p).abs() < 5.0 * sigma,
                "{record}: {observed}"
            );
        }
    }

    #[test]
    fn handles_extreme_shares() {
        for (records, keys, operations) in [(1, 0.2, 0.8), (10, 1.0, 0.1), (10, 0.0, 1.0)] {
            let hotspot = Hotspot::new(records, keys, operations);
            for i in 0..1000 {
                assert!(hotspot.draw(&mut Draws::from(i)) < records);
            }
        }
        let all_hot = Hotspot::new(10, 0.1, 1.0);
        assert!((0..1000).all(|i| all_hot.draw(&mut Draws::from(i)) == 0));
    }
}
