//! The stores under test, and helpers to open them.

use std::path::Path;

use store::{
    ADAPTERS, Adapter, Directory, Session, Store, StoreError, StoreUrl, StoreVisitor, open,
};
use tempfile::TempDir;

/// A directory that was claimed, with the URL that names it.
pub struct Place {
    pub home: TempDir,
    pub url: StoreUrl,
}

/// A URL in a fresh directory for every store that stores values, for some also with options that
/// take another path through the adapter.
pub fn places() -> Vec<Place> {
    let variants = [
        "rocksdb?databases=3&statistics=on",
        "rocksdb?cache=0&direct_io=on&compression=none",
        "rocksdb?memtable=64KiB&compression=zstd&bloom_bits=10&cache=8MiB&cache_kind=lru",
        "lmdb?sync=on&readahead=off",
        "lmdb?writemap=on&map_size=1GiB",
        "fjall?kv_separation=on&compression=none",
        "fjall?sync=on&memtable=1MiB",
        "spill?memory=32KiB&segment=2MiB&tables=3",
        "spill?durability=sync&verify=off",
        "spill?durability=50ms&cold_reads=page&memory=64KiB",
    ];
    let here = |scheme: &str| on_disk_here().any(|adapter| adapter.scheme == scheme);
    let defaults = ADAPTERS.iter().map(|adapter| (adapter.scheme, ""));
    let variants = variants.map(|variant| variant.split_at(variant.find('?').unwrap()));
    let places: Vec<_> = defaults
        .chain(variants)
        .filter(|(scheme, _)| here(scheme))
        .map(|(scheme, options)| {
            let home = TempDir::new().unwrap();
            let url = at(scheme, home.path(), options);
            Place { home, url }
        })
        .collect();
    // A suite over an empty list would pass.
    let features = [cfg!(feature = "lmdb"), cfg!(feature = "fjall")];
    let least = 4 + features.iter().filter(|it| **it).count();
    assert!(places.len() >= least, "{} of {least} stores", places.len());
    places
}

/// The stores that live in a directory, of those that this build and this machine have.
pub fn on_disk_here() -> impl Iterator<Item = &'static Adapter> {
    ADAPTERS.iter().filter(|adapter| adapter.on_disk() && adapter.available().is_ok())
}

pub fn at(scheme: &str, path: &Path, options: &str) -> StoreUrl {
    format!("{scheme}:{}{options}", path.display()).parse().unwrap()
}

/// A test that is compiled for each store.
pub trait Test {
    fn run<S: Store>(&self, store: &S, name: &str);
}

/// Claims the directory, opens the store, runs the test on it and closes it.
pub fn with(url: &StoreUrl, test: &impl Test) {
    let _directory = Directory::claim(url, 1 << 20).unwrap_or_else(|it| panic!("{url}: {it}"));
    let visit = Run { test, name: url.to_string() };
    open(url, visit).unwrap_or_else(|error| panic!("{url}: {error}"));
}

struct Run<'a, T> {
    test: &'a T,
    name: String,
}

impl<T: Test> StoreVisitor for Run<'_, T> {
    type Output = ();
    fn visit<S: Store>(self, store: S) {
        self.test.run(&store, &self.name);
    }
}

/// The value of a key, copied.
pub fn read(session: &mut impl Session, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    let mut value = None;
    let mut calls = 0;
    let there = session.read(key, |bytes| {
        calls += 1;
        value = Some(bytes.to_vec());
    })?;
    assert_eq!(there, value.is_some());
    assert_eq!(calls, usize::from(there));
    Ok(value)
}

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// The pairs of a scan, copied.
pub fn scan(
    session: &mut impl Session,
    from: &[u8],
    limit: usize,
) -> Result<Vec<Pair>, StoreError> {
    let mut pairs = Vec::new();
    let count =
        session.scan(from, limit, |key, value| pairs.push((key.to_vec(), value.to_vec())))?;
    assert_eq!(count, pairs.len());
    Ok(pairs)
}
