//! The stores under test, and helpers to open them.

use std::path::Path;

use store::{
    ADAPTERS, Adapter, Directory, Session, Store, StoreError, StoreUrl, StoreVisitor, open,
};
use tempfile::TempDir;

#[cfg(feature = "etcd")]
use crate::etcd;
use crate::plugins;

/// A directory that was claimed, with the URL that names it.
pub struct Place {
    pub home: TempDir,
    pub url: StoreUrl,
    #[cfg(feature = "etcd")]
    _servers: Option<etcd::Etcd>,
}

impl Place {
    fn new(home: TempDir, url: StoreUrl) -> Place {
        Place {
            home,
            url,
            #[cfg(feature = "etcd")]
            _servers: None,
        }
    }
}

/// The same stores, and servers that are started for it.
pub fn places_and_servers() -> Vec<Place> {
    #[cfg(feature = "etcd")]
    let servers = etcd::Etcd::start(1, &[]).map(|servers| Place {
        home: TempDir::new().unwrap(),
        url: servers.url().parse().unwrap(),
        _servers: Some(servers),
    });
    #[cfg(not(feature = "etcd"))]
    let servers = None;
    places().into_iter().chain(servers).collect()
}

/// A URL in a fresh directory for every store that stores values, and one for each of its variants.
pub fn places() -> Vec<Place> {
    let mut places: Vec<_> = on_disk_here()
        .flat_map(|adapter| {
            [""].iter().chain(adapter.variants).map(move |options| (adapter, options))
        })
        .map(|(adapter, options)| {
            let home = TempDir::new().unwrap();
            let url = at(adapter.scheme, home.path(), options);
            Place::new(home, url)
        })
        .collect();
    // A suite over an empty list would pass. Only RocksDB is found, or not, when it runs.
    let linked = |adapter: &&Adapter| adapter.is_built_in() && adapter.scheme != "rocksdb";
    for adapter in ADAPTERS.iter().filter(|adapter| adapter.on_disk()).filter(linked) {
        assert!(places.iter().any(|place| place.url.scheme == adapter.scheme), "{adapter:?}");
    }
    places.extend(plugins::on_disk().iter().map(|library| {
        let home = TempDir::new().unwrap();
        let url = format!("plugin:{}?path={}", library.display(), home.path().display());
        Place::new(home, url.parse().unwrap())
    }));
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
    let _directory = url
        .has_directory()
        .then(|| Directory::claim(url, 1 << 20).unwrap_or_else(|it| panic!("{url}: {it}")));
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
