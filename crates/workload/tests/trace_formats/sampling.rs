//! Samples and copies.

use std::collections::HashMap;

use workload::trace::{ArrivalSpread, RequestChunk, TraceOptions, TraceReader, TraceRecords};

use super::binary::object;
use super::{TraceFile, shown};

/// Requests of 20,000 objects, each as often as its number says, up to ten times.
fn popular() -> TraceFile {
    let mut bytes = Vec::new();
    for round in 0..10u32 {
        for number in (0..20_000u64).filter(|number| number % 10 >= u64::from(round)) {
            bytes.extend(object(round, number, 10, -1));
        }
    }
    TraceFile::of(bytes)
}

fn counts(options: &TraceOptions) -> HashMap<String, u32> {
    let mut counts = HashMap::new();
    let (lines, error) = shown(&mut TraceRecords::open(popular().path(), options).unwrap());
    assert!(error.is_none(), "{error:?}");
    for line in lines {
        let key = line.split(' ').nth(2).unwrap().to_owned();
        *counts.entry(key).or_default() += 1;
    }
    counts
}

#[test]
fn a_sample_has_all_requests_of_a_key_or_none() {
    let all = counts(&TraceOptions::default());
    assert_eq!(all.len(), 20_000);
    let mut before = HashMap::new();
    for share in [0.001, 0.01, 0.1, 0.5] {
        let sample = counts(&TraceOptions { sample: share, ..TraceOptions::default() });
        assert!(sample.iter().all(|(key, count)| all[key] == *count));
        // Four standard deviations.
        let expected = 20_000.0 * share;
        let far = (sample.len() as f64 - expected).abs();
        assert!(far <= 4.0 * (expected * (1.0 - share)).sqrt(), "{share}: {}", sample.len());
        assert!(before.keys().all(|key| sample.contains_key(key)), "a smaller sample is a part");
        before = sample;
    }
}

/// Instants in seconds and keys of the requests of a replay.
fn replayed(file: &TraceFile, options: &TraceOptions) -> Vec<(f64, Vec<u8>)> {
    let mut reader = TraceReader::with(file.path(), options).unwrap();
    let (mut chunk, mut all) = (RequestChunk::new(), Vec::new());
    while reader.next_second(ArrivalSpread::Even, &mut chunk).unwrap() {
        all.extend(chunk.iter().map(|request| (request.at_s, request.key.to_vec())));
    }
    all
}

#[test]
fn copies_have_keys_of_their_own_and_other_instants() {
    let whole = TraceFile::of("7,key,20,1,1,get,0\n7,other,5,1,1,get,0\n9,key,20,1,1,get,0\n");
    let exact = TraceFile::of(
        "0x6b6579 0 0 0 1000000\n0x6f74686572 0 0 0 1000002\n0x6b6579 0 0 0 3000002\n",
    );
    for (file, times) in [
        (&whole, [0.125, 0.375, 0.625, 0.875, 2.25, 2.75]),
        (&exact, [0.0, 1e-6, 2e-6, 1.000_002, 2.000_002, 2.000_002]),
    ] {
        let once = replayed(file, &TraceOptions::default());
        let twice = replayed(file, &TraceOptions { copies: 2, ..TraceOptions::default() });
        assert_eq!(twice.len(), 6);
        for ((at, _), expected) in twice.iter().zip(times) {
            assert!((at - expected).abs() < 1e-9, "{at} {expected}");
        }
        let keys: Vec<&[u8]> = twice.iter().map(|(_, key)| &**key).collect();
        for (original, pair) in once.iter().zip(keys.chunks(2)) {
            assert_eq!(original.1, pair[0]);
            assert_eq!(pair[0].len(), pair[1].len());
        }
        assert_eq!((keys[0], keys[1]), (keys[4], keys[5]), "a copy's key is the same each time");
        let different: std::collections::HashSet<&[u8]> = keys.into_iter().collect();
        assert_eq!(different.len(), 4);
    }
}

#[test]
fn copies_multiply_the_keys() {
    let options = TraceOptions { copies: 3, sample: 0.1, ..TraceOptions::default() };
    let sampled = counts(&TraceOptions { copies: 1, ..options });
    let all = replayed(&popular(), &options);
    let keys: std::collections::HashSet<&Vec<u8>> = all.iter().map(|(_, key)| key).collect();
    assert_eq!(keys.len(), 3 * sampled.len());
    assert_eq!(all.len() as u32, 3 * sampled.values().sum::<u32>());
}
