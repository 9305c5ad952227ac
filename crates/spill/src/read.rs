//! Reading a key from a version.

use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::error::Result;
use crate::memtable;
use crate::record::{Record, hash};
use crate::value_pointer::{Tag, ValuePointer};
use crate::version::{Lookup, TableId, Version};

/// Result of reading a key.
pub(crate) enum ReadOutcome<R> {
    Value(R),
    NotFound,
    SegmentGone,
}

impl Engine {
    /// Calls `visit` with the value of a key as of sequence `bound`, or as of now.
    #[inline]
    pub(crate) fn read_with<R>(
        &self,
        version: &Version,
        table: TableId,
        key: &[u8],
        bound: Option<u64>,
        scratch: &mut Vec<u8>,
        visit: impl FnOnce(&[u8]) -> R,
    ) -> Result<ReadOutcome<R>> {
        if let Some(found) = self.find_in_memory(version, table, key, bound) {
            if found.is_tombstone() {
                return Ok(ReadOutcome::NotFound);
            }
            self.staging.note_read();
            let lookup = self.read_at(version, found, scratch, |record| visit(record.value))?;
            return Ok(match lookup {
                Lookup::Found(answer) => ReadOutcome::Value(answer),
                Lookup::SegmentGone => ReadOutcome::SegmentGone,
            });
        }
        let mut visit = Some(visit);
        let answer = self.find_in_levels(version, table, key, scratch, |pointer, record| {
            match visit.take() {
                Some(visit) if !pointer.is_tombstone() => Some(visit(record.value)),
                _ => None,
            }
        })?;
        Ok(match answer.flatten() {
            Some(answer) => ReadOutcome::Value(answer),
            None => ReadOutcome::NotFound,
        })
    }

    #[inline]
    pub(crate) fn find_in_memory(
        &self,
        version: &Version,
        table: TableId,
        key: &[u8],
        bound: Option<u64>,
    ) -> Option<ValuePointer> {
        version.table(table)?;
        let memtable_sets = std::iter::once(&version.active).chain(&version.frozen);
        memtable_sets
            .filter_map(|memtable_set| {
                let memtable =
                    memtable_set.memtable(table).filter(|memtable| !memtable.is_empty())?;
                match bound {
                    Some(bound) => visible_version(memtable.get(key)?, version, bound),
                    // A batch that is complete by then is seen as a whole.
                    None => memtable.get_at(key, || self.visible_sequence.load(Ordering::Acquire)),
                }
            })
            .map(|found| found.pointer)
            .next()
    }

    /// Calls `visit` with the record behind a pointer. Prefetches as much as the thread's last
    /// record had.
    #[inline]
    fn read_at<R>(
        &self,
        version: &Version,
        pointer: ValuePointer,
        scratch: &mut Vec<u8>,
        visit: impl FnOnce(&Record<'_>) -> R,
    ) -> Result<Lookup<R>> {
        version.prefetch(pointer);
        version.read_record(&self.staging, pointer, self.options.verify, scratch, visit)
    }

    #[inline]
    fn find_in_levels<R>(
        &self,
        version: &Version,
        table: TableId,
        key: &[u8],
        scratch: &mut Vec<u8>,
        mut visit: impl FnMut(ValuePointer, &Record<'_>) -> R,
    ) -> Result<Option<R>> {
        let Some(table) = version.table(table) else { return Ok(None) };
        let key_hash = hash(key);
        let tag = Tag::of(key_hash);
        for level in table.levels.iter().flatten() {
            let Some(leaf) = level.leaf_of(key, key_hash)? else { continue };
            leaf.prefetch();
            for slot in leaf.ties(key) {
                let pointer = ValuePointer::from_bits(leaf.value(slot));
                if !pointer.may_match(tag) {
                    continue;
                }
                self.staging.note_read();
                let lookup = self.read_at(version, pointer, scratch, |record| {
                    (record.key == key).then(|| visit(pointer, record))
                })?;
                if let Lookup::Found(Some(answer)) = lookup {
                    return Ok(Some(answer));
                }
            }
        }
        Ok(None)
    }
}

/// The newest version of a key that is visible at `bound` in a store version. A version in a
/// segment unknown to it is a copy of an older one.
#[inline]
pub(crate) fn visible_version<'a>(
    newest: &'a memtable::KeyVersion,
    version: &Version,
    bound: u64,
) -> Option<&'a memtable::KeyVersion> {
    let mut found = newest.at(bound)?;
    while version.segments.get(found.pointer.segment()).is_none() {
        found = found.older()?;
    }
    Some(found)
}
