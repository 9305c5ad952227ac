//! The buckets of many distributions, added up while they are read.

use crate::distribution::Distribution;

/// The most parts that wait to be merged: memory is theirs and the sum's.
const MAX_PARTS: usize = 8;

/// The sum of the buckets of distributions, whose figures stay with each of them.
#[derive(Debug, Default)]
pub struct BucketSum {
    parts: Vec<Distribution>,
}

impl BucketSum {
    /// Takes the buckets of this distribution, which then knows its figures and the percentiles
    /// that [`Distribution::is_kept`] tells alone.
    pub fn take(&mut self, distribution: &mut Distribution) {
        self.parts.push(distribution.take_buckets());
        if self.parts.len() == MAX_PARTS {
            self.parts = vec![Distribution::merged(&self.parts)];
        }
    }

    /// Gives the buckets of all to this distribution, whose figures stay its own: the sum of it and
    /// of those they were taken from is as before.
    pub fn give(self, distribution: &mut Distribution) {
        distribution.give_buckets(Distribution::merged(&self.parts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::sum;
    use proptest::prelude::*;

    fn of(samples: &[u64]) -> Distribution {
        let mut histogram = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        samples.iter().for_each(|sample| histogram.record(*sample).unwrap());
        histogram.into()
    }

    proptest! {
        #[test]
        fn the_sum_and_the_figures_of_each_stay(
            samples in prop::collection::vec(prop::collection::vec(1u64..1 << 40, 0..20), 1..40),
        ) {
            let whole: Vec<_> = samples.iter().map(|samples| of(samples)).collect();
            let mut parts = whole.clone();
            let mut buckets = BucketSum::default();
            parts.iter_mut().for_each(|part| buckets.take(part));
            prop_assert!(sum(&parts).is_empty());
            buckets.give(&mut parts[0]);
            prop_assert!(sum(&parts) == sum(&whole));
            for (part, whole) in parts.iter().zip(&whole) {
                prop_assert_eq!(part.len(), whole.len());
                prop_assert_eq!(part.figures(), whole.figures());
                prop_assert_eq!(part.value_at_percentile(99.9), whole.value_at_percentile(99.9));
            }
        }
    }

    #[test]
    fn percentiles_of_tables_are_kept() {
        assert!([50.0, 90.0, 95.0, 99.0, 99.9, 99.99].into_iter().all(Distribution::is_kept));
        assert!(!Distribution::is_kept(99.5));
    }
}
