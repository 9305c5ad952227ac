//! The log-linear histogram that the kernel side fills and user space reads.

use bpf::LogLinear;

/// A bucket is at most 1/128 (0.8 %) of its value wide.
pub(crate) const KIND: LogLinear = LogLinear::new(7);
/// Buckets of a histogram.
pub(crate) const BUCKETS: usize = KIND.buckets();

/// Times in nanoseconds, each known to 0.8 %; above 68 s they are counted as 68 s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    pub(crate) counts: Box<[u64]>,
    pub(crate) sum_ns: u64,
}

impl Histogram {
    pub(crate) fn empty() -> Histogram {
        Histogram { counts: vec![0; BUCKETS].into_boxed_slice(), sum_ns: 0 }
    }

    pub(crate) fn since(&self, earlier: &Histogram) -> Histogram {
        let counts =
            self.counts.iter().zip(&earlier.counts).map(|(a, b)| a.saturating_sub(*b)).collect();
        Histogram { counts, sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns) }
    }

    /// How many times were recorded.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The mean in nanoseconds, from an exact sum; `None` without a record.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns as f64 / count as f64)
    }

    /// The value in nanoseconds that a share `quantile` (0 to 1) of the records
    /// does not exceed, as the middle of its bucket; `None` without a record.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((quantile.clamp(0.0, 1.0) * count as f64).ceil() as u64).max(1);
        let mut cumulative = 0;
        self.buckets().find_map(|(low, width, n)| {
            cumulative += n;
            (cumulative >= rank).then_some(low + width / 2)
        })
    }

    /// The buckets that hold something, in order: lowest value in nanoseconds,
    /// width in nanoseconds, count. For merging into another kind of histogram.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, n)| **n > 0).map(|(bucket, n)| {
            let (low, width) = KIND.range_of(bucket);
            (low, width, *n)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_values() {
        let mut histogram = Histogram::empty();
        assert_eq!((histogram.quantile_ns(0.5), histogram.mean_ns()), (None, None));
        for value in 1..=100_000u64 {
            histogram.counts[KIND.bucket_of(value)] += 1;
            histogram.sum_ns += value;
        }
        for (quantile, truth) in [(0.0, 1.0), (0.5, 50_000.0), (0.99, 99_000.0), (1.0, 100_000.0)] {
            let read = histogram.quantile_ns(quantile).unwrap() as f64;
            assert!((read / truth - 1.0).abs() <= 0.01, "{quantile}: {read}");
        }
        assert_eq!(histogram.mean_ns(), Some(50_000.5));
        assert_eq!(histogram.since(&histogram).count(), 0);
    }
}
