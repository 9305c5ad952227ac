//! The generator's cost for each operation, in nanoseconds.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use model::Count;
use workload::{Operation, OperationStream, ReuseSpec, Workload, WorkloadSpec};

fn workload(mix: &str, popularity: &str) -> Workload {
    let spec = WorkloadSpec {
        records: Count(100_000_000),
        mix: mix.parse().unwrap(),
        popularity: popularity.parse().unwrap(),
        ..WorkloadSpec::default()
    };
    Workload::new(&spec).unwrap()
}

/// The next operation of an endless stream.
#[inline(always)]
fn next(stream: &mut OperationStream<'_>, block: &mut u64) -> Operation {
    loop {
        if let Some(operation) = stream.next(u64::MAX) {
            return operation;
        }
        *block += 1;
        stream.seek(*block);
    }
}

fn draw(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("draw");
    for (mix, popularity) in [
        ("read=1", "uniform"),
        ("read=1", "sequential"),
        ("read=1", "zipfian"),
        ("read=1", "zipfian:1"),
        ("read=1", "zipfian:1.2"),
        ("read=1", "scrambled_zipfian"),
        ("read=0.5,update=0.5", "scrambled_zipfian"),
        ("read=0.95,insert=0.05", "latest"),
        ("scan=0.95,insert=0.05", "scrambled_zipfian"),
        ("read=1", "hotspot"),
        ("read=1", "exponential"),
        ("read=1", "ranks:1=0.2,9=0.2,90=0.2,900=0.2,99000=0.2"),
        ("insert=1", "uniform"),
    ] {
        let workload = workload(mix, popularity);
        let (mut stream, mut block) = (workload.stream(), 0);
        group.bench_function(format!("{mix} {popularity}"), |bench| {
            bench.iter(|| black_box(next(&mut stream, &mut block)));
        });
    }
    let workload = workload("read=0.95,insert=0.05", "uniform");
    let (mut stream, mut block) = (workload.stream(), 0);
    group.bench_function("skip 1024 blocks", |bench| {
        bench.iter(|| {
            block += 1 << 10;
            stream.seek(block);
            stream.next_insert()
        });
    });
    group.finish();
}

fn key(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("key");
    for (form, size, order) in [
        ("ycsb", "", "hashed"),
        ("ycsb", "30", "hashed"),
        ("ycsb", "", "ordered"),
        ("binary", "", "hashed"),
        ("binary", "16", "hashed"),
        ("decimal", "", "ordered"),
        ("ycsb", "'gev:30.7984,8.20449,0.078688'", "hashed"),
    ] {
        let size = if size.is_empty() { String::new() } else { format!("size = {size}") };
        let text = format!("order = '{order}'\n[key]\nform = '{form}'\n{size}");
        let workload = Workload::new(&toml::from_str(&text).unwrap()).unwrap();
        let (mut record, mut out) = (0, Vec::new());
        group.bench_function(format!("{form} {order} {size}"), |bench| {
            bench.iter(|| {
                record += 1;
                workload.key(record, &mut out);
                black_box(out.len())
            });
        });
    }
    group.finish();
}

fn value(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("value");
    for (size, compressibility) in
        [("100", 0.0), ("1000", 0.0), ("1000", 0.5), ("4KiB", 0.0), ("uniform:500..1500", 0.0)]
    {
        let mut spec = WorkloadSpec::default();
        spec.value.size = size.parse().unwrap();
        spec.value.compressibility = compressibility;
        let workload = Workload::new(&spec).unwrap();
        let (mut key, mut out) = (Vec::new(), Vec::new());
        workload.key(7, &mut key);
        let mut salt = 0;
        group.bench_function(format!("fill {size} c={compressibility}"), |bench| {
            bench.iter(|| {
                salt += 1;
                workload.value(black_box(&key), workload.load_salt(salt), &mut out);
                black_box(out.len())
            });
        });
        group.bench_function(format!("verify {size} c={compressibility}"), |bench| {
            bench.iter(|| workload.verify(black_box(&key), black_box(&out)));
        });
    }
    group.finish();
}

/// The work of the harness for one read: draw, key, verify.
fn whole(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("whole");
    for name in ["ycsb-c", "ycsb-a", "kreon-c"] {
        let spec = WorkloadSpec::preset(name).unwrap();
        let workload = Workload::new(&spec).unwrap();
        let (mut stream, mut block) = (workload.stream(), 0);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        group.bench_function(format!("{name}: draw and key, value where written"), |bench| {
            bench.iter(|| {
                let operation = next(&mut stream, &mut block);
                workload.key(operation.record, &mut key);
                if operation.op.writes() {
                    workload.value(&key, operation.salt, &mut value);
                }
                black_box((key.len(), value.len()))
            });
        });
    }
    let workload = Workload::new(&WorkloadSpec::preset("ycsb-load").unwrap()).unwrap();
    let (mut record, mut key, mut value) = (0, Vec::new(), Vec::new());
    group.bench_function("load: key and value", |bench| {
        bench.iter(|| {
            record += 1;
            workload.key(record, &mut key);
            workload.value(&key, workload.load_salt(record), &mut value);
            black_box((key.len(), value.len()))
        });
    });
    group.finish();
}

/// Reads of several keys, and of keys that are not there.
fn reads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reads");
    for (popularity, multi_get, hit_ratio) in
        [("zipfian", 1, 0.9), ("zipfian", 16, 1.0), ("zipfian", 16, 0.9), ("latest", 16, 1.0)]
    {
        let mut spec = workload("read=1", popularity).spec().clone();
        (spec.multi_get, spec.hit_ratio) = (multi_get, hit_ratio);
        let workload = Workload::new(&spec).unwrap();
        let (mut stream, mut block) = (workload.stream(), 0);
        let name = format!("{multi_get} keys, hit ratio {hit_ratio}, {popularity}");
        group.bench_function(name, |bench| {
            bench.iter(|| {
                let operation = next(&mut stream, &mut block);
                (0..operation.keys).fold(0, |sum, n| sum ^ workload.nth(&operation, n))
            });
        });
    }
    group.finish();
}

/// Requests that repeat earlier ones.
fn reuse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reuse");
    for repeat in [0.25, 0.5, 0.9] {
        let distances = (0..20).map(|octave| (1 << octave, 1.0)).collect();
        let spec = WorkloadSpec {
            reuse: Some(ReuseSpec { sweep: 0.05, swept: 0.5, repeat, distances }),
            ..workload("read=1", "zipfian").spec().clone()
        };
        let workload = Workload::new(&spec).unwrap();
        let (mut stream, mut block) = (workload.stream(), 0);
        group.bench_function(format!("{repeat} of the requests"), |bench| {
            bench.iter(|| black_box(next(&mut stream, &mut block)));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .sample_size(20);
    targets = draw, reuse, key, value, whole, reads
}
criterion_main!(benches);
