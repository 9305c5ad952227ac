//! What the RocksDB adapter adds to the library: the same call through the adapter and bare, in
//! one run, on one database. Compare within a run only.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rocksdb::{DB, Options, ReadOptions, WriteOptions};
use store::{Directory, Session, Store, StoreUrl, Visit, open};
use tempfile::TempDir;

const RECORDS: u32 = 50_000;
const VALUE: usize = 1000;

fn key(number: u32) -> [u8; 30] {
    // Spread, so that neighbours in time are not neighbours in the tree.
    let mut key = [b'0'; 30];
    key[..4].copy_from_slice(&number.wrapping_mul(2_654_435_761).to_be_bytes());
    key
}

/// The next of a fixed sequence of records, all of which are there.
fn next(state: &mut u32) -> [u8; 30] {
    *state = (state.wrapping_mul(1_664_525)).wrapping_add(1_013_904_223);
    key((*state >> 8) % RECORDS)
}

struct Adapter<'a> {
    criterion: &'a mut Criterion,
    name: &'a str,
}

impl Visit for Adapter<'_> {
    type Output = ();
    fn visit<S: Store>(self, store: S) {
        let mut session = store.session().expect("a session");
        let value = [7; VALUE];
        let mut group = self.criterion.benchmark_group("insert");
        let mut fresh = 0;
        group.bench_function(BenchmarkId::from_parameter(self.name), |bench| {
            bench.iter(|| {
                fresh = (fresh + 1) % RECORDS;
                session.insert(&key(fresh), &value).expect("an insert");
            });
        });
        group.finish();
        for number in 0..RECORDS {
            session.insert(&key(number), &value).expect("an insert");
        }
        store.settle(Duration::from_secs(60)).expect("a settled store");
        let mut state = 1;
        let mut group = self.criterion.benchmark_group("read");
        group.bench_function(BenchmarkId::from_parameter(self.name), |bench| {
            bench.iter(|| {
                let key = next(&mut state);
                session.read(&key, |value| drop(black_box(value[0]))).expect("a read")
            });
        });
        group.finish();
        let mut group = self.criterion.benchmark_group("scan of 50");
        group.bench_function(BenchmarkId::from_parameter(self.name), |bench| {
            bench.iter(|| {
                let key = next(&mut state);
                session.scan(&key, 50, |_, value| drop(black_box(value[0]))).expect("a scan")
            });
        });
        group.finish();
    }
}

fn bare(criterion: &mut Criterion, path: &Path) {
    let mut options = Options::default();
    options.create_if_missing(true);
    let mut table = rocksdb::BlockBasedOptions::default();
    table.set_block_cache(&rocksdb::Cache::new_hyper_clock_cache(1 << 30, 0));
    options.set_block_based_table_factory(&table);
    let database = DB::open(&options, path).expect("a database");
    let write = WriteOptions::default();
    let read = ReadOptions::default();
    let value = [7; VALUE];
    let mut group = criterion.benchmark_group("insert");
    let mut fresh = 0;
    group.bench_function("bare", |bench| {
        bench.iter(|| {
            fresh = (fresh + 1) % RECORDS;
            database.put_opt(key(fresh), value, &write).expect("an insert");
        });
    });
    group.finish();
    for number in 0..RECORDS {
        database.put_opt(key(number), value, &write).expect("an insert");
    }
    let mut wait = rocksdb::WaitForCompactOptions::default();
    wait.set_flush(true);
    database.wait_for_compact(&wait).expect("a settled store");
    let mut state = 1;
    let mut group = criterion.benchmark_group("read");
    group.bench_function("bare", |bench| {
        bench.iter(|| {
            let key = next(&mut state);
            let value = database.get_pinned_opt(key, &read).expect("a read");
            black_box(value.expect("a record")[0])
        });
    });
    group.finish();
    let mut group = criterion.benchmark_group("scan of 50");
    group.bench_function("bare", |bench| {
        bench.iter(|| {
            let mut scan = database.raw_iterator();
            scan.seek(next(&mut state));
            for _ in 0..50 {
                let Some((_, value)) = scan.item() else { break };
                black_box(value[0]);
                scan.next();
            }
        });
    });
    group.finish();
}

fn overhead(criterion: &mut Criterion) {
    let home = TempDir::new().expect("a directory");
    bare(criterion, &home.path().join("bare"));
    for (name, url) in [
        ("rocksdb", "rocksdb:PATH?cache=1GiB"),
        ("rocksdb with statistics", "rocksdb:PATH?cache=1GiB&statistics=on"),
        #[cfg(feature = "lmdb")]
        ("lmdb", "lmdb:PATH"),
        #[cfg(feature = "fjall")]
        ("fjall", "fjall:PATH?cache=1GiB"),
        ("null", "null"),
    ] {
        let path = home.path().join(name.replace(' ', "-"));
        let url = url.replace("PATH", &path.display().to_string());
        let url: StoreUrl = url.parse().expect("a URL");
        let on_disk = url.adapter().expect("a store").on_disk;
        let directory = on_disk.then(|| Directory::claim(&url, 1 << 30).expect("a directory"));
        open(&url, Adapter { criterion, name }).expect("a store");
        drop(directory);
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_millis(500));
    targets = overhead
}
criterion_main!(benches);
