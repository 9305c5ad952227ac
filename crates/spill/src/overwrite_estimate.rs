//! How much of the log new writes are estimated to make dead, and which of their keys are sampled.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::record::hash;

/// Bytes of new records per sampled key, on average. A record of this length is always sampled.
pub(crate) const SAMPLE_INTERVAL: u64 = 64 << 10;
/// Short records count as this many bytes, since what they replace or delete may be long.
pub(crate) const MIN_WEIGHT: u32 = 512;
/// A sample that stands for others counts as at most this many dead bytes, or its own. A few very
/// long records must not delay writers for all that their samples stand for; compactions find
/// those.
const MAX_DEAD_PER_SAMPLE: u64 = 64 << 10;

/// Estimated bytes below the active memtable that keys new to it made dead.
#[derive(Debug, Default)]
pub(crate) struct OverwriteEstimate(AtomicU64);

impl OverwriteEstimate {
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Resets the estimate for the next memtable.
    pub(crate) fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// The weight of a record for sampling and extrapolation.
#[inline]
pub(crate) fn weight(size: u32) -> u64 {
    size.max(MIN_WEIGHT).into()
}

/// The most bytes that an extrapolated key of this weight may count as dead.
pub(crate) fn max_dead(weight: u64) -> u64 {
    MAX_DEAD_PER_SAMPLE.max(weight)
}

/// Chooses the keys that are looked up.
#[derive(Debug, Default)]
pub(crate) struct KeySampler {
    /// The weight since the last sample.
    skipped: u64,
    /// The weight at which the next key is sampled. It varies at random, since writes may have a
    /// pattern.
    next: u64,
}

impl KeySampler {
    /// Whether to sample a key of this weight, which is new to the memtable and was written with
    /// this sequence; returns the weight it stands for.
    #[inline]
    pub(crate) fn sample(&mut self, weight: u64, sequence: u64) -> Option<u64> {
        if weight >= SAMPLE_INTERVAL {
            return Some(weight);
        }
        self.skipped += weight;
        if self.skipped < self.next {
            return None;
        }
        self.next = hash(&sequence.to_le_bytes()) % (2 * SAMPLE_INTERVAL);
        Some(mem::take(&mut self.skipped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampler_covers_all_bytes() {
        let mut sampler = KeySampler::default();
        let sampled = (0..10_240).filter_map(|write| sampler.sample(1 << 10, write));
        let sampled: Vec<u64> = sampled.collect();
        assert!(
            (140..180).contains(&sampled.len()),
            "{} for {}",
            sampled.len(),
            (10_240 << 10) / SAMPLE_INTERVAL
        );
        assert_eq!(sampled.iter().sum::<u64>() + sampler.skipped, 10_240 << 10);
        assert_eq!(sampler.sample(SAMPLE_INTERVAL, 0), Some(SAMPLE_INTERVAL), "a long one");
    }
}
