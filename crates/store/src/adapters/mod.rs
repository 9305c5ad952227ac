//! The stores, each listed once. To add one: its file, its `mod` line and its line in
//! [`adapters!`]; `docs/adding-a-store.md` tells it step by step.

#[macro_use]
mod listing;

#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "lmdb")]
mod lmdb;
mod null;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use crate::{OptionInfo, Store, StoreError, StoreUrl, Visit};

adapters! {
    "null": null::Null, "answers at once; measures the harness alone";
    "rocksdb" if "rocksdb": rocksdb::RocksDb, "RocksDB: log-structured merge tree in C++";
    "lmdb" if "lmdb": lmdb::Lmdb, "LMDB: memory-mapped copy-on-write B+-tree in C";
    "fjall" if "fjall": fjall::Fjall, "fjall: log-structured merge tree in Rust";
}

/// What an adapter says of itself before anything is opened.
pub trait Adapt: Store {
    /// The options that its URL takes.
    const OPTIONS: &'static [OptionInfo];

    /// Whether it lives in a directory, which then must be claimed with
    /// [`Directory`](crate::Directory) before it is opened.
    const ON_DISK: bool = true;

    /// The longest key that it takes, in bytes.
    const LONGEST_KEY: usize = usize::MAX;

    /// Reads the URL's options without opening anything.
    fn check(url: &StoreUrl) -> Result<(), StoreError>;

    /// The version of the library that is linked, as the library says it.
    fn linked() -> Result<String, StoreError>;
}

/// Why a store cannot be used in this build, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    pub reason: String,
    pub remedy: String,
}

/// A store that kvmeter knows, whether it was built in or not.
#[derive(Debug, Clone, Copy)]
pub struct Adapter {
    pub scheme: &'static str,
    /// One line for a person.
    pub what: &'static str,
    pub on_disk: bool,
    /// The longest key that it takes, in bytes.
    pub longest_key: usize,
    /// Empty for a store that was not built in.
    pub options: &'static [OptionInfo],
    here: Result<Linked, &'static str>,
}

/// The functions of an adapter that was built in.
#[derive(Debug, Clone, Copy)]
struct Linked {
    check: fn(&StoreUrl) -> Result<(), StoreError>,
    version: fn() -> Result<String, StoreError>,
}

impl Adapter {
    const fn built_in<S: Adapt>(scheme: &'static str, what: &'static str) -> Self {
        let here = Ok(Linked { check: S::check, version: S::linked });
        Self {
            scheme,
            what,
            on_disk: S::ON_DISK,
            longest_key: S::LONGEST_KEY,
            options: S::OPTIONS,
            here,
        }
    }

    // A build that has every store leaves none out.
    #[allow(dead_code)]
    const fn left_out(scheme: &'static str, what: &'static str, feature: &'static str) -> Self {
        let longest_key = usize::MAX;
        Self { scheme, what, on_disk: true, longest_key, options: &[], here: Err(feature) }
    }

    pub fn is_built_in(&self) -> bool {
        self.here.is_ok()
    }

    /// The version of what is linked, or why the store is not available here.
    pub fn available(&self) -> Result<String, Unavailable> {
        let linked = self.here.map_err(without)?;
        (linked.version)().map_err(|error| Unavailable {
            reason: error.to_string(),
            remedy: "the library is linked but does not run: build kvmeter again".to_owned(),
        })
    }

    /// Reads the URL's options without opening anything.
    pub(crate) fn check(&self, url: &StoreUrl) -> Result<(), StoreError> {
        match self.here.map_err(without) {
            Ok(linked) => (linked.check)(url),
            Err(Unavailable { reason, remedy }) => {
                Err(StoreError::Request(format!("`{}`: {reason}; {remedy}", self.scheme)))
            }
        }
    }
}

fn without(feature: &str) -> Unavailable {
    Unavailable {
        reason: format!("built without feature `{feature}`"),
        remedy: format!("build kvmeter again with `--features {feature}`"),
    }
}
