//! The miss-ratio curve beside an exact simulation of an LRU cache.

use std::collections::{BTreeMap, HashMap};

use workload::Popularity;
use workload::describe::{Describer, MissRatioCurve};
use workload::trace::{TraceOp, TraceRecord, TraceTiming};

use super::{described, described_by, generated, read};

/// Misses of an LRU cache of a size, each item with a size, as a part of the reads.
fn simulated(keys: &[u64], size: u64, of_item: impl Fn(u64) -> u64) -> f64 {
    let (mut last, mut order) = (HashMap::new(), BTreeMap::new());
    let (mut used, mut misses) = (0, 0);
    for (now, key) in keys.iter().enumerate() {
        match last.insert(*key, now) {
            Some(before) => drop(order.remove(&before)),
            None => {
                misses += 1;
                used += of_item(*key);
            }
        }
        order.insert(now, *key);
        while used > size {
            let (_, oldest) = order.pop_first().unwrap();
            last.remove(&oldest);
            used -= of_item(oldest);
        }
    }
    f64::from(misses) / keys.len() as f64
}

fn size(key: u64) -> u32 {
    (model::random::mix(key) % 2000) as u32 + 50
}

/// The greatest differences from the simulation, in items and in bytes.
fn differences(keys: &[u64], curve: &MissRatioCurve) -> (f64, f64) {
    assert_eq!(curve.points.len(), 100);
    let every = curve.points.iter().step_by(19).chain(&curve.points[1..3]);
    every.fold((0.0, 0.0), |(items, bytes): (f64, f64), point| {
        let by_items = simulated(keys, point.items, |_| 1) - point.by_items;
        let by_bytes = simulated(keys, point.bytes, |key| u64::from(size(key))) - point.by_bytes;
        (items.max(by_items.abs()), bytes.max(by_bytes.abs()))
    })
}

fn mixed(popularity: Popularity, records: u64, requests: usize) -> Vec<u64> {
    generated(popularity, records, requests, 11)
}

#[test]
fn the_curve_is_that_of_a_simulation() {
    let traces = [
        mixed(Popularity::Zipfian { theta: 0.99 }, 3000, 100_000),
        mixed(Popularity::Uniform, 2000, 60_000),
        mixed(Popularity::Hotspot { keys: 0.1, operations: 0.9 }, 3000, 60_000),
    ];
    for keys in &traces {
        let curve = described_by(1 << 17, keys.iter().copied(), size).miss_ratio.unwrap();
        assert!(curve.exact && curve.standard_error.is_none());
        let (items, bytes) = differences(keys, &curve);
        // A cache in bytes evicts a little more or less than the stack says.
        assert!(items < 0.001 && bytes < 0.01, "{items} {bytes}");
    }
}

#[test]
fn the_estimate_from_a_sample_is_within_two_points() {
    let traces = [
        mixed(Popularity::Zipfian { theta: 0.8 }, 60_000, 400_000),
        mixed(Popularity::Zipfian { theta: 1.1 }, 60_000, 400_000),
        mixed(Popularity::Uniform, 40_000, 300_000),
    ];
    for keys in &traces {
        let curve = described_by(8192, keys.iter().copied(), size).miss_ratio.unwrap();
        assert!(!curve.exact && curve.sampled_keys == 8192);
        assert!((curve.standard_error.unwrap() - 0.01).abs() < 1e-9);
        let (items, bytes) = differences(keys, &curve);
        assert!(items < 0.02 && bytes < 0.02, "{items} {bytes}");
    }
}

#[test]
fn a_loop_has_its_cliff() {
    let looped = || (0..50_000u64).map(|request| request % 1000);
    let curve = described(looped()).miss_ratio.unwrap();
    assert!(curve.points[..99].iter().all(|point| point.by_items == 1.0));
    assert!((curve.points[99].by_items - 0.02).abs() < 1e-9, "{:?}", curve.points[99]);
    // The same of a sample: the cliff is at most two points of size away.
    let curve =
        described_by(8192, (0..600_000u64).map(|r| r % 50_000), |_| 100).miss_ratio.unwrap();
    assert!(curve.points[..95].iter().all(|point| point.by_items > 0.98));
}

#[test]
fn writes_fill_and_deletes_empty_the_cache() {
    let of = |operation, key| TraceRecord { operation, ..read(0, key, 10) };
    let mut describer = Describer::new(TraceTiming::Untimed, 100);
    for operation in [TraceOp::Set, TraceOp::Get, TraceOp::Delete, TraceOp::Get] {
        describer.add(&of(operation, 1));
    }
    let description = describer.finish();
    assert_eq!(description.reads, 2);
    // The read after the delete misses, in a cache of any size.
    assert_eq!(description.miss_ratio.unwrap().points[99].by_items, 0.5);
    assert_eq!(description.operations.len(), 3);
}
