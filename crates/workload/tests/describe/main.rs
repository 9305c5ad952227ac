//! What `describe` says of requests whose truth is known.
// The lint exempts test functions, but not their helpers.
#![allow(clippy::unwrap_used)]

mod arrivals;
mod popularity;
mod reuse;

use model::Count;
use model::random::{Draws, RandomStream};
use workload::describe::{Describer, MOST_SAMPLED_KEYS, TraceDescription};
use workload::trace::{TraceKey, TraceOp, TraceRecord, TraceTiming};
use workload::{Popularity, Workload, WorkloadSpec};

/// A read of a value of this size.
fn read(at_ns: u64, key: u64, value: u32) -> TraceRecord<'static> {
    TraceRecord {
        at_ns,
        operation: TraceOp::Get,
        key: TraceKey::Number(key),
        key_size: None,
        value_size: Some(value),
        expiry: None,
    }
}

/// The description of reads without times, with so many sampled keys.
fn described_by(
    sampled: usize,
    keys: impl IntoIterator<Item = u64>,
    size: impl Fn(u64) -> u32,
) -> TraceDescription {
    let mut describer = Describer::new(TraceTiming::Untimed, sampled);
    keys.into_iter().for_each(|key| describer.add(&read(0, key, size(key))));
    describer.finish()
}

fn described(keys: impl IntoIterator<Item = u64>) -> TraceDescription {
    described_by(MOST_SAMPLED_KEYS, keys, |_| 100)
}

/// Requests that kvmeter generates.
fn generated(popularity: Popularity, records: u64, requests: usize, seed: u64) -> Vec<u64> {
    let spec =
        WorkloadSpec { popularity, records: Count(records), seed, ..WorkloadSpec::default() };
    let workload = Workload::new(&spec).unwrap();
    let mut stream = workload.stream();
    let (mut keys, mut block) = (Vec::with_capacity(requests), 0);
    while keys.len() < requests {
        stream.seek(block);
        while let Some(operation) = stream.next(records) {
            keys.push(operation.record);
        }
        block += 1;
    }
    keys.truncate(requests);
    keys
}

fn draws(purpose: u64) -> Draws {
    Draws::from(RandomStream::new(46, purpose).at(0))
}
