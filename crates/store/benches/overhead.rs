//! The overhead of the RocksDB adapter: the same calls bare, through the adapter over the linked
//! library, and through the adapter over a shared one of the same version, by turns over one
//! database. Prints nanoseconds and ratios; compare ratios, within a run.
//!
//! `KVMETER_BENCH_LIBRARY` names the shared library, as RocksDB's own `make shared_lib` builds it;
//! without it that part is left out.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char};
use std::hint::black_box;
use std::path::Path;
use std::ptr;
use std::time::{Duration, Instant};

use librocksdb_sys as c;
use store::{Directory, Session, Store, StoreUrl, StoreVisitor, open};
use tempfile::TempDir;

const RECORDS: u32 = 50_000;
const VALUE: [u8; 1000] = [7; 1000];
const SCAN: usize = 50;
const TURNS: usize = 21;
/// Operations of a turn: some 50 ms.
const READS: u32 = 50_000;
const INSERTS: u32 = 20_000;
const SCANS: u32 = 5_000;

/// A fixed sequence of keys, all of which are there.
struct Keys(u32);

impl Keys {
    fn next(&mut self) -> [u8; 30] {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        key((self.0 >> 8) % RECORDS)
    }
}

/// The key of a record; neighbours in number are not neighbours in the tree.
fn key(number: u32) -> [u8; 30] {
    let mut key = [b'0'; 30];
    key[..4].copy_from_slice(&number.wrapping_mul(2_654_435_761).to_be_bytes());
    key
}

#[derive(Clone, Copy)]
enum Kind {
    Insert,
    Read,
    Scan,
}

/// One turn: nanoseconds an operation.
fn timed(operations: u32, mut operation: impl FnMut([u8; 30])) -> f64 {
    let mut keys = Keys(1);
    let begin = Instant::now();
    for _ in 0..operations {
        operation(keys.next());
    }
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(operations)
}

struct Load;
impl StoreVisitor for Load {
    type Output = ();
    fn visit<S: Store>(self, store: S) {
        let mut session = store.session().expect("a session");
        for number in 0..RECORDS {
            session.insert(&key(number), &VALUE).expect("an insert");
        }
        store.settle(Duration::from_secs(60)).expect("a settled store");
    }
}

/// A turn through the adapter.
struct Through(Kind);
impl StoreVisitor for Through {
    type Output = f64;
    fn visit<S: Store>(self, store: S) -> f64 {
        let mut session = store.session().expect("a session");
        let seen = |value: &[u8]| {
            black_box(value[0]);
        };
        let pair = |_: &[u8], value: &[u8]| {
            black_box(value[0]);
        };
        let mut turn = |operations| match self.0 {
            Kind::Insert => timed(operations, |key| session.insert(&key, &VALUE).expect("insert")),
            Kind::Read => timed(operations, |key| assert!(session.read(&key, seen).expect("read"))),
            Kind::Scan => timed(operations, |key| {
                session.scan(&key, SCAN, pair).expect("scan");
            }),
        };
        warm_then(self.0, &mut turn)
    }
}

/// A first, shorter turn fills the block cache, which comes with the opening.
fn warm_then(kind: Kind, turn: &mut impl FnMut(u32) -> f64) -> f64 {
    let operations = match kind {
        Kind::Insert => INSERTS,
        Kind::Read => READS,
        Kind::Scan => SCANS,
    };
    turn(operations);
    turn(operations)
}

/// A turn of the library's own functions, with the options of the adapter's URL.
fn bare(path: &Path, kind: Kind) -> f64 {
    let path = CString::new(path.to_str().expect("UTF-8")).expect("no zero");
    let text = c"compression=kLZ4Compression;";
    let mut error: *mut c_char = ptr::null_mut();
    // SAFETY: the calls are made as `rocksdb/c.h` says, with objects that live until the end.
    unsafe {
        let table = c::rocksdb_block_based_options_create();
        let cache = c::rocksdb_cache_create_hyper_clock(1 << 30, 0);
        c::rocksdb_block_based_options_set_block_cache(table, cache);
        let base = c::rocksdb_options_create();
        c::rocksdb_options_set_block_based_table_factory(base, table);
        let options = c::rocksdb_options_create();
        c::rocksdb_get_options_from_string(base, text.as_ptr(), options, &mut error);
        let database = c::rocksdb_open(options, path.as_ptr(), &mut error);
        assert!(error.is_null() && !database.is_null(), "a database");
        let (read, write) = (c::rocksdb_readoptions_create(), c::rocksdb_writeoptions_create());
        let iterator = c::rocksdb_create_iterator(database, read);
        let mut turn = |operations| {
            timed(operations, |key| {
                let (bytes, length) = (key.as_ptr().cast(), key.len());
                let mut size = 0;
                match kind {
                    Kind::Insert => {
                        let value = VALUE.as_ptr().cast();
                        c::rocksdb_put(
                            database,
                            write,
                            bytes,
                            length,
                            value,
                            VALUE.len(),
                            &mut error,
                        );
                    }
                    Kind::Read => {
                        let found =
                            c::rocksdb_get_pinned(database, read, bytes, length, &mut error);
                        black_box(*c::rocksdb_pinnableslice_value(found, &mut size));
                        c::rocksdb_pinnableslice_destroy(found);
                    }
                    Kind::Scan => {
                        c::rocksdb_iter_refresh(iterator, &mut error);
                        c::rocksdb_iter_seek(iterator, bytes, length);
                        for _ in 0..SCAN {
                            if c::rocksdb_iter_valid(iterator) == 0 {
                                break;
                            }
                            black_box(*c::rocksdb_iter_key(iterator, &mut size));
                            black_box(*c::rocksdb_iter_value(iterator, &mut size));
                            c::rocksdb_iter_next(iterator);
                        }
                    }
                }
                assert!(error.is_null());
            })
        };
        let nanoseconds = warm_then(kind, &mut turn);
        c::rocksdb_iter_destroy(iterator);
        c::rocksdb_close(database);
        c::rocksdb_options_destroy(options);
        c::rocksdb_options_destroy(base);
        c::rocksdb_block_based_options_destroy(table);
        c::rocksdb_cache_destroy(cache);
        nanoseconds
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let home = TempDir::new().expect("a directory");
    let url = |library: &str| -> StoreUrl {
        let path = home.path().join("db");
        let text = format!("rocksdb:{}?cache=1GiB&library={library}", path.display());
        text.parse().expect("a URL")
    };
    let linked = url("bundled");
    let directory = Directory::claim(&linked, 1 << 30).expect("a directory");
    open(&linked, Load).expect("a store");
    let database = directory.data_path().join("0000");
    let shared = std::env::var("KVMETER_BENCH_LIBRARY").ok().map(|path| url(&path));

    println!(
        "{:<12} {:>9} {:>22} {:>22} {:>22}",
        "", "bare, ns", "adapter/bare", "shared/bare", "shared/adapter"
    );
    for (name, kind) in [("read", Kind::Read), ("scan of 50", Kind::Scan), ("insert", Kind::Insert)]
    {
        let mut turns: Vec<[f64; 3]> = Vec::new();
        for turn in 0..TURNS {
            let mut times = [f64::NAN; 3];
            // Another one begins in each turn.
            for at in (0..3).map(|step| (turn + step) % 3) {
                times[at] = match at {
                    0 => bare(&database, kind),
                    1 => open(&linked, Through(kind)).expect("a store"),
                    _ => shared
                        .as_ref()
                        .map_or(f64::NAN, |url| open(url, Through(kind)).expect("a store")),
                };
            }
            turns.push(times);
        }
        let ratio = |over: usize, under: usize| {
            let mut all: Vec<f64> = turns.iter().map(|it| it[over] / it[under]).collect();
            all.sort_by(f64::total_cmp);
            let quarter = all.len() / 4;
            let (low, high) = (all[quarter], all[all.len() - 1 - quarter]);
            format!("{:.3} ({low:.3}-{high:.3})", median(all.clone()))
        };
        let bare = median(turns.iter().map(|it| it[0]).collect());
        println!(
            "{name:<12} {bare:>9.0} {:>22} {:>22} {:>22}",
            ratio(1, 0),
            ratio(2, 0),
            ratio(2, 1)
        );
    }
}
