use std::cell::RefCell;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::open_store::OpenStore;
use crate::read::ReadOutcome;
use crate::record::RecordKind;
use crate::scan::Range;
use crate::throttle;
use crate::version::TableId;

/// A table of a store: an ordered map from keys to values.
#[derive(Clone)]
pub struct Table {
    open: Arc<OpenStore>,
    pub(crate) id: TableId,
    name: Arc<str>,
}

thread_local! {
    /// Buffer for records that cannot be borrowed from the mapping.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A larger buffer is freed after use.
const MAX_KEPT_SCRATCH: usize = 1 << 20;

impl Table {
    pub(crate) fn new(open: Arc<OpenStore>, id: TableId, name: &str) -> Table {
        Table { open, id, name: name.into() }
    }

    fn engine(&self) -> &Engine {
        &self.open.engine
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Another store may have another table with this number.
    pub(crate) fn check_owner(&self, store: &Engine) -> Result<()> {
        if std::ptr::eq(self.engine(), store) {
            return Ok(());
        }
        Err(Error::NoTable { name: self.name.to_string() })
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`]; [`Error::NoTable`] if the table was dropped;
    /// [`Error::ReadOnly`]; [`Error::Halted`] after an earlier failure; [`Error::Full`] or
    /// [`Error::Io`] if the log cannot be written. If compaction fails while more than
    /// [`Options::frozen`](crate::Options::frozen) memtables wait, its error: one of the last
    /// three, or [`Error::Damaged`]. With [`Durability::Interval`](crate::Durability::Interval),
    /// the error of the last sync. In all these cases nothing changed, with two exceptions.
    ///
    /// With [`Durability::Sync`](crate::Durability::Sync), a write whose sync failed is visible to
    /// reads. A record that is written to its segment directly (see
    /// [`CachedWrites`](crate::CachedWrites)) halts the store if that fails, unless the device is
    /// full. Whether either survives is unknown until the store is opened again.
    #[inline]
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.engine().write_one(self.id, &self.name, RecordKind::Put, key, value)
    }

    /// Deletes a key; it need not exist.
    ///
    /// # Errors
    /// As [`Table::put`].
    #[inline]
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.engine().write_one(self.id, &self.name, RecordKind::Delete, key, &[])
    }

    /// A copy of the value of a key; `None` if it does not exist or the table was dropped.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the record, or an index page on the way to it, is damaged;
    /// [`Error::Io`] if it is unreadable.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.read(key, <[u8]>::to_vec)
    }

    /// Calls `visit` with the value of a key, without a copy, if the key exists; returns its
    /// result.
    ///
    /// # Errors
    /// As [`Table::get`].
    #[inline]
    pub fn read<R>(&self, key: &[u8], visit: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        throttle::settle_before_read();
        // Taken out, so that `visit` may read too.
        let mut scratch = SCRATCH.try_with(RefCell::take).unwrap_or_default();
        let mut visit = Some(visit);
        let answer = loop {
            let version = self.engine().version.load();
            let read =
                self.engine().read_with(&version, self.id, key, None, &mut scratch, |value| {
                    visit.take().map(|visit| visit(value))
                });
            match read {
                Ok(ReadOutcome::SegmentGone) => {}
                Ok(ReadOutcome::NotFound) => break Ok(None),
                Ok(ReadOutcome::Value(answer)) => break Ok(answer),
                Err(error) => break Err(error),
            }
        };
        if scratch.capacity() <= MAX_KEPT_SCRATCH {
            let _ = SCRATCH.try_with(|kept| kept.replace(scratch));
        }
        answer
    }

    /// The values of many keys, in their order, each as of some moment during the call.
    ///
    /// # Errors
    /// As [`Table::get`], if one of them cannot be read.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        throttle::settle_before_read();
        self.engine().multi_get(self.id, keys)
    }

    /// A range of keys as of now; later writes do not affect it. It is empty for a dropped table.
    /// Read errors are returned by [`Range::next`].
    pub fn range<'a>(&self, range: impl RangeBounds<&'a [u8]>) -> Range {
        throttle::settle_before_read();
        let (version, sequence) = self.engine().view();
        let bounds = bounds_of(&range);
        Range::new(Arc::clone(&self.open.engine), version, sequence, self.id, bounds)
    }
}

pub(crate) fn bounds_of<'a>(
    range: &impl RangeBounds<&'a [u8]>,
) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (range.start_bound().cloned(), range.end_bound().cloned())
}
