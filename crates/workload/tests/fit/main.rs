//! Workloads that are made of a trace's description, held against the trace.
// The lint exempts test functions, but not their helpers.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use model::random::{Draws, RandomStream, below, unit};
use model::{Count, RateProfile};
use workload::describe::{Describer, MOST_SAMPLED_KEYS, TraceDescription, describe};
use workload::fit::{ComparedFigure, FittedWorkload, Resemblance, describe_generated, fit};
use workload::trace::{TraceKey, TraceOp, TraceOptions, TraceRecord, TraceRecords, TraceTiming};
use workload::{
    KeyForm, KeySpec, LengthSource, LengthSpec, Popularity, ValueSpec, Workload, WorkloadSpec,
};

/// Reads of these keys at whole seconds, one value size a key.
fn described(keys: impl IntoIterator<Item = u64>, a_second: u64) -> TraceDescription {
    let mut describer = Describer::new(TraceTiming::Seconds, MOST_SAMPLED_KEYS);
    for (index, key) in keys.into_iter().enumerate() {
        describer.add(&TraceRecord {
            at_ns: index as u64 / a_second * 1_000_000_000,
            operation: TraceOp::Get,
            key: TraceKey::Number(key),
            key_size: Some(20),
            value_size: Some(100),
            expiry: None,
        });
    }
    describer.finish()
}

fn generated(popularity: Popularity, records: u64, requests: usize) -> Vec<u64> {
    let spec =
        WorkloadSpec { popularity, records: Count(records), seed: 77, ..WorkloadSpec::default() };
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

fn compared(description: &TraceDescription, timing: TraceTiming) -> (FittedWorkload, Resemblance) {
    let fitted = fit(description, timing, |_| {});
    let workload = Workload::new(&fitted.file.workload).unwrap();
    let profile = fitted.file.rate_profile.as_deref().map(|text| RateProfile::parse(text).unwrap());
    let like = describe_generated(&workload, description, timing, profile.as_ref(), |_| {});
    let resemblance = Resemblance::of(description, &like);
    (fitted, resemblance)
}

/// The greatest difference of the miss ratio.
fn difference(resemblance: &Resemblance) -> f64 {
    let off = resemblance.miss_ratios.iter().map(|point| (point.trace - point.generated).abs());
    off.fold(0.0, f64::max)
}

#[test]
fn independent_requests_need_no_reuse() {
    for (popularity, records, requests) in [
        (Popularity::Zipfian { theta: 0.99 }, 20_000, 200_000),
        (Popularity::Zipfian { theta: 0.8 }, 100_000, 200_000),
        (Popularity::Uniform, 5_000, 100_000),
        (Popularity::Hotspot { keys: 0.1, operations: 0.9 }, 10_000, 100_000),
    ] {
        let named = popularity.to_string();
        let description = described(generated(popularity.clone(), records, requests), 1000);
        let (fitted, resemblance) = compared(&description, TraceTiming::Seconds);
        let repeat = fitted.file.workload.reuse.as_ref().map_or(0.0, |reuse| reuse.repeat);
        println!("{named}: {:.4}, repeat {repeat}", difference(&resemblance));
        assert!(resemblance.holds, "{named}: {:?}", resemblance.figures);
        assert_eq!(repeat, 0.0, "{named}");
    }
}

/// A key's size stays: over the requests, the most popular ones decide the mean.
#[test]
fn popular_keys_have_the_sizes_of_the_trace() {
    for seed in [3, 5, 8] {
        let spec = WorkloadSpec { seed, ..WorkloadSpec::preset("etc").unwrap() };
        let trace = described([1], 1000);
        let workload = Workload::new(&WorkloadSpec { records: Count(50_000), ..spec }).unwrap();
        let like = TraceDescription { requests: 60_000, ..trace };
        let description = describe_generated(&workload, &like, TraceTiming::Untimed, None, |_| {});
        let (fitted, resemblance) = compared(&description, TraceTiming::Untimed);
        println!("{seed}: seed {}", fitted.file.workload.seed);
        assert!(resemblance.holds, "{:#?}", resemblance.figures);
    }
}

/// Popular keys with large values fill a cache sooner.
#[test]
fn sizes_that_go_with_popularity_decide_how_much_a_cache_of_bytes_holds() {
    let first = vec![
        (0.01, LengthSpec::parse("uniform:5000..15000").unwrap()),
        (0.2, LengthSpec::parse("exponential:2000").unwrap()),
    ];
    let spec = WorkloadSpec {
        records: Count(20_000),
        popularity: Popularity::Zipfian { theta: 0.9 },
        key: KeySpec { form: KeyForm::Text, size: None },
        value: ValueSpec {
            size: LengthSpec::fixed(200),
            size_of_first: first,
            length_by: LengthSource::Key,
            ..ValueSpec::default()
        },
        ..WorkloadSpec::default()
    };
    let workload = Workload::new(&spec).unwrap();
    let like = TraceDescription { requests: 200_000, ..described([1], 1000) };
    let description = describe_generated(&workload, &like, TraceTiming::Untimed, None, |_| {});
    let by_bytes = |spec: &WorkloadSpec| {
        let workload = Workload::new(spec).unwrap();
        let like = describe_generated(&workload, &description, TraceTiming::Untimed, None, |_| {});
        let figures = Resemblance::of(&description, &like).figures;
        figures.into_iter().find(|one| one.figure == ComparedFigure::BY_BYTES).unwrap().difference
    };
    let (fitted, resemblance) = compared(&description, TraceTiming::Untimed);
    assert!(resemblance.holds, "{:#?}", resemblance.figures);
    let fitted = fitted.file.workload;
    let mut without = fitted.clone();
    without.value.size_of_first.clear();
    let (with, without) = (by_bytes(&fitted), by_bytes(&without));
    println!("miss ratio by bytes: off by {with:.4}, by {without:.4} with one size for all");
    assert!(!fitted.value.size_of_first.is_empty() && with < 0.02 && without > 0.05);
}

/// Popularity falls smoothly, and each key has few requests: their numbers are largely chance.
#[test]
fn few_requests_of_each_key_are_no_popularity() {
    let random = RandomStream::new(11, 3);
    for (keys, requests) in [(2000.0, 15_000), (20_000.0, 150_000), (20_000.0, 40_000)] {
        let key = |request| (unit(random.at(request)).powi(3) * keys) as u64;
        let description = described((0..requests).map(key), 1000);
        let (fitted, resemblance) = compared(&description, TraceTiming::Seconds);
        println!("{keys}: {:.4} {:?}", difference(&resemblance), fitted.file.workload.reuse);
        assert!(resemblance.holds, "{keys}: {:?}", resemblance.figures);
    }
}

/// Requests of which many come back soon: each is, as often as not, for one of the last keys.
fn local(requests: usize, fresh: u64) -> Vec<u64> {
    let mut draws = Draws::from(RandomStream::new(5, 5).at(0));
    let mut keys: Vec<u64> = Vec::with_capacity(requests);
    for index in 0..requests as u64 {
        let key = match below(draws.next(), 100) {
            chance if chance < fresh || index < 200 => index + 1_000_000,
            chance if chance < 60 => keys[keys.len() - 1 - below(draws.next(), 150) as usize],
            _ => below(draws.next(), 2000),
        };
        keys.push(key);
    }
    keys
}

#[test]
fn recent_keys_come_back_as_in_the_trace() {
    for fresh in [5, 20, 40] {
        let description = described(local(100_000, fresh), 1000);
        let (fitted, resemblance) = compared(&description, TraceTiming::Seconds);
        let reuse = fitted.file.workload.reuse.clone();
        println!("local, {fresh} % new: {:.4} by {reuse:?}", difference(&resemblance));
        assert!(resemblance.holds, "{fresh}: {:?}", resemblance.figures);
    }
}

#[test]
fn what_the_model_has_not_is_said() {
    // Keys are scanned in turn, and which ones changes: a loop, then another one.
    let keys = (0..60_000u64)
        .map(|request| if request < 30_000 { request % 500 } else { 1000 + request % 3000 });
    let (_, resemblance) = compared(&described(keys, 1000), TraceTiming::Seconds);
    println!("loops: {:.4}", difference(&resemblance));
    assert_eq!(resemblance.holds, difference(&resemblance) <= 0.02, "{:?}", resemblance.figures);
}

#[test]
fn a_rate_that_moves_becomes_a_profile() {
    let mut describer = Describer::new(TraceTiming::Seconds, MOST_SAMPLED_KEYS);
    for second in 0..100u64 {
        let requests = if (40..60).contains(&second) { 3000 } else { 500 };
        for request in 0..requests {
            describer.add(&TraceRecord {
                at_ns: second * 1_000_000_000,
                operation: if request % 10 == 0 { TraceOp::Set } else { TraceOp::Get },
                key: TraceKey::Number(model::random::mix(second * 7919 + request) % 300),
                key_size: Some(30),
                value_size: Some((200 + request % 700) as u32),
                expiry: None,
            });
        }
    }
    let (fitted, resemblance) = compared(&describer.finish(), TraceTiming::Seconds);
    assert!(fitted.file.rate_profile.unwrap().starts_with("steps:500@"));
    assert!(resemblance.holds, "{:?}", resemblance.figures);
    assert!(resemblance.figures.iter().any(|figure| figure.figure == "rate over time"));
}

fn sample(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let file = folder.join(name);
    file.exists().then_some(file)
}

/// Real requests, where the sample traces are there.
#[test]
fn samples_of_real_traces_are_like_their_workloads() {
    for name in ["cloudphysics-30k.oracleGeneral.zst"] {
        let Some(file) = sample(name) else {
            println!("{name} is not here; nothing is tested");
            continue;
        };
        let mut records = TraceRecords::open(&file, &TraceOptions::default()).unwrap();
        let description = describe(&mut records, |_| {}).unwrap();
        let (fitted, resemblance) = compared(&description, records.timing());
        println!("{name}: {:.4} by {:?}", difference(&resemblance), fitted.file.workload.reuse);
        for figure in &resemblance.figures {
            println!("  {figure:?}");
        }
        assert!(difference(&resemblance) <= 0.02, "{name}");
    }
}
