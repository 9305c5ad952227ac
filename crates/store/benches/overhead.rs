//! What the RocksDB adapter adds to the library: the same call through the adapter and bare, in
//! one run. Reads and scans ask one and the same database, opened in turn. Compare within a run
//! only, and the ratios, not the times.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use rocksdb::{BlockBasedOptions, Cache, DB, Options, ReadOptions, WriteOptions};
use store::{Directory, Session, Store, StoreUrl, Visit, open};
use tempfile::TempDir;

const RECORDS: u32 = 50_000;
const VALUE: [u8; 1000] = [7; 1000];
const SCAN: usize = 50;

/// The key of a record; neighbours in number are not neighbours in the tree.
fn key(number: u32) -> [u8; 30] {
    let mut key = [b'0'; 30];
    key[..4].copy_from_slice(&number.wrapping_mul(2_654_435_761).to_be_bytes());
    key
}

/// A fixed sequence of keys, all of which are there.
struct Keys(u32);

impl Keys {
    fn next(&mut self) -> [u8; 30] {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        key((self.0 >> 8) % RECORDS)
    }
}

struct Load;
impl Visit for Load {
    type Output = ();
    fn visit<S: Store>(self, store: S) {
        let mut session = store.session().expect("a session");
        for number in 0..RECORDS {
            session.insert(&key(number), &VALUE).expect("an insert");
        }
        store.settle(Duration::from_secs(60)).expect("a settled store");
    }
}

/// One kind of operation, measured through the adapter.
struct Through<'a, 'c> {
    group: &'a mut BenchmarkGroup<'c, WallTime>,
    name: &'a str,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Insert,
    Read,
    Scan,
}

impl Visit for Through<'_, '_> {
    type Output = ();
    fn visit<S: Store>(self, store: S) {
        let mut session = store.session().expect("a session");
        let mut keys = Keys(1);
        self.group.bench_function(self.name, |bench| match self.kind {
            Kind::Insert => {
                bench.iter(|| session.insert(&keys.next(), &VALUE).expect("an insert"));
            }
            Kind::Read => bench.iter(|| {
                let seen = |value: &[u8]| {
                    black_box(value[0]);
                };
                session.read(&keys.next(), seen).expect("a read")
            }),
            Kind::Scan => bench.iter(|| {
                let seen = |_: &[u8], value: &[u8]| {
                    black_box(value[0]);
                };
                session.scan(&keys.next(), SCAN, seen).expect("a scan")
            }),
        });
    }
}

/// The same through the library alone, with the options that the adapter's URL asks for.
fn bare(group: &mut BenchmarkGroup<'_, WallTime>, path: &Path, kind: Kind) {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_hyper_clock_cache(1 << 30, 0));
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table);
    let database = DB::open(&options, path).expect("a database");
    let (write, read) = (WriteOptions::default(), ReadOptions::default());
    let mut keys = Keys(1);
    group.bench_function("bare", |bench| match kind {
        Kind::Insert => bench.iter(|| {
            database.put_opt(keys.next(), VALUE, &write).expect("an insert");
        }),
        Kind::Read => bench.iter(|| {
            let value = database.get_pinned_opt(keys.next(), &read).expect("a read");
            black_box(value.expect("a record")[0])
        }),
        Kind::Scan => bench.iter(|| {
            let mut scan = database.raw_iterator();
            scan.seek(keys.next());
            for _ in 0..SCAN {
                let Some((_, value)) = scan.item() else { break };
                black_box(value[0]);
                scan.next();
            }
        }),
    });
}

fn overhead(criterion: &mut Criterion) {
    let home = TempDir::new().expect("a directory");
    let url = |name: &str, options: &str| -> StoreUrl {
        let path = home.path().join(name);
        format!("rocksdb:{}?cache=1GiB{options}", path.display()).parse().expect("a URL")
    };
    let loaded = url("loaded", "");
    let directory = Directory::claim(&loaded, 1 << 30).expect("a directory");
    open(&loaded, Load).expect("a store");

    for (name, kind) in [("read", Kind::Read), ("scan of 50", Kind::Scan)] {
        let mut group = criterion.benchmark_group(name);
        bare(&mut group, &directory.data_path().join("0000"), kind);
        for (name, url) in
            [("adapter", &loaded), ("adapter, statistics=on", &url("loaded", "&statistics=on"))]
        {
            open(url, Through { group: &mut group, name, kind }).expect("a store");
        }
        let null = "null".parse().expect("a URL");
        open(&null, Through { group: &mut group, name: "null", kind }).expect("a store");
        group.finish();
    }

    let mut group = criterion.benchmark_group("insert");
    bare(&mut group, &home.path().join("bare"), Kind::Insert);
    let fresh = url("fresh", "");
    let _directory = Directory::claim(&fresh, 1 << 30).expect("a directory");
    let insert = Through { group: &mut group, name: "adapter", kind: Kind::Insert };
    open(&fresh, insert).expect("a store");
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(4));
    targets = overhead
}
criterion_main!(benches);
