//! Who is asked: one trait for every embedded store, one protocol for every networked one, one
//! file an adapter.
//!
//! A directory is claimed with [`Directory`], the store in it is opened with [`open`], which
//! hands it to a [`Visit`]or; each thread then asks through its own [`Session`]. The stores are
//! listed in [`ADAPTERS`]; `tests/conformance.rs` runs over that list.

mod adapters;
mod directory;
mod error;
mod foreign_url;
mod marker;
mod options;
mod remote;
mod store_group;
mod url;
pub mod wire;

pub use adapters::{
    ADAPTERS, Adapter, AdapterUnavailable, DataLocation, EmbeddedAdapter, LongestValue,
    ServerFamily, open,
};
pub use directory::{Directory, DirectoryState};
pub use error::StoreError;
pub use marker::DatasetMarker;
pub use options::{MachineResource, OptionInfo, StoreOptions, on_off};
pub use remote::{ANY_CERTIFICATE, Remote, TlsFiles};
pub use store_group::{Distribution, open_together};
pub use url::StoreUrl;

use serde::Serialize;

/// What a store can do; a workload that needs more is refused before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Ordered scans from a key.
    pub scan: bool,
    /// What was acknowledged survives a kill of the process.
    pub durable: bool,
    /// Reads return what was written. False for `null`, whose answers cannot be verified.
    pub stores_values: bool,
    /// It may drop what it was given: a read that finds nothing is a miss, not a failure.
    pub may_evict: bool,
}

/// A number that the store says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statistic {
    pub name: String,
    pub value: f64,
    pub unit: model::Unit,
}

/// An embedded store, open. Shared by all threads; each thread asks through its own [`Session`].
pub trait Store: Send + Sync + Sized + 'static {
    /// What one thread keeps between its operations: handles, buffers, cursors.
    type Session<'a>: Session
    where
        Self: 'a;

    /// Opens or creates the store that the URL names. The directory has been checked by
    /// [`Directory`] before; an unknown option is an error that suggests the nearest name.
    fn open(url: &StoreUrl) -> Result<Self, StoreError>;

    fn capabilities(&self) -> Capabilities;

    /// What is really running, as the library says it: `RocksDB 11.8.1`.
    fn version(&self) -> String;

    /// The options in force, with the defaults that were not given: what a result depends on.
    fn options(&self) -> Vec<(String, String)>;

    fn session(&self) -> Result<Self::Session<'_>, StoreError>;

    /// Writes out what is buffered and waits until background work has ended, so that one
    /// phase does not pay for another. Bounded by `limit`.
    fn settle(&self, limit: std::time::Duration) -> Result<(), StoreError>;

    /// The store's own statistics since it was opened; monotonic where the name ends in `.total`.
    fn statistics(&self) -> Vec<Statistic>;
}

/// One thread's way into a store.
pub trait Session {
    /// Calls `seen` with the value if the key is there, without copying it where the store
    /// lends it; answers whether it was there.
    fn read(&mut self, key: &[u8], seen: impl FnMut(&[u8])) -> Result<bool, StoreError>;

    /// Sets the value of a key that may be there already.
    fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Sets the value of a key that is new. Stores that do not tell the two apart do the same
    /// as for `update`.
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.update(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError>;

    /// Calls `seen` with up to `limit` pairs in key order from the first key at or above
    /// `from`; answers how many there were.
    fn scan(
        &mut self,
        from: &[u8],
        limit: usize,
        seen: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError>;
}

/// Something to be done with a store whose type is known only here: the operation loop is
/// compiled once for each embedded store, and the choice is made once, outside it.
pub trait StoreVisitor {
    type Output;
    fn visit<S: Store>(self, store: S) -> Self::Output;
}
