//! What a workload file is made from: tables of the trace, without its keys.

use std::collections::BTreeMap;

use super::key_sample::KeySample;
use super::sizes::Operations;
use super::weights::Weights;

/// Rows for each doubling.
const STEPS: u32 = 32;

/// Empirical distributions of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EmpiricalTables {
    /// `(bytes, requests)` that say the size of their key, rising.
    pub key_bytes: Vec<(u64, u64)>,
    /// The same of values; a read without one was a miss and does not count.
    pub value_bytes: Vec<(u64, u64)>,
    /// The share of the values that have the size of their key's value before. None where no key
    /// has two.
    pub same_sizes: Option<f64>,
    /// `(requests, bytes)` of the sampled keys whose values' sizes are known, by falling requests.
    pub popular_sizes: Vec<(u64, u32)>,
    /// `(seconds, writes)` of those that expire, rising, and how many never do.
    pub ttl_s: Vec<(u64, u64)>,
    pub never_expire: u64,
    /// `(requests, keys with so many)` of the sampled keys, rising.
    pub spectrum: Vec<(u64, u64)>,
    /// The part of the keys that was sampled.
    pub share: f64,
    /// Requests that follow another one of their key by at most so many requests, and by more than
    /// in the row above.
    pub reuse_times: Vec<(u64, f64)>,
    /// The miss ratio of an LRU cache of so many items, rising. Empty without reads.
    pub miss_ratios: Vec<(u64, f64)>,
}

impl EmpiricalTables {
    pub(super) fn of(sample: &KeySample, operations: &Operations) -> EmpiricalTables {
        let mut spectrum = BTreeMap::new();
        sample.keys().for_each(|key| *spectrum.entry(key.requests).or_insert(0) += 1);
        let (key_bytes, value_bytes) = operations.size_counts();
        let (ttl_s, never_expire) = operations.ttl_counts();
        EmpiricalTables {
            key_bytes,
            value_bytes,
            same_sizes: sample.same_sizes(),
            popular_sizes: popular_sizes(sample),
            ttl_s,
            never_expire,
            spectrum: spectrum.into_iter().collect(),
            share: sample.share(),
            reuse_times: by_step(&sample.times, sample.requests),
            miss_ratios: miss_ratios(sample),
        }
    }
}

fn popular_sizes(sample: &KeySample) -> Vec<(u64, u32)> {
    let sized = sample.keys().filter_map(|key| Some((key.requests, key.value_bytes?)));
    let mut all: Vec<(u64, u32)> = sized.collect();
    all.sort_unstable_by(|one, other| other.cmp(one));
    all
}

fn miss_ratios(sample: &KeySample) -> Vec<(u64, f64)> {
    if sample.reads == 0 {
        return Vec::new();
    }
    let sizes = edges(sample.all_keys().ceil() as u64);
    let misses = sample.miss_ratios(&sample.items, &sizes);
    sizes.into_iter().zip(misses).collect()
}

/// Rising distances, up to that of a trace of so many requests.
fn edges(requests: u64) -> Vec<u64> {
    let mut edges: Vec<u64> = Vec::new();
    for octave in 0..63 {
        for step in 0..STEPS {
            let factor = (f64::from(step) / f64::from(STEPS)).exp2();
            let edge = ((1u64 << octave) as f64 * factor).round() as u64;
            if edges.last().is_none_or(|last| edge > *last) {
                edges.push(edge);
            }
            if edge >= requests {
                return edges;
            }
        }
    }
    edges
}

pub(crate) fn by_step(times: &Weights, requests: u64) -> Vec<(u64, f64)> {
    let edges = edges(requests);
    let sums = times.up_to(&edges);
    let mut before = 0.0;
    let rows = edges.into_iter().zip(sums).map(|(edge, sum)| {
        let row = (edge, sum - before);
        before = sum;
        row
    });
    rows.collect()
}
