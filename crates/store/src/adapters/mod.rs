//! The stores, each listed once. To add one: its file, its `mod` line and its line in
//! [`adapters!`]; `docs/adding-a-store.md` has the steps.

#[macro_use]
mod listing;

#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "fjall")]
mod fjall;
mod key_spread;
#[cfg(feature = "lmdb")]
mod lmdb;
mod memcached;
mod null;
mod plugin;
mod raw;
#[cfg(feature = "redb")]
mod redb;
mod redis;
mod rocksdb;
mod shared_library;
mod spill;
#[cfg(feature = "sqlite")]
mod sqlite;

use model::Unavailable;

use crate::{OptionInfo, Remote, Store, StoreError, StoreUrl, StoreVisitor};

adapters! {
    embedded {
    "null": null::Null, "does nothing; measures the harness alone";
    "spill": spill::Spill, "Spill: value log and merged indexes after Kreon's design, in Rust";
    "rocksdb": rocksdb::RocksDb, "RocksDB: log-structured merge tree in C++";
    "lmdb" if "lmdb": lmdb::Lmdb, "LMDB: memory-mapped copy-on-write B+-tree in C";
    "fjall" if "fjall": fjall::Fjall, "fjall: log-structured merge tree in Rust";
    "redb" if "redb": redb::Redb, "redb: copy-on-write B+-tree in Rust";
    "sqlite" if "sqlite": sqlite::Sqlite, "SQLite: one table of keys and values, with a write-ahead log";
    "etcd" if "etcd" at 2379: etcd::Etcd, "etcd: replicated store of configurations, by gRPC";
    "raw": raw::RawStore, "one extent a record past the page cache: the device alone";
    "plugin": plugin::Plugin, "a store of your own: a library with the functions of kvmeter_store.h";
    }
    networked {
        "memcached": memcached::Memcached, "memcached: cache server, text, meta and binary protocol";
        "redis": redis::Redis, "Redis: server of data structures, RESP2 and RESP3";
        "valkey": redis::Redis, "Valkey: server of data structures, RESP2 and RESP3";
    }
}

/// An embedded store's static description, available before it is opened.
pub trait EmbeddedAdapter: Store {
    /// The options that its URL takes.
    const OPTIONS: &'static [OptionInfo];

    /// Where its data is. A directory must be claimed with [`Directory`](crate::Directory) before
    /// the store is opened.
    const LOCATION: DataLocation = DataLocation::Directory;

    /// The longest key that it takes, in bytes.
    const LONGEST_KEY: usize = usize::MAX;

    /// Options that take another way through the adapter, as they stand in a URL; the conformance
    /// tests try each.
    const VARIANTS: &'static [&'static str] = &[];

    /// What is known of the store that a URL names; a plug-in says it itself.
    fn describe(_url: &StoreUrl) -> Result<StoreDescription, StoreError> {
        Ok(StoreDescription {
            options: Self::OPTIONS,
            on_disk: Self::LOCATION == DataLocation::Directory,
            longest_key: Self::LONGEST_KEY,
        })
    }

    /// The longest value that it takes with the URL's options, where they limit it.
    fn longest_value(_url: &StoreUrl) -> Result<Option<LongestValue>, StoreError> {
        Ok(None)
    }

    /// Reads the URL's options without opening anything.
    fn check(url: &StoreUrl) -> Result<(), StoreError>;

    /// The library's own version, or why the store cannot be used in this build or on this machine.
    fn linked() -> Result<String, Unavailable>;
}

/// What is known of a store before it is opened.
#[derive(Debug, Clone, Copy)]
pub struct StoreDescription {
    /// The options that its URL takes.
    pub options: &'static [OptionInfo],
    /// Whether it has a directory.
    pub on_disk: bool,
    /// The longest key that it takes, in bytes.
    pub longest_key: usize,
}

/// A server family's static description, available before connecting.
pub trait ServerFamily {
    /// The options that its URL takes.
    const OPTIONS: &'static [OptionInfo];

    const DEFAULT_PORT: u16;

    /// The longest key that it takes, in bytes.
    const LONGEST_KEY: usize;

    /// Reads the URL without connecting: files and environment variables that options name
    /// are read too.
    fn remote(url: &StoreUrl) -> Result<Remote, StoreError>;
}

/// The longest value of a store that limits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongestValue {
    pub bytes: u64,
    /// The option of the URL that allows longer ones, if any.
    pub raised_by: Option<&'static str>,
}

/// Where a store's data is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataLocation {
    /// Stores nothing.
    Nowhere,
    /// In a directory, which must be claimed with [`Directory`](crate::Directory) before the
    /// store is opened.
    Directory,
    /// In a directory, or gone when it is closed: the library that the URL names says which.
    Library,
    /// In servers.
    Servers { default_port: u16 },
}

impl From<Unavailable> for StoreError {
    fn from(unavailable: Unavailable) -> Self {
        Self::Request(unavailable.to_string())
    }
}

/// A store that kvmeter knows, whether it was built in or not.
#[derive(Debug, Clone, Copy)]
pub struct Adapter {
    pub scheme: &'static str,
    /// One-line description.
    pub what: &'static str,
    pub location: DataLocation,
    /// Empty for a store that was not built in; a plug-in has more.
    pub options: &'static [OptionInfo],
    /// Options that the conformance tests try.
    pub variants: &'static [&'static str],
    functions: Result<AdapterFunctions, &'static str>,
}

/// Reads a URL into servers and connection settings without connecting.
type ReadRemote = fn(&StoreUrl) -> Result<Remote, StoreError>;

type DescribeStore = fn(&StoreUrl) -> Result<StoreDescription, StoreError>;

type ReadLongestValue = fn(&StoreUrl) -> Result<Option<LongestValue>, StoreError>;

/// The functions of an adapter that was built in.
#[derive(Debug, Clone, Copy)]
struct AdapterFunctions {
    check: fn(&StoreUrl) -> Result<(), StoreError>,
    version: fn() -> Result<String, Unavailable>,
    describe: DescribeStore,
    longest_value: ReadLongestValue,
    /// Of a networked store.
    remote: Option<ReadRemote>,
}

impl Adapter {
    const fn built_in<S: EmbeddedAdapter>(scheme: &'static str, what: &'static str) -> Self {
        let here = Ok(AdapterFunctions {
            check: S::check,
            version: S::linked,
            describe: S::describe,
            longest_value: S::longest_value,
            remote: None,
        });
        Self {
            scheme,
            what,
            location: S::LOCATION,
            options: S::OPTIONS,
            variants: S::VARIANTS,
            functions: here,
        }
    }

    // Unused in a build with every store.
    #[allow(dead_code)]
    const fn not_built_in(
        scheme: &'static str,
        what: &'static str,
        feature: &'static str,
        port: &[u16],
    ) -> Self {
        Self {
            scheme,
            what,
            location: match port {
                [default_port, ..] => DataLocation::Servers { default_port: *default_port },
                [] => DataLocation::Directory,
            },
            options: &[],
            variants: &[],
            functions: Err(feature),
        }
    }

    const fn networked<F: ServerFamily>(scheme: &'static str, what: &'static str) -> Self {
        fn check<F: ServerFamily>(url: &StoreUrl) -> Result<(), StoreError> {
            F::remote(url).map(drop)
        }
        fn version() -> Result<String, Unavailable> {
            Ok("protocol built in; the server reports its version".to_owned())
        }
        Self {
            scheme,
            what,
            location: DataLocation::Servers { default_port: F::DEFAULT_PORT },
            options: F::OPTIONS,
            variants: &[],
            functions: Ok(AdapterFunctions {
                check: check::<F>,
                version,
                describe: |_| {
                    Ok(StoreDescription {
                        options: F::OPTIONS,
                        on_disk: false,
                        longest_key: F::LONGEST_KEY,
                    })
                },
                // The server decides.
                longest_value: |_| Ok(None),
                remote: Some(F::remote),
            }),
        }
    }

    /// How its URL is written: `lmdb:PATH`.
    pub fn url_form(&self) -> String {
        match self.location {
            DataLocation::Nowhere => self.scheme.to_owned(),
            DataLocation::Directory => format!("{}:PATH", self.scheme),
            DataLocation::Library => format!("{}:LIB.so", self.scheme),
            DataLocation::Servers { .. } => format!("{}://HOST:PORT", self.scheme),
        }
    }

    /// Whether every such store has a directory of its own.
    pub fn on_disk(&self) -> bool {
        self.location == DataLocation::Directory
    }

    /// Whether its threads share many connections to servers, each with several requests under way.
    pub fn multiplexes(&self) -> bool {
        matches!(self.functions, Ok(AdapterFunctions { remote: Some(_), .. }))
    }

    pub fn is_built_in(&self) -> bool {
        self.functions.is_ok()
    }

    /// The version that would be used, or why the store is not available here.
    pub fn available(&self) -> Result<String, Unavailable> {
        (self.functions.map_err(feature_missing)?.version)()
    }

    /// A networked store as its URL describes it; None for an embedded one.
    pub(crate) fn remote(&self, url: &StoreUrl) -> Result<Option<Remote>, StoreError> {
        match self.functions {
            Ok(AdapterFunctions { remote: Some(remote), .. }) => remote(url).map(Some),
            _ => Ok(None),
        }
    }

    /// What is known of the store that the URL names.
    pub(crate) fn describe(&self, url: &StoreUrl) -> Result<StoreDescription, StoreError> {
        (self.here()?.describe)(url)
    }

    /// The longest value that it takes with the URL's options, where that is known beforehand.
    pub(crate) fn longest_value(&self, url: &StoreUrl) -> Result<Option<LongestValue>, StoreError> {
        self.functions.map_or(Ok(None), |linked| (linked.longest_value)(url))
    }

    /// Reads the URL's options without opening anything.
    pub(crate) fn check(&self, url: &StoreUrl) -> Result<(), StoreError> {
        (self.here()?.check)(url)
    }

    fn here(&self) -> Result<AdapterFunctions, StoreError> {
        let missing = |feature| {
            StoreError::Request(format!("`{}`: {}", self.scheme, feature_missing(feature)))
        };
        self.functions.map_err(missing)
    }
}

fn feature_missing(feature: &str) -> Unavailable {
    Unavailable::new(
        format!("built without feature `{feature}`"),
        format!("build kvmeter again with `--features store/{feature}`"),
    )
}
