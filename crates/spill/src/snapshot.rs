use std::ops::RangeBounds;
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::read::ReadOutcome;
use crate::scan::Range;
use crate::store::Store;
use crate::table::{Table, bounds_of};
use crate::version::Version;
use std::sync::atomic::Ordering;

/// All tables of a store as they were at one moment. What it reads from stays in memory and on
/// the disk until it is dropped.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) version: Arc<Version>,
    pub(crate) sequence: u64,
    /// Goes last: what it read from goes while the directory is locked.
    pub(crate) store: Store,
}

impl Snapshot {
    /// A copy of the value that a key had; None if it was not there. A table that was dropped since
    /// has what it had; one that was made since has nothing.
    ///
    /// # Errors
    /// As [`Table::get`]; [`Error::NoTable`](crate::Error::NoTable) if the table is of another
    /// store.
    pub fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let engine = self.store.engine();
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

    /// A range of the keys that a table had. What cannot be read is told by [`Range::next`], and by
    /// its first step that the table is of another store.
    pub fn range<'a>(&self, table: &Table, range: impl RangeBounds<&'a [u8]>) -> Range {
        let engine = Arc::clone(self.store.engine());
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
    /// A version and the sequence up to which it is to be read.
    pub(crate) fn view(&self) -> (Arc<Version>, u64) {
        loop {
            let version = self.version.load_full();
            let sequence = self.visible_sequence.load(Ordering::Acquire);
            // Nothing behind the sequence is in its levels if it is still the current one.
            if Arc::ptr_eq(&version, &self.version.load()) {
                return (version, sequence);
            }
        }
    }
}
