use std::ops::RangeBounds;
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::open_store::OpenStore;
use crate::read::ReadOutcome;
use crate::scan::Range;
use crate::table::{Table, bounds_of};
use crate::version::Version;
use std::sync::atomic::Ordering;

/// All tables of a store as of one moment. What it reads from stays in memory and on disk until it
/// is dropped.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) version: Arc<Version>,
    pub(crate) sequence: u64,
    /// Dropped last: files are deleted while the directory is still locked.
    pub(crate) open: Arc<OpenStore>,
}

impl Snapshot {
    /// A copy of the value of a key; `None` if it did not exist. A table dropped since keeps its
    /// content; one created since is empty.
    ///
    /// # Errors
    /// As [`Table::get`]; [`Error::NoTable`](crate::Error::NoTable) if the table belongs to another
    /// store.
    pub fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let engine = &self.open.engine;
        table.check_owner(engine)?;
        let mut scratch = Vec::new();
        let bound = Some(self.sequence);
        let read =
            engine.read_with(&self.version, table.id, key, bound, &mut scratch, |value| {
                value.to_vec()
            })?;
        Ok(match read {
            ReadOutcome::Value(value) => Some(value),
            ReadOutcome::NotFound | ReadOutcome::SegmentGone => None,
        })
    }

    /// A range of the keys of a table. Read errors are returned by [`Range::next`]; so is a table
    /// of another store, by the first step.
    pub fn range<'a>(&self, table: &Table, range: impl RangeBounds<&'a [u8]>) -> Range {
        let engine = Arc::clone(&self.open.engine);
        let mismatch = table.check_owner(&engine).err();
        let version = Arc::clone(&self.version);
        let range = Range::new(engine, version, self.sequence, table.id, bounds_of(&range));
        match mismatch {
            Some(error) => range.with_error(error),
            None => range,
        }
    }
}

impl Engine {
    /// A version and the sequence up to which to read it.
    pub(crate) fn view(&self) -> (Arc<Version>, u64) {
        loop {
            let version = self.version.load_full();
            let sequence = self.visible_sequence.load(Ordering::Acquire);
            // If it is still current, its levels hold nothing beyond the sequence.
            if Arc::ptr_eq(&version, &self.version.load()) {
                return (version, sequence);
            }
        }
    }
}
