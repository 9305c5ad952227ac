//! Spill: an embedded, ordered key-value store in which values stay where they were first
//! written, in a log, and only indexes are sorted and merged.
//!
//! ```
//! # fn main() -> spill::Result<()> {
//! # let dir = tempfile::tempdir().map_err(|source| spill::Error::Io { path: "tmp".into(), source })?;
//! # let path = dir.path();
//! let store = spill::Store::open(path, spill::Options::default())?;
//! let birds = store.table("birds")?;
//! birds.put(b"heron", b"grey")?;
//! assert_eq!(birds.get(b"heron")?, Some(b"grey".to_vec()));
//! # Ok(())
//! # }
//! ```
//!
//! The design is that of Kreon (Papagiannis et al., SoCC 2018), built anew: a value log, an
//! ordered index in memory (L0), and levels of immutable B+-trees that hold the begin of each key
//! and where its record lies. The README tells what is guaranteed and what it costs.

#![deny(missing_docs)]

mod background;
mod batch;
mod bytes;
mod checkpoint;
mod cold;
mod collect;
mod debug;
mod entering;
mod error;
mod folder;
pub mod fs;
#[doc(hidden)]
pub mod fuzz;
mod garbage;
mod inner;
mod l0;
mod lately;
mod level;
mod log;
#[doc(hidden)]
pub mod manifest;
mod many;
mod memory;
mod moment;
mod newest;
mod niceness;
mod numbered;
mod options;
mod position;
mod prefetch;
mod read;
mod record;
mod recover;
mod release;
mod scan;
mod schedule;
mod scrub;
mod segments;
mod snapshot;
mod spares;
mod spill;
mod statistics;
mod stint;
mod store;
mod stream;
mod sync;
mod table;
mod throttle;
mod updates;
mod version;
mod write;

/// The version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub use batch::{Batch, MOST_WRITES};
pub use error::{Error, Result};
pub use options::{CachedWrites, ColdReads, Durability, LONGEST_KEY, Options};
pub use scan::{Pairs, Range};
pub use scrub::Scrubbed;
pub use snapshot::Snapshot;
pub use statistics::Statistics;
pub use store::{LONGEST_NAME, Store};
pub use table::Table;
