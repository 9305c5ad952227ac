//! Popularity that falls exponentially with the record number.

use model::random::Draws;

/// YCSB's exponential generator: the rank is floor(X) for an exponential X whose rate is such
/// that `percentile` % of it lies below `fraction` of the records. Ranks beyond the last record
/// are drawn again, as YCSB does, so that the share of the first `fraction` is a little above
/// `percentile`; the inverse here is that of the distribution cut at the last record, which is the
/// same without a loop.
#[derive(Debug, Clone)]
pub struct Exponential {
    records: u64,
    /// Minus the mean of X.
    scale: f64,
    /// P(X < records).
    reach: f64,
}

impl Exponential {
    /// `percentile` in (0, 100), `fraction` in (0, 1].
    pub fn new(records: u64, percentile: f64, fraction: f64) -> Exponential {
        let rate = -(-percentile / 100.0).ln_1p() / (records as f64 * fraction);
        let reach = -(-rate * records as f64).exp_m1();
        Exponential { records, scale: -1.0 / rate, reach }
    }

    #[inline]
    pub fn draw(&self, draws: &mut Draws) -> u64 {
        let x = self.scale * (1.0 - draws.unit() * self.reach).ln();
        (x as u64).min(self.records - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::random::RandomStream;

    #[test]
    fn follows_the_cut_exponential() {
        let (records, percentile, fraction) = (1000, 95.0, 0.5);
        let exponential = Exponential::new(records, percentile, fraction);
        let draws = 400_000u64;
        let mut ranks: Vec<u64> = (0..draws)
            .map(|i| exponential.draw(&mut Draws::from(RandomStream::new(3, 1).at(i))))
            .collect();
        ranks.sort_unstable();
        // P(rank < r) = (1 - 0.05^(r / 500)) / (1 - 0.05^2)
        for below in [1, 10, 100, 250, 500, 750, 999, 1000] {
            let analytic = (1.0 - 0.05f64.powf(below as f64 / 500.0)) / (1.0 - 0.05f64.powi(2));
            let observed = ranks.partition_point(|&rank| rank < below) as f64 / draws as f64;
            assert!((observed - analytic).abs() < 4.0 * 0.5 / (draws as f64).sqrt(), "{below}");
        }
    }
}
