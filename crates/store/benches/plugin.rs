//! What a plug-in costs: LMDB as the crate links it against the plug-in of `examples/plugins/lmdb.c`,
//! and the adapter against bare calls of a table's functions that do nothing. Alternately, over the
//! same records; prints nanoseconds an operation. Compare within a run.
#![allow(unsafe_code)]

#[path = "../tests/shared/plugins.rs"]
mod plugins;

use std::ffi::c_void;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use store::{Directory, Session, Store, StoreUrl, StoreVisitor, open};
use tempfile::TempDir;

const RECORDS: u32 = 50_000;
const VALUE: [u8; 100] = [7; 100];
const ROUNDS: usize = 21;
/// Reads of a round: some 20 ms.
const READS: u32 = 50_000;
/// Calls of a round where nothing is done.
const CALLS: u32 = 2_000_000;

/// A store whose `get` lends one value.
const NOTHING: &str = r#"
#include "kvmeter_store.h"
static const char value[100] = {7};
static int one;
static kvmeter_status open_(const char *d, const kvmeter_option *o, size_t n, kvmeter_db **db,
                            kvmeter_error *e)
{ (void)d; (void)o; (void)n; (void)e; *db = (kvmeter_db *)&one; return KVMETER_OK; }
static void close_(kvmeter_db *db) { (void)db; }
static uint32_t can(kvmeter_db *db) { (void)db; return 0; }
static kvmeter_status session(kvmeter_db *db, kvmeter_session **s, kvmeter_error *e)
{ (void)e; *s = (kvmeter_session *)db; return KVMETER_OK; }
static void end(kvmeter_session *s) { (void)s; }
kvmeter_status nothing_get(kvmeter_session *s, const void *k, size_t n, kvmeter_on_value found,
                           void *c, kvmeter_error *e)
{ (void)s; (void)k; (void)n; (void)e; found(c, value, sizeof value); return KVMETER_OK; }
static kvmeter_status put(kvmeter_session *s, const void *k, size_t n, const void *v, size_t m,
                          kvmeter_error *e)
{ (void)s; (void)k; (void)n; (void)v; (void)m; (void)e; return KVMETER_OK; }
static kvmeter_status gone(kvmeter_session *s, const void *k, size_t n, kvmeter_error *e)
{ (void)s; (void)k; (void)n; (void)e; return KVMETER_OK; }
static const kvmeter_store_table table = {
    .abi = KVMETER_STORE_ABI, .size = sizeof table, .name = "nothing", .version = "0",
    .open = open_, .close = close_, .capabilities = can, .session_open = session,
    .session_close = end, .get = nothing_get, .put = put, .remove = gone,
};
const kvmeter_store_table *kvmeter_store(void) { return &table; }
"#;

/// Keys in a fixed order, all of which are there.
fn keys(count: u32) -> impl Iterator<Item = [u8; 30]> {
    let mut state = 1_u32;
    (0..count).map(move |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        key((state >> 8) % RECORDS)
    })
}

fn key(number: u32) -> [u8; 30] {
    let mut key = [b'0'; 30];
    key[..4].copy_from_slice(&number.wrapping_mul(2_654_435_761).to_be_bytes());
    key
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

/// Nanoseconds a read.
struct Reads(u32);
impl StoreVisitor for Reads {
    type Output = f64;
    fn visit<S: Store>(self, store: S) -> f64 {
        let mut session = store.session().expect("a session");
        let mut round = || {
            let begin = Instant::now();
            for key in keys(self.0) {
                let found = session.read(&key, |value| {
                    black_box(value[0]);
                });
                assert!(found.expect("a read"));
            }
            begin.elapsed().as_secs_f64() * 1e9 / f64::from(self.0)
        };
        round();
        round()
    }
}

type BareGet = unsafe extern "C" fn(
    *mut c_void,
    *const u8,
    usize,
    unsafe extern "C" fn(*mut c_void, *const u8, usize),
    *mut c_void,
    *mut c_void,
) -> i32;

unsafe extern "C" fn see(_: *mut c_void, value: *const u8, _: usize) {
    // SAFETY: the function lends 100 bytes.
    black_box(unsafe { *value });
}

/// Nanoseconds of a bare call.
fn bare(get: BareGet) -> f64 {
    let round = || {
        let begin = Instant::now();
        for key in keys(CALLS) {
            let none = std::ptr::null_mut();
            // SAFETY: the function uses nothing but its call-back.
            let status = unsafe { get(none, key.as_ptr(), key.len(), see, none, none) };
            assert_eq!(black_box(status), 0);
        }
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    round();
    round()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn at(text: &str) -> StoreUrl {
    text.parse().expect("a URL")
}

fn main() {
    let home = TempDir::new().expect("a folder");
    let path = |name: &str| home.path().join(name);
    let source = path("nothing.c");
    std::fs::write(&source, NOTHING).expect("a source");
    let built = |source: &Path, flags: &[&str]| {
        plugins::build(source, flags, home.path()).unwrap_or_else(|why| panic!("{why}"))
    };
    let nothing = built(&source, &[]);
    let lmdb = built(&plugins::example("lmdb"), &["-llmdb"]);
    // SAFETY: the library is the one above.
    let library = unsafe { libloading::Library::new(&nothing) }.expect("a library");
    // SAFETY: the function has this form.
    let get: BareGet = *unsafe { library.get(b"nothing_get") }.expect("a function");

    let plugin = at(&format!("plugin:{}", nothing.display()));
    let stores = [
        at(&format!("lmdb:{}", path("linked").display())),
        at(&format!("plugin:{}?path={}", lmdb.display(), path("plugin").display())),
    ];
    let claimed = stores.each_ref().map(|url| Directory::claim(url, 0).expect("a directory"));
    stores.iter().for_each(|url| open(url, Load).expect("a loaded store"));
    let mut found: [Vec<f64>; 4] = Default::default();
    for _ in 0..ROUNDS {
        found[0].push(bare(get));
        found[1].push(open(&plugin, Reads(CALLS)).expect("reads"));
        found[2].push(open(&stores[0], Reads(READS)).expect("reads"));
        found[3].push(open(&stores[1], Reads(READS)).expect("reads"));
    }
    drop(claimed);
    let [bare, adapter, linked, plugged] = found.map(median);
    println!("nothing, bare calls     {bare:8.2} ns");
    println!("nothing, as a plug-in   {adapter:8.2} ns   {:+.2} ns", adapter - bare);
    println!("LMDB, linked (heed)     {linked:8.2} ns");
    println!("LMDB, as a plug-in      {plugged:8.2} ns   {:+.2} ns", plugged - linked);
}
