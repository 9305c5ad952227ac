//! Caches of Meta as CacheLib's cachebench publishes them: Berg et al., "The CacheLib Caching
//! Engine: Design and Experiences at Scale", OSDI 2020, and its configurations of hit ratios.

use model::{Bytes, Count, Op};

use super::cachelib_tables::{
    GRAPH_CACHE_LEADER_POPULARITY, GRAPH_CACHE_LEADER_SIZES, KVCACHE_POPULARITY, KVCACHE_SIZES,
};
use crate::{KeyForm, KeySpec, LengthSource, LengthSpec, Mix, Popularity, ValueSpec, WorkloadSpec};

/// Objects of the cache for the social graph: `graph_cache_leader_fbobj`.
///
/// - 76.8 % of the requests are for the objects of the table, and 23.2 % for objects that are
///   requested once.
/// - Keys: 30 % of 1 to 7 B, the others of 8 to 63 B.
pub(super) fn graph_cache_leader() -> WorkloadSpec {
    let short = (1..8).map(|size| (Bytes(size), 0.3 / 7.0)).collect();
    let long = LengthSpec::Uniform { min: Bytes(8), max: Bytes(63) };
    look_aside(
        LengthSpec::Discrete { values: short, tail: Some(Box::new(long)) },
        &GRAPH_CACHE_LEADER_SIZES,
        &GRAPH_CACHE_LEADER_POPULARITY,
        0.768_456_346_012_687_1,
    )
}

/// A cache of key-value pairs: `kvcache_reg`.
///
/// - 0.98453 requests for the objects of the table to 0.13472 for objects that are requested once.
/// - Keys of 16 to 254 B; the 2 % above 250 B, which memcached refuses, have 250 B.
pub(super) fn kvcache() -> WorkloadSpec {
    let (known, once) = (0.984_528_312_027_565_7, 0.134_716_879_724_342_54);
    look_aside(
        LengthSpec::Discrete {
            values: vec![(Bytes(250), 5.0 / 239.0)],
            tail: Some(Box::new(LengthSpec::Uniform { min: Bytes(16), max: Bytes(249) })),
        },
        &KVCACHE_SIZES,
        &KVCACHE_POPULARITY,
        known / (known + once),
    )
}

/// Reads, each miss of which is followed by a write. A key always has its length of value. As many
/// records as the table of popularity has objects.
fn look_aside(
    key: LengthSpec,
    sizes: &[(u64, u64)],
    popularity: &[(u64, u64)],
    hit_ratio: f64,
) -> WorkloadSpec {
    let all: u64 = sizes.iter().map(|(_, objects)| objects).sum();
    let values = sizes.iter().map(|&(size, n)| (Bytes(size), n as f64 / all as f64)).collect();
    WorkloadSpec {
        records: Count(popularity.iter().map(|(objects, _)| objects).sum()),
        key: KeySpec { form: KeyForm::Text, size: Some(key) },
        value: ValueSpec {
            size: LengthSpec::Discrete { values, tail: None },
            length_by: LengthSource::Key,
            ..ValueSpec::default()
        },
        popularity: Popularity::Ranks {
            ranges: popularity.iter().map(|&(n, requests)| (Count(n), requests as f64)).collect(),
        },
        mix: Mix::only(Op::Read),
        hit_ratio,
        refill: true,
        ..WorkloadSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::statistics::distance;
    use crate::{BLOCK, Workload};

    /// What the whole published tables say, computed from them.
    struct Published {
        spec: WorkloadSpec,
        records: u64,
        /// Parts of the objects, and their part of the requests.
        requests: [(f64, f64); 4],
        mean: f64,
        /// P(value <= bytes).
        values: [(u64, f64); 6],
        loaded: f64,
        keys: fn(usize) -> f64,
    }

    fn agrees(published: &Published) {
        let Published { spec, records, .. } = published;
        assert_eq!((spec.records.0, spec.is_load()), (*records, false));
        let workload = Workload::new(spec).unwrap();
        let mut stream = workload.stream();
        let draws = 400_000u64;
        let (mut keys, mut lengths, mut key) = (Vec::new(), Vec::new(), Vec::new());
        let (mut drawn, mut once) = (Vec::new(), 0u64);
        for index in 0..draws {
            if index % BLOCK == 0 {
                stream.seek(index / BLOCK);
            }
            let operation = stream.next(u64::MAX).unwrap();
            match Workload::is_absent(operation.record) {
                true => once += 1,
                false => drawn.push(operation.record),
            }
            // Of all records, not by popularity.
            let record = index * (records / draws);
            workload.key(record, &mut key);
            keys.push(key.len());
            lengths.push(workload.value_length(&key, workload.load_salt(record)));
        }
        let near = |count: usize, all: usize, share: f64, reduced: f64| {
            let observed = count as f64 / all as f64;
            // Five standard errors, and what the reduction of the table moved.
            let limit = 5.0 * (share * (1.0 - share) / all as f64).sqrt() + reduced;
            assert!((observed - share).abs() < limit, "{share}: {observed}");
        };
        near(once as usize, draws as usize, 1.0 - published.loaded, 0.0);
        for (part, share) in published.requests {
            let below = (part * *records as f64) as u64;
            let hits = drawn.iter().filter(|record| **record < below).count();
            near(hits, drawn.len(), share, 0.0012);
        }
        for (bytes, share) in published.values {
            let below = lengths.iter().filter(|length| **length <= bytes).count();
            near(below, lengths.len(), share, if bytes < 300 { 0.0 } else { 0.004 });
        }
        let mean = workload.spec().parts().unwrap().values.mean();
        assert!((mean / published.mean - 1.0).abs() < 2e-4, "{mean}");
        let keys = distance(keys, published.keys);
        assert!(keys < 1.95, "{keys}");
    }

    #[test]
    fn graph_cache_leader_has_the_published_statistics() {
        agrees(&Published {
            spec: graph_cache_leader(),
            records: 27_564_687,
            requests: [(1e-4, 0.006405), (1e-3, 0.024391), (0.01, 0.107071), (0.1, 0.372019)],
            mean: 341.1675,
            values: [
                (63, 0.175150),
                (127, 0.312182),
                (255, 0.624700),
                (1023, 0.967052),
                (4095, 0.995776),
                (65_535, 0.999984),
            ],
            loaded: 0.768456,
            // Shorter ones are lengthened to the 11 B that distinct keys need.
            keys: |k| if k < 11 { 0.0 } else { 0.3 + 0.7 * (k as f64 - 7.0) / 56.0 },
        });
    }

    #[test]
    fn kvcache_has_the_published_statistics() {
        agrees(&Published {
            spec: kvcache(),
            records: 10_483_642,
            requests: [(1e-4, 0.411710), (1e-3, 0.567990), (0.01, 0.723900), (0.1, 0.866029)],
            mean: 335.1855,
            values: [
                (63, 0.000755),
                (127, 0.372647),
                (159, 0.864087),
                (255, 0.931007),
                (1023, 0.991570),
                (65_535, 0.999478),
            ],
            loaded: 0.879636,
            keys: |k| match k {
                0..16 => 0.0,
                16..250 => (k as f64 - 15.0) / 239.0,
                _ => 1.0,
            },
        });
    }
}
