//! The stream as a driver sees it.
// The lint exempts test functions, but not their helpers.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use model::{Count, Op};
use proptest::prelude::*;
use workload::{BLOCK, Mix, Operation, OperationStream, Workload, WorkloadSpec};

fn spec(mix: &str, popularity: &str, seed: u64) -> WorkloadSpec {
    WorkloadSpec {
        records: Count(1000),
        seed,
        mix: mix.parse().unwrap(),
        popularity: popularity.parse().unwrap(),
        ..WorkloadSpec::default()
    }
}

/// Everything is acknowledged at once.
const ALL: u64 = u64::MAX;

fn walk(stream: &mut OperationStream<'_>, block: u64, observed: &mut BTreeMap<u64, Operation>) {
    stream.seek(block);
    let mut index = block * BLOCK;
    while let Some(operation) = stream.next(ALL) {
        assert_eq!(observed.insert(index, operation), None, "operation {index} came twice");
        index += 1;
    }
    assert_eq!(index, (block + 1) * BLOCK);
}

const MIXES: [&str; 6] = [
    "read=1",
    "insert=1",
    "read=0.95,update=0.05",
    "scan=0.95,insert=0.05",
    "read=1,update=1,insert=1,scan=1,rmw=1,delete=1",
    "insert=0.999,read=0.001",
];
const POPULARITIES: [&str; 7] =
    ["uniform", "sequential", "zipfian", "scrambled_zipfian", "latest", "hotspot", "exponential"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A block has the same operations in every thread, and the fingerprints have the same sum.
    #[test]
    fn stream_is_independent_of_threads(
        mix in prop::sample::select(&MIXES[..]),
        popularity in prop::sample::select(&POPULARITIES[..]),
        seed: u64,
        owners in prop::collection::vec(0usize..3, 1..60),
    ) {
        let workload = Workload::new(&spec(mix, popularity, seed)).unwrap();
        let mut alone = BTreeMap::new();
        let mut stream = workload.stream();
        for block in 0..owners.len() as u64 {
            walk(&mut stream, block, &mut alone);
        }
        let mut shared = BTreeMap::new();
        let mut streams = [workload.stream(), workload.stream(), workload.stream()];
        for (block, &owner) in owners.iter().enumerate() {
            walk(&mut streams[owner], block as u64, &mut shared);
        }
        prop_assert_eq!(&alone, &shared);
        let sum = streams.iter().fold(0u64, |sum, s| sum.wrapping_add(s.fingerprint()));
        prop_assert_eq!(sum, stream.fingerprint());
    }

    /// Inserts are numbered without a gap, and `next_insert` says the next number at any time.
    #[test]
    fn inserts_are_contiguous(mix in prop::sample::select(&MIXES[1..]), seed: u64, skip in 0u64..9) {
        let workload = Workload::new(&spec(mix, "uniform", seed)).unwrap();
        let mut stream = workload.stream();
        let mut next = 1000;
        for block in 0..40 {
            stream.seek(block);
            prop_assert_eq!(stream.next_insert(), next);
            while let Some(operation) = stream.next(ALL) {
                if operation.op == Op::Insert {
                    prop_assert_eq!(operation.record, next);
                    next += 1;
                }
                prop_assert_eq!(stream.next_insert(), next);
            }
            // A stream that seeks to the same position agrees.
            let mut other = workload.stream();
            other.seek(block.saturating_sub(skip));
            other.next(ALL);
            other.seek(block + 1);
            prop_assert_eq!(other.next_insert(), next);
            // A stream that seeks back restarts.
            other.seek(0);
            prop_assert_eq!(other.next_insert(), 1000);
        }
    }

    #[test]
    fn latest_reads_only_acknowledged_records(seed: u64, acknowledged in 1u64..1500) {
        let workload = Workload::new(&spec("read=0.5,insert=0.5", "latest", seed)).unwrap();
        let mut stream = workload.stream();
        let mut plain = workload.stream();
        let (mut moved, mut reads) = (0, 0);
        for block in 0..20 {
            stream.seek(block);
            plain.seek(block);
            while let (Some(operation), Some(nominal)) = (stream.next(acknowledged), plain.next(ALL)) {
                if operation.op == Op::Insert {
                    prop_assert_eq!(operation, nominal);
                    continue;
                }
                reads += 1;
                prop_assert!(operation.record < acknowledged);
                moved += u64::from(nominal.record >= acknowledged);
                if nominal.record < acknowledged {
                    prop_assert_eq!(operation, nominal);
                }
            }
        }
        prop_assert!(reads > 100);
        prop_assert_eq!(stream.redirected(), moved);
        prop_assert_eq!(plain.redirected(), 0);
        prop_assert_eq!(stream.fingerprint(), plain.fingerprint());
    }
}

fn count(workload: &Workload, blocks: u64) -> Vec<Operation> {
    let mut stream = workload.stream();
    let mut operations = Vec::new();
    for block in 0..blocks {
        stream.seek(block);
        operations.extend(std::iter::from_fn(|| stream.next(ALL)));
    }
    operations
}

/// Chi-square over the kinds of operation, and the variance of inserts from block to block, which
/// would be zero if their number were fixed.
#[test]
fn mixes_have_their_frequencies() {
    let blocks = 4000;
    for mix in MIXES {
        let workload = Workload::new(&spec(mix, "uniform", 3)).unwrap();
        let operations = count(&workload, blocks);
        let shares = mix.parse::<Mix>().unwrap().shares().unwrap();
        let mut chi = 0.0;
        for (op, &share) in shares.iter() {
            let observed = operations.iter().filter(|operation| operation.op == op).count() as f64;
            let expected = share * operations.len() as f64;
            if share == 0.0 {
                assert_eq!(observed, 0.0, "{mix}: {op}");
            } else {
                chi += (observed - expected).powi(2) / expected;
            }
        }
        // At most 5 degrees of freedom; exceeded once in 10^5.
        assert!(chi < 31.0, "{mix}: {chi}");

        let p = shares[Op::Insert];
        let per_block = operations.chunks(BLOCK as usize).map(|block| {
            block.iter().filter(|operation| operation.op == Op::Insert).count() as f64
        });
        let mean = p * BLOCK as f64;
        let variance = per_block.map(|n| (n - mean).powi(2)).sum::<f64>() / blocks as f64;
        let expected = mean * (1.0 - p);
        assert!((variance - expected).abs() <= 0.2 * expected, "{mix}: {variance} {expected}");
    }
}

/// Every place of a block is an insert equally often.
#[test]
fn inserts_are_uniform_within_a_block() {
    let workload = Workload::new(&spec("read=0.8,insert=0.2", "uniform", 9)).unwrap();
    let blocks = 10_000;
    let mut at = [0.0f64; BLOCK as usize];
    for (index, operation) in count(&workload, blocks).iter().enumerate() {
        at[index % BLOCK as usize] += f64::from(u8::from(operation.op == Op::Insert));
    }
    let expected = 0.2 * blocks as f64;
    let chi: f64 = at.iter().map(|observed| (observed - expected).powi(2) / (expected * 0.8)).sum();
    // 64 cells: the mean and five standard deviations.
    assert!(chi < 64.0 + 5.0 * 128f64.sqrt(), "{chi}");
}

#[test]
fn only_scans_have_lengths() {
    let workload = Workload::new(&spec("scan=1,read=1", "uniform", 4)).unwrap();
    let operations = count(&workload, 1000);
    let (scans, reads): (Vec<&Operation>, Vec<&Operation>) =
        operations.iter().partition(|operation| operation.op == Op::Scan);
    assert!(reads.iter().all(|operation| operation.scan == 0));
    assert!(scans.iter().all(|operation| (1..=100).contains(&operation.scan)));
    let mean =
        scans.iter().map(|operation| f64::from(operation.scan)).sum::<f64>() / scans.len() as f64;
    // Uniform over 1 ..= 100: standard deviation 28.9; five standard errors.
    assert!((mean - 50.5).abs() < 5.0 * 28.9 / (scans.len() as f64).sqrt(), "{mean}");
}

#[test]
fn records_are_drawn_from_the_loaded_ones() {
    for popularity in POPULARITIES {
        let workload = Workload::new(&spec("read=1", popularity, 1)).unwrap();
        assert!(
            count(&workload, 500).iter().all(|operation| operation.record < 1000),
            "{popularity}"
        );
    }
}

#[test]
fn seeds_give_different_operations() {
    let fingerprint = |seed| {
        let workload = Workload::new(&spec("read=1", "zipfian", seed)).unwrap();
        let mut stream = workload.stream();
        while stream.next(ALL).is_some() {}
        stream.fingerprint()
    };
    assert_ne!(fingerprint(1), fingerprint(2));
    assert_eq!(fingerprint(1), fingerprint(1));
}

/// Written values are read back, by load and by update, for all sizes.
#[test]
fn keys_and_values_fit_together() {
    let etc = "discrete:2=0.18,3=0.1,11=0.1,tail=pareto:15,214.476,0.348238";
    for size in ["1000", "uniform:0..3000", etc] {
        let mut spec = spec("update=1", "uniform", 5);
        spec.value.size = size.parse().unwrap();
        spec.key.size = Some("gev:30.7984,8.20449,0.078688".parse().unwrap());
        let workload = Workload::new(&spec).unwrap();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        for record in 0..1000 {
            workload.key(record, &mut key);
            workload.value(&key, workload.load_salt(record), &mut value);
            assert_eq!(workload.verify(&key, &value), Ok(()));
            bytes += key.len() + value.len();
        }
        let expected = spec.data_bytes() as f64;
        assert!((bytes as f64 / expected - 1.0).abs() < 0.1, "{size}: {bytes} {expected}");
        for operation in count(&workload, 10) {
            workload.key(operation.record, &mut key);
            workload.value(&key, operation.salt, &mut value);
            assert_eq!(workload.verify(&key, &value), Ok(()));
        }
    }
}

/// A workload over 10^12 records is as small and as quick to make as any.
#[test]
fn record_count_does_not_affect_cost() {
    for popularity in POPULARITIES {
        let mut spec = spec("read=1", popularity, 1);
        spec.records = Count(1_000_000_000_000);
        let workload = Workload::new(&spec).unwrap();
        assert!(count(&workload, 10).iter().all(|operation| operation.record < 1_000_000_000_000));
    }
}

/// Values are stable, so that loaded data stays valid.
#[test]
fn values_are_stable() {
    for (size, compressibility, expected) in [
        ("1000", 0.0, 0x9622dd35a8895794),
        ("uniform:0..9000", 0.3, 0x66eb4196de39554c),
        ("10", 0.0, 0x32900a0ebd3d06d1),
    ] {
        let mut spec = WorkloadSpec { seed: 7, ..WorkloadSpec::default() };
        spec.value.size = size.parse().unwrap();
        spec.value.compressibility = compressibility;
        let workload = Workload::new(&spec).unwrap();
        let (mut key, mut value, mut sum) = (Vec::new(), Vec::new(), 0u64);
        for record in 0..2000 {
            workload.key(record, &mut key);
            workload.value(&key, workload.load_salt(record), &mut value);
            for byte in &value {
                sum = (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3).rotate_left(7);
            }
        }
        assert_eq!(sum, expected, "{size}");
    }
}
