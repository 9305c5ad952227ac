//! What describing and capturing cost beside reading a trace: requests a second of a core, and as
//! multiples of reading within one run.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use workload::describe::describe;
use workload::trace::{KeyHasher, SECRET, TraceOptions, TraceRecords, TraceWriter};

const REQUESTS: u64 = 400_000;
const ROUNDS: usize = 7;
/// At most so many times as long as reading the same trace.
const MOST_DESCRIBED: f64 = 30.0;
const MOST_CAPTURED: f64 = 10.0;

fn twitter() -> String {
    let line = |request: u64| {
        let random = request.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = (random >> 40) * (random >> 20 & 0xf) / 16;
        format!("{},nz:u:{key:020},25,{},7,get,0\n", request / 10_000, key % 5000)
    };
    (0..REQUESTS).map(line).collect()
}

fn open(path: &Path) -> TraceRecords {
    TraceRecords::open(path, &TraceOptions::default()).unwrap()
}

fn read(path: &Path) {
    let mut records = open(path);
    while let Some(record) = records.next().unwrap() {
        black_box(record);
    }
}

fn described(path: &Path) {
    black_box(describe(&mut open(path), |_| {}).unwrap());
}

fn captured(path: &Path) {
    let mut records = open(path);
    let keys = Some(KeyHasher::new([7; SECRET]));
    let mut writer = TraceWriter::new(Vec::new(), &[("source", "bench")], keys).unwrap();
    while let Some(record) = records.next().unwrap() {
        writer.append(&record).unwrap();
    }
    black_box(writer.finish(0).unwrap());
}

/// The shortest of some rounds, in which the three follow each other.
fn shortest(path: &Path) -> [Duration; 3] {
    let mut best = [Duration::MAX; 3];
    for _ in 0..ROUNDS {
        for (best, run) in best.iter_mut().zip([read, described, captured]) {
            let begin = Instant::now();
            run(path);
            *best = begin.elapsed().min(*best);
        }
    }
    best
}

fn costs(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twitter.csv");
    std::fs::write(&path, twitter()).unwrap();
    let mut group = criterion.benchmark_group("twitter");
    group.throughput(Throughput::Elements(REQUESTS));
    for (name, run) in
        [("read", read as fn(&Path)), ("described", described), ("captured", captured)]
    {
        group.bench_function(name, |bench| bench.iter(|| run(&path)));
    }
    group.finish();
    let [read, described, captured] = shortest(&path).map(|time| time.as_secs_f64());
    for (name, time, most) in
        [("describing", described, MOST_DESCRIBED), ("capturing", captured, MOST_CAPTURED)]
    {
        let (ratio, rate) = (time / read, REQUESTS as f64 / time / 1e6);
        println!("{name}: {ratio:.1} times as long as reading, {rate:.2} M requests a second");
        assert!(ratio < most, "{name} takes {ratio:.1} times as long as reading, at most {most}");
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .sample_size(10);
    targets = costs
}
criterion_main!(benches);
