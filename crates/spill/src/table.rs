use std::cell::RefCell;
use std::ops::{Bound, RangeBounds};

use crate::error::{Error, Result};
use crate::inner::Inner;
use crate::read::Read;
use crate::record::Kind;
use crate::scan::Range;
use crate::store::Store;
use crate::throttle;
use crate::version::TableId;

/// A table of a store: an ordered map from keys to values.
#[derive(Clone)]
pub struct Table {
    store: Store,
    pub(crate) id: TableId,
    name: std::sync::Arc<str>,
}

thread_local! {
    /// Where a record is put that cannot be lent out of the mapping.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A buffer larger than this is not kept.
const SCRATCH_KEPT: usize = 1 << 20;

impl Table {
    pub(crate) fn new(store: Store, id: TableId, name: &str) -> Table {
        Table { store, id, name: name.into() }
    }

    fn inner(&self) -> &Inner {
        self.store.inner()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Another store has another table of this number.
    pub(crate) fn check_is_of(&self, store: &Inner) -> Result<()> {
        if std::ptr::eq(self.inner(), store) {
            return Ok(());
        }
        Err(Error::NoTable { name: self.name.to_string() })
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`]; [`Error::NoTable`] if the table was dropped;
    /// [`Error::ReadOnly`]; [`Error::Halted`] after an earlier failure; [`Error::Full`] or
    /// [`Error::Io`] if the log cannot be written. While more than
    /// [`Options::frozen`](crate::Options::frozen) L0s wait because they cannot be merged, why not:
    /// one of the last three, or [`Error::Damaged`]. With
    /// [`Durability::Interval`](crate::Durability::Interval), why the last sync failed. Then
    /// nothing changed, with two exceptions.
    ///
    /// With [`Durability::Sync`](crate::Durability::Sync) a write whose sync failed is seen by
    /// reads. A record that goes to its segment by itself (see
    /// [`CachedWrites`](crate::CachedWrites)) and cannot be written halts the store, unless the
    /// device is full. Of both it is unknown whether they will be there when the store is opened
    /// again.
    #[inline]
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner().write_one(self.id, &self.name, Kind::Put, key, value)
    }

    /// Removes a key; fine if it is not there.
    ///
    /// # Errors
    /// As [`Table::put`].
    #[inline]
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.inner().write_one(self.id, &self.name, Kind::Delete, key, &[])
    }

    /// A copy of the value of a key; None if it is not there, or the table was dropped.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the record, or an index page on the way to it, is not what was
    /// written; [`Error::Io`] if it cannot be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.read(key, <[u8]>::to_vec)
    }

    /// Calls `seen` with the value of a key without copying it, if the key is there; answers what
    /// that does.
    ///
    /// # Errors
    /// As [`Table::get`].
    #[inline]
    pub fn read<R>(&self, key: &[u8], seen: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        throttle::pay();
        // Taken, so that `seen` may read too.
        let mut scratch = SCRATCH.try_with(RefCell::take).unwrap_or_default();
        let mut seen = Some(seen);
        let answer = loop {
            let version = self.inner().version.load();
            let read =
                self.inner().read_with(&version, self.id, key, None, &mut scratch, |value| {
                    seen.take().map(|seen| seen(value))
                });
            match read {
                Ok(Read::Gone) => {}
                Ok(Read::Nothing) => break Ok(None),
                Ok(Read::Value(answer)) => break Ok(answer),
                Err(error) => break Err(error),
            }
        };
        if scratch.capacity() <= SCRATCH_KEPT {
            let _ = SCRATCH.try_with(|kept| kept.replace(scratch));
        }
        answer
    }

    /// The values of many keys, in the order of these, each as at some moment during the call.
    ///
    /// # Errors
    /// As [`Table::get`], if one of them cannot be read.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        throttle::pay();
        self.inner().multi_get(self.id, keys)
    }

    /// A range of keys as they are now; later writes do not change it. Of a table that was dropped
    /// it is empty. What cannot be read is told by [`Range::next`].
    pub fn range<'a>(&self, range: impl RangeBounds<&'a [u8]>) -> Range {
        throttle::pay();
        let (version, sequence) = self.inner().view();
        let bounds = bounds_of(&range);
        Range::new(std::sync::Arc::clone(self.store.inner()), version, sequence, self.id, bounds)
    }
}

pub(crate) fn bounds_of<'a>(
    range: &impl RangeBounds<&'a [u8]>,
) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (range.start_bound().cloned(), range.end_bound().cloned())
}
