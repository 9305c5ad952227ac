//! Spill: an embedded, ordered key-value store. Values stay in the log where they were first
//! written; only indexes are sorted and merged.
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
//! The design is that of Kreon (Papagiannis et al., SoCC 2018), implemented anew: a value log, a
//! memtable (L0 in Kreon), and levels of immutable B+-trees that hold the start of each key and a
//! pointer to its record. The README states guarantees and costs.

#![deny(missing_docs)]

mod admission_control;
mod background;
mod backoff;
mod batch;
mod bytes;
mod checkpoint;
mod cold_reads;
mod collected_segments;
mod collector;
mod compaction;
mod copy_batch;
mod counters;
mod debug;
mod directory;
mod engine;
mod error;
mod file_names;
pub mod fs;
#[doc(hidden)]
pub mod fuzz;
mod garbage_collection;
mod group_commit;
mod group_commit_state;
mod hot_keys;
mod index_insertion;
mod level;
mod liveness;
mod locks;
#[doc(hidden)]
pub mod manifest;
mod memory;
mod memtable;
mod multi_get;
mod open_store;
mod options;
mod overwrite_estimate;
mod overwrites;
mod preallocated_segments;
mod preallocation;
mod prefetch;
mod priority;
mod read;
mod record;
mod recovery;
mod scan;
mod schedule;
mod scrub;
mod segment_map;
mod segment_release;
mod snapshot;
mod statistics;
mod store;
mod stream;
mod table;
mod throttle;
mod time_slice;
mod value_log;
mod value_pointer;
mod version;
mod write;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

/// The version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub use batch::{Batch, MAX_BATCH_WRITES};
pub use error::{Error, Result};
pub use options::{CachedWrites, ColdReads, Durability, MAX_KEY_LEN, Options};
pub use scan::{Pairs, Range};
pub use scrub::ScrubReport;
pub use snapshot::Snapshot;
pub use statistics::Statistics;
pub use store::{MAX_TABLE_NAME_LEN, Store};
pub use table::Table;
