//! Reads of several keys, and of keys that are not there.
// The lint exempts test functions, but not their helpers.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use model::{Count, Op};
use workload::{Operation, Workload, WorkloadSpec};

fn spec(mix: &str, popularity: &str, multi_get: u32, hit_ratio: f64) -> WorkloadSpec {
    WorkloadSpec {
        records: Count(50),
        mix: mix.parse().unwrap(),
        popularity: popularity.parse().unwrap(),
        multi_get,
        hit_ratio,
        ..WorkloadSpec::default()
    }
}

fn operations(workload: &Workload, blocks: u64, acknowledged: u64) -> Vec<Operation> {
    let mut stream = workload.stream();
    let mut operations = Vec::new();
    for block in 0..blocks {
        stream.seek(block);
        operations.extend(std::iter::from_fn(|| stream.next(acknowledged)));
    }
    operations
}

/// Streams without multi-get and absent keys: fingerprint, and a sum over operations, records,
/// salts, scans and keys.
#[test]
fn plain_streams_are_stable() {
    let all = "read=1,update=1,insert=1,scan=1,rmw=1,delete=1";
    for (mix, popularity, fingerprint, sum) in [
        ("read=1", "uniform", 0xba1acf60c18201f6, 0x3c5285515b8aec6e),
        ("read=1", "sequential", 0x4742f89c3ff4df84, 0x3ae830d164ccc6ad),
        ("read=0.5,update=0.5", "scrambled_zipfian", 0x490703e778078820, 0xe0721bff257b5215),
        ("read=0.95,insert=0.05", "latest", 0xc764b4704e5638c7, 0x1c5add8f63e4afdd),
        ("scan=0.95,insert=0.05", "zipfian", 0xee5dc186936d455c, 0x8653d5e7121d288a),
        (all, "hotspot", 0xc7cb7ef13738f015, 0x268fe6030fb53f3e),
        ("read=3,insert=1", "exponential", 0x7635300d83ef08b9, 0x7e3cd3840b92d25d),
    ] {
        let spec =
            WorkloadSpec { records: Count(1_000_000), seed: 7, ..spec(mix, popularity, 1, 1.0) };
        let workload = Workload::new(&spec).unwrap();
        let mut stream = workload.stream();
        let (mut observed, mut key) = (0u64, Vec::new());
        for block in 0..100 {
            stream.seek(block);
            while let Some(operation) = stream.next(1_000_010) {
                workload.key(operation.record, &mut key);
                let letters: u64 = key.iter().map(|byte| u64::from(*byte)).sum();
                let words = operation.record
                    ^ u64::from(operation.scan)
                    ^ operation.salt
                    ^ (operation.op as u64) << 32;
                observed = observed.rotate_left(5) ^ words ^ letters;
                assert_eq!(operation.keys, 1);
                assert_eq!(workload.nth(&operation, 0), operation.record);
            }
        }
        assert_eq!((stream.fingerprint(), observed), (fingerprint, sum), "{mix} {popularity}");
    }
}

/// Chi-square over 50 records at several places of the read: 49 degrees of freedom, exceeded by
/// chance once in 10^5.
#[test]
fn every_key_of_a_read_is_drawn_by_the_popularity() {
    let zipf = |theta: f64| (1..=50).map(|k| f64::from(k).powf(-theta)).collect::<Vec<f64>>();
    let hotspot = (0..50).map(|k| if k < 10 { 0.08 } else { 0.005 }).collect();
    for (popularity, masses) in
        [("uniform", vec![1.0; 50]), ("zipfian:0.9", zipf(0.9)), ("hotspot:0.2,0.8", hotspot)]
    {
        let workload = Workload::new(&spec("read=3,update=1", popularity, 100, 1.0)).unwrap();
        let total: f64 = masses.iter().sum();
        let operations = operations(&workload, 1000, u64::MAX);
        let reads: Vec<&Operation> =
            operations.iter().filter(|operation| operation.op == Op::Read).collect();
        assert!(
            operations
                .iter()
                .all(|operation| operation.keys == if operation.op == Op::Read { 100 } else { 1 })
        );
        for n in [0, 1, 2, 99] {
            let mut observed = [0.0; 50];
            reads.iter().for_each(|operation| observed[workload.nth(operation, n) as usize] += 1.0);
            let chi: f64 = observed
                .iter()
                .zip(&masses)
                .map(|(observed, mass)| (observed, mass / total * reads.len() as f64))
                .map(|(observed, expected)| (observed - expected).powi(2) / expected)
                .sum();
            assert!(chi < 103.0, "{popularity}, key {n}: {chi}");
        }
        // Keys of one read are independent: two are the same as often as two draws are.
        let same = reads
            .iter()
            .filter(|operation| workload.nth(operation, 3) == workload.nth(operation, 4))
            .count();
        let expected: f64 = masses.iter().map(|mass| (mass / total).powi(2)).sum();
        let share = same as f64 / reads.len() as f64;
        let error = (expected * (1.0 - expected) / reads.len() as f64).sqrt();
        assert!((share - expected).abs() < 5.0 * error, "{popularity}: {share} {expected}");
    }
}

#[test]
fn absent_share_matches_hit_ratio() {
    for popularity in ["uniform", "zipfian", "scrambled_zipfian", "latest", "exponential"] {
        for hit_ratio in [0.0, 0.3, 0.95] {
            let spec = spec("read=1,update=1,rmw=1,delete=1", popularity, 8, hit_ratio);
            let workload = Workload::new(&spec).unwrap();
            let (mut absent, mut keys) = (Vec::new(), 0);
            for operation in operations(&workload, 400, u64::MAX) {
                if operation.op != Op::Read {
                    assert!(operation.record < 50, "only reads ask for what is not there");
                    continue;
                }
                for record in (0..operation.keys).map(|n| workload.nth(&operation, n)) {
                    keys += 1;
                    assert!(record < 50 || Workload::is_absent(record), "{record}");
                    assert!(record < 2 * Workload::ABSENT);
                    absent.extend(Workload::is_absent(record).then_some(record));
                }
            }
            let share = absent.len() as f64 / f64::from(keys);
            let error = (hit_ratio * (1.0 - hit_ratio) / f64::from(keys)).sqrt();
            assert!((share - (1.0 - hit_ratio)).abs() <= 5.0 * error, "{popularity}: {share}");
            assert_eq!(absent.iter().collect::<HashSet<_>>().len(), absent.len());
        }
    }
}

#[test]
fn absent_records_have_keys_of_their_own() {
    let workload =
        Workload::new(&WorkloadSpec { records: Count(20_000), ..WorkloadSpec::default() }).unwrap();
    let absent = Workload::ABSENT;
    let mut keys = HashSet::new();
    for record in (0..20_000).chain(absent..absent + 20_000) {
        let mut key = Vec::new();
        workload.key(record, &mut key);
        assert!(keys.insert(key), "{record}");
    }
    let mut ordered = spec("read=1", "uniform", 1, 0.5);
    ordered.order = workload::InsertOrder::Ordered;
    assert_eq!(ordered.check(), Ok(()));
    ordered.key.size = Some("10".parse().unwrap());
    let error = ordered.check().unwrap_err().to_string();
    assert!(error.contains("`key.size`") && error.contains("`hit_ratio`"), "{error}");
    assert_eq!(WorkloadSpec { hit_ratio: 1.0, ..ordered }.check(), Ok(()));
}

/// The newest record is that of the first key, also where that was moved.
#[test]
fn multi_get_latest_reads_only_acknowledged_records() {
    for hit_ratio in [1.0, 0.5] {
        let spec = WorkloadSpec {
            records: Count(1000),
            ..spec("read=0.5,update=0.1,insert=0.4", "latest", 5, hit_ratio)
        };
        let workload = Workload::new(&spec).unwrap();
        let (mut others, mut inserted) = (0, 0);
        for operation in operations(&workload, 100, 1100) {
            for record in (0..operation.keys).map(|n| workload.nth(&operation, n)) {
                if operation.op == Op::Read && !Workload::is_absent(record) {
                    assert!(record < 1100, "{record}");
                    others += 1;
                    inserted += u64::from(record >= 1000);
                }
            }
        }
        assert!(others > 5000 && inserted > others / 10, "{others} {inserted}");
    }
}

#[test]
fn sequential_reads_go_through_the_records_in_order() {
    for hit_ratio in [1.0, 0.5] {
        let workload = Workload::new(&spec("read=1", "sequential", 7, hit_ratio)).unwrap();
        let mut due = 0;
        for operation in operations(&workload, 10, u64::MAX) {
            for record in (0..operation.keys).map(|n| workload.nth(&operation, n)) {
                assert_eq!(record % Workload::ABSENT, due % 50);
                due += 1;
            }
        }
        assert_eq!(due, 7 * 640);
    }
}

#[test]
fn multi_get_changes_only_the_fingerprint() {
    let one = Workload::new(&spec("read=1,scan=1", "zipfian", 1, 1.0)).unwrap();
    let ten = Workload::new(&spec("read=1,scan=1", "zipfian", 10, 1.0)).unwrap();
    let (mut a, mut b) = (one.stream(), ten.stream());
    while let (Some(one), Some(ten)) = (a.next(u64::MAX), b.next(u64::MAX)) {
        assert_eq!(one, Operation { keys: 1, ..ten });
    }
    assert_ne!(a.fingerprint(), b.fingerprint());
}

#[test]
fn skew_counts_every_loaded_key() {
    for popularity in ["uniform", "zipfian", "scrambled_zipfian", "latest", "sequential"] {
        let skew = |multi_get, hit_ratio| {
            let spec = WorkloadSpec {
                records: Count(100_000),
                ..spec("read=1", popularity, multi_get, hit_ratio)
            };
            Workload::new(&spec).unwrap().skew(400_000).unwrap()
        };
        let plain = skew(1, 1.0);
        for (multi_get, hit_ratio) in [(4, 1.0), (1, 0.5), (4, 0.5)] {
            let measured = skew(multi_get, hit_ratio);
            let expected = plain.top_1_percent * hit_ratio;
            // Five standard errors of a share of one half, counted twice.
            assert!(
                (measured.top_1_percent - expected).abs() < 0.006,
                "{popularity}: {measured:?}"
            );
            assert_eq!(measured.operations, 400_000);
        }
    }
}
