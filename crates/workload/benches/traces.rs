//! Requests a second that a core reads from traces: as records, as the requests of a replay, and
//! handed to another thread.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tempfile::TempDir;
use workload::trace::{
    ArrivalSpread, FeedItem, RequestChunk, TraceOptions, TraceReader, TraceRecords,
};

const REQUESTS: u64 = 400_000;

fn object(request: u64) -> u64 {
    let random = request.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (random >> 40) * (random >> 20 & 0xf) / 16
}

fn oracle_general() -> Vec<u8> {
    (0..REQUESTS)
        .flat_map(|request| {
            let second = (request / 10_000) as u32;
            let object = object(request);
            let size = (object % 5000) as u32;
            let next = (request + 1000 + object % 10_000) as i64;
            [
                &second.to_le_bytes()[..],
                &object.to_le_bytes(),
                &size.to_le_bytes(),
                &next.to_le_bytes(),
            ]
            .concat()
        })
        .collect()
}

fn twitter() -> Vec<u8> {
    let line = |request| {
        let (second, key) = (request / 10_000, object(request));
        format!("{second},nz:u:{key:020},25,{},7,get,0\n", key % 5000)
    };
    (0..REQUESTS).map(line).collect::<String>().into_bytes()
}

fn cachelib() -> Vec<u8> {
    let line = |request| {
        let (second, key) = (604_038_471 + request / 10_000, object(request));
        format!("{second},{key:016x},48,GET,1,{},1,0,366387042,3003229276\n", key % 5000)
    };
    let header = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n";
    (header.to_owned() + &(0..REQUESTS).map(line).collect::<String>()).into_bytes()
}

fn monitor() -> Vec<u8> {
    let line = |request: u64| {
        let (second, micros, key) = (request / 10_000, request % 10_000 * 100, object(request));
        format!("{second}.{micros:06} [0 127.0.0.1:56206] \"GET\" \"user:{key:016}\"\n")
    };
    (0..REQUESTS).map(line).collect::<String>().into_bytes()
}

/// The file plain and compressed.
fn files(folder: &TempDir, name: &str, bytes: &[u8]) -> [(&'static str, PathBuf); 2] {
    let (plain, packed) = (folder.path().join(name), folder.path().join(format!("{name}.zst")));
    std::fs::write(&plain, bytes).unwrap();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    std::fs::write(&packed, ruzstd::encoding::compress_to_vec(bytes, level)).unwrap();
    [("plain", plain), ("zstd", packed)]
}

fn read_records(path: &Path) {
    let mut records = TraceRecords::open(path, &TraceOptions::default()).unwrap();
    let mut count = 0;
    while let Some(record) = records.next().unwrap() {
        black_box(record);
        count += 1;
    }
    assert_eq!(count, REQUESTS);
}

fn read_requests(path: &Path, chunk: &mut RequestChunk) {
    let mut trace = TraceReader::open(path).unwrap();
    while trace.next_second(ArrivalSpread::Even, chunk).unwrap() {
        black_box(chunk.len());
    }
}

fn read(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let mut chunk = RequestChunk::new();
    for (name, bytes) in [
        ("oracle-general", oracle_general()),
        ("twitter", twitter()),
        ("cachelib", cachelib()),
        ("redis-monitor", monitor()),
    ] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(REQUESTS));
        for (packing, path) in files(&folder, name, &bytes) {
            group.bench_function(BenchmarkId::new("records", packing), |bench| {
                bench.iter(|| read_records(&path));
            });
            group.bench_function(BenchmarkId::new("requests", packing), |bench| {
                bench.iter(|| read_requests(&path, &mut chunk));
            });
        }
        group.finish();
    }
}

fn feed(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let [(_, plain), _] = files(&folder, "twitter", &twitter());
    let mut group = criterion.benchmark_group("feed");
    group.throughput(Throughput::Elements(REQUESTS));
    group.bench_function("one consumer", |bench| {
        bench.iter(|| {
            let mut feeds =
                TraceReader::open(&plain).unwrap().feed(1, ArrivalSpread::Even).unwrap();
            loop {
                match feeds[0].peek(Duration::from_secs(10)).unwrap() {
                    FeedItem::Request(request) => black_box(request.key.len()),
                    FeedItem::NotYet => continue,
                    FeedItem::End => break,
                };
                feeds[0].advance();
            }
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .sample_size(10);
    targets = read, feed
}
criterion_main!(benches);
