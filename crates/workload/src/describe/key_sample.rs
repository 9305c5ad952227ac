//! A bounded sample of keys with all of their requests: SHARDS with a fixed number of keys.

use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use model::random::mix;

use super::recency::{Place, Recency};
use super::weights::Weights;

/// The keys that are sampled unless a test says fewer.
pub const MOST_SAMPLED_KEYS: usize = 1 << 17;

/// Keys are chosen by another hash than the one that counts them.
const CHOICE: u64 = 0x2545_f491_4f6c_dd1d;

/// What a request is to an LRU cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheAccess {
    /// A hit or a miss; what is missed is filled.
    Read,
    Write,
    Delete,
}

/// A key that is in the sample. Its counts are complete: a key that is in at the end was in at
/// its first request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampledKey {
    pub requests: u64,
    /// Key and value, as last seen.
    pub bytes: u64,
    /// The value, as last seen.
    pub value_bytes: Option<u32>,
    /// The number of its last request among all.
    last: u64,
    place: Option<Place>,
}

/// The hashes are mixed already.
#[derive(Debug, Default)]
pub(super) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, number: u64) {
        self.0 = number.rotate_left(32);
    }
}

/// Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015: keys whose hash is
/// below a threshold, which is lowered where there are too many. Their distances, and the weight of
/// a request, are divided by the share of the keys that is sampled.
#[derive(Debug)]
pub(crate) struct KeySample {
    limit: usize,
    /// The greatest hash that is sampled.
    threshold: u64,
    keys: HashMap<u64, SampledKey, BuildHasherDefault<Identity>>,
    greatest: BinaryHeap<u64>,
    recency: Recency,
    /// Reads by reuse distance, in items and in bytes.
    pub items: Weights,
    pub bytes: Weights,
    /// All requests by the number since the one before of the same key.
    pub times: Weights,
    /// Values of sampled keys that had one before, and those of them with the size of that one.
    later_values: u64,
    same_sizes: u64,
    /// All of them.
    pub requests: u64,
    /// Reads, and the weight of those of sampled keys.
    pub reads: u64,
    pub weight: f64,
}

impl KeySample {
    pub fn new(limit: usize) -> KeySample {
        KeySample {
            limit,
            threshold: u64::MAX,
            keys: HashMap::default(),
            greatest: BinaryHeap::new(),
            recency: Recency::new(limit + 1),
            items: Weights::default(),
            bytes: Weights::default(),
            times: Weights::default(),
            later_values: 0,
            same_sizes: 0,
            requests: 0,
            reads: 0,
            weight: 0.0,
        }
    }

    /// Whether every key is in.
    pub fn is_whole(&self) -> bool {
        self.threshold == u64::MAX
    }

    /// The share of the keys that is in.
    pub fn share(&self) -> f64 {
        if self.is_whole() { 1.0 } else { self.threshold as f64 / u64::MAX as f64 }
    }

    /// The keys of the trace so far: exact while every one is in, else with a relative error of
    /// `1 / sqrt(len)`.
    #[inline]
    pub fn all_keys(&self) -> f64 {
        self.keys.len() as f64 / self.share()
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn keys(&self) -> impl Iterator<Item = &SampledKey> {
        self.keys.values()
    }

    /// A request. `bytes`: of the key, and of the value where it is known.
    #[inline]
    pub fn request(
        &mut self,
        hash: u64,
        access: CacheAccess,
        key_bytes: u64,
        value_bytes: Option<u64>,
    ) {
        self.reads += u64::from(access == CacheAccess::Read);
        self.requests += 1;
        let hash = mix(hash ^ CHOICE);
        if hash <= self.threshold {
            self.sampled(hash, access, key_bytes, value_bytes);
        }
    }

    fn sampled(
        &mut self,
        hash: u64,
        access: CacheAccess,
        key_bytes: u64,
        value_bytes: Option<u64>,
    ) {
        if self.recency.is_full() {
            let new = self.recency.renumber();
            for key in self.keys.values_mut() {
                key.place = key.place.map(|place| new[place as usize]);
            }
        }
        let share = self.share();
        let greatest = &mut self.greatest;
        let key = self.keys.entry(hash).or_insert_with(|| {
            greatest.push(hash);
            SampledKey { requests: 0, bytes: key_bytes, value_bytes: None, last: 0, place: None }
        });
        if key.requests > 0 {
            self.times.add(self.requests - key.last, 1.0 / share);
        }
        key.last = self.requests;
        key.requests += 1;
        let before = key.bytes;
        if let Some(value) = value_bytes {
            key.bytes = key_bytes + value;
            key.value_bytes = Some(value.try_into().unwrap_or(u32::MAX));
            if before > key_bytes {
                self.later_values += 1;
                self.same_sizes += u64::from(key.bytes == before);
            }
        }
        let above = key.place.take().map(|place| self.recency.remove(place));
        if access != CacheAccess::Delete {
            key.place = Some(self.recency.push(key.bytes));
        }
        if access == CacheAccess::Read {
            self.weight += 1.0 / share;
            if let Some((items, bytes)) = above {
                let scaled = |above: u64, own: u64| (above as f64 / share).round() as u64 + own;
                self.items.add(scaled(items, 1), 1.0 / share);
                self.bytes.add(scaled(bytes, before), 1.0 / share);
            }
        }
        if self.keys.len() > self.limit {
            self.lower_threshold();
        }
    }

    /// Drops the key with the greatest hash.
    fn lower_threshold(&mut self) {
        let Some(greatest) = self.greatest.pop() else { return };
        if let Some(place) = self.keys.remove(&greatest).and_then(|key| key.place) {
            self.recency.remove(place);
        }
        self.threshold = greatest.saturating_sub(1);
    }

    /// The share of the values that have the size of their key's value before. None where no key
    /// has two.
    pub fn same_sizes(&self) -> Option<f64> {
        (self.later_values > 0).then(|| self.same_sizes as f64 / self.later_values as f64)
    }

    /// The share of reads that a cache would miss, for each of these rising sizes. The difference
    /// between the reads and their weight is that of the most popular keys, which are hits (the
    /// correction of SHARDS-adj).
    pub fn miss_ratios(&self, distances: &Weights, sizes: &[u64]) -> Vec<f64> {
        let reads = self.reads.max(1) as f64;
        let correction = self.reads as f64 - self.weight;
        let hits = distances.up_to(sizes).into_iter();
        hits.map(|hits| (1.0 - (hits + correction) / reads).clamp(0.0, 1.0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_never_outgrows_its_limit() {
        let mut sample = KeySample::new(1000);
        for key in 0..200_000 {
            sample.request(mix(key), CacheAccess::Read, 8, Some(100));
            assert!(sample.len() <= 1000 && sample.greatest.len() <= 1000);
            assert!(sample.recency.places_len() <= 2 * 1001);
        }
        let keys = sample.all_keys();
        assert!((keys / 200_000.0 - 1.0).abs() < 0.15, "{keys}");
    }
}
