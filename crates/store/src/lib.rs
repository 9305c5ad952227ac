//! Stores: one trait for every embedded store, one protocol for every networked one, one file for
//! each adapter.
//!
//! A directory is claimed with [`Directory`], the store in it is opened with [`open`], which hands
//! it to a [`StoreVisitor`]; each thread then issues operations through its own [`Session`]. The
//! stores are listed in [`ADAPTERS`]; `tests/conformance.rs` runs over that list.

mod adapters;
mod directory;
mod error;
mod foreign_url;
mod key_batch;
mod marker;
mod options;
mod remote;
mod served;
mod store_group;
mod url;
pub mod wire;

pub use adapters::{
    ADAPTERS, Adapter, DataLocation, EmbeddedAdapter, LongestValue, ServerFamily, StoreDescription,
    open,
};
pub use directory::{Directory, DirectoryState};
pub use error::StoreError;
pub use key_batch::KeyBatch;
pub use marker::DatasetMarker;
pub use options::{MachineResource, OptionInfo, StoreOptions, on_off};
pub use remote::{ANY_CERTIFICATE, Remote, ReplicaReads, TlsFiles};
pub use served::ServedData;
pub use store_group::{Distribution, open_group};
pub use url::StoreUrl;

use std::sync::Arc;

use serde::Serialize;

/// The abilities of a store; a workload that needs more is refused before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Ordered scans from a key.
    pub scan: bool,
    /// What acknowledged writes survive, with the options in force; None where that is not known.
    pub survives: Option<Survives>,
    /// Reads return the values that were written. False for `null`, whose answers cannot be
    /// verified.
    #[serde(rename = "keeps")]
    pub stores_values: bool,
    /// The store may drop records: a read that finds nothing is a miss, not a failure.
    #[serde(rename = "forgets")]
    pub may_evict: bool,
}

/// What acknowledged writes survive. Writes of stores that differ in it are not comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Survives {
    /// Not even a kill of the process.
    Nothing,
    /// A kill of the process; a loss of power may lose the last ones, or break the store.
    ProcessKill,
    /// A loss of power.
    PowerLoss,
}

impl Survives {
    /// Of a store whose writes outlive its process, and are on the device if it syncs each.
    pub(crate) fn synced(sync: bool) -> Option<Survives> {
        Some(if sync { Survives::PowerLoss } else { Survives::ProcessKill })
    }
}

impl std::fmt::Display for Survives {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Survives::Nothing => "nothing",
            Survives::ProcessKill => "process kill",
            Survives::PowerLoss => "power loss",
        })
    }
}

/// A figure that the store reports about itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statistic {
    pub name: String,
    pub value: f64,
    pub unit: model::Unit,
}

/// An embedded store, open. Shared by all threads; each thread uses its own [`Session`].
pub trait Store: Send + Sync + Sized + 'static {
    /// A thread's handles, buffers and cursors.
    type Session<'a>: Session
    where
        Self: 'a;

    /// Opens or creates the store that the URL names. The directory has been checked by
    /// [`Directory`] before; an unknown option is an error that suggests the nearest name.
    fn open(url: &StoreUrl) -> Result<Self, StoreError>;

    fn capabilities(&self) -> Capabilities;

    /// The library's own name and version: `RocksDB 11.8.1`.
    fn version(&self) -> String;

    /// The options in force, defaults included: a result depends on all of them.
    fn options(&self) -> Vec<(String, String)>;

    fn session(&self) -> Result<Self::Session<'_>, StoreError>;

    /// Writes out what is buffered and waits until background work has ended, so that one
    /// phase does not pay for another. Bounded by `limit`.
    fn settle(&self, limit: std::time::Duration) -> Result<(), StoreError>;

    /// The store's own statistics since it was opened; monotonic where the name ends in `.total`.
    fn statistics(&self) -> Vec<Statistic>;

    /// The data as it lies in servers; None where it lies in a directory or in memory.
    fn served(&self) -> Option<Arc<dyn ServedData>> {
        None
    }
}

/// One thread's access to a store.
pub trait Session {
    /// Calls `on_value` with the value if the key exists, without a copy where the store allows
    /// that. Returns whether the key exists.
    fn read(&mut self, key: &[u8], on_value: impl FnMut(&[u8])) -> Result<bool, StoreError>;

    /// Calls `on_value` with the index and the value of each key that exists, once, in any order.
    /// Stores without a multi-get read one key after the other.
    fn multi_get(
        &mut self,
        keys: &KeyBatch,
        on_value: impl FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        read_each(self, keys, on_value)
    }

    /// Sets the value of a key that may exist.
    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Sets the value of a key that is new. Stores without a separate insert do the same as for
    /// `update`.
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.update(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError>;

    /// Calls `on_pair` with up to `limit` pairs in key order from the first key at or above `from`.
    /// Returns their number.
    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        on_pair: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError>;
}

/// A multi-get as single reads.
pub(crate) fn read_each<S: Session + ?Sized>(
    session: &mut S,
    keys: &KeyBatch,
    mut on_value: impl FnMut(usize, &[u8]),
) -> Result<(), StoreError> {
    for (index, key) in keys.iter().enumerate() {
        session.read(key, |value| on_value(index, value))?;
    }
    Ok(())
}

/// Code that is generic over the store: the operation loop is compiled once for each embedded
/// store, and the choice is made once, outside it.
pub trait StoreVisitor {
    type Output;
    fn visit<S: Store>(self, store: S) -> Self::Output;
}
