//! Finding a key in a version.

use std::sync::atomic::Ordering;

use crate::error::Result;
use crate::inner::Inner;
use crate::l0;
use crate::position::{Position, Tag};
use crate::record::{Record, hash};
use crate::version::{Look, TableId, Version};

/// What reading a key came to.
pub(crate) enum Read<R> {
    Value(R),
    Nothing,
    Gone,
}

impl Inner {
    /// Calls `seen` with the value of a key as it was at `bound`, the last sequence that counts;
    /// None: as it is now.
    #[inline]
    pub(crate) fn read_with<R>(
        &self,
        version: &Version,
        table: TableId,
        key: &[u8],
        bound: Option<u64>,
        scratch: &mut Vec<u8>,
        seen: impl FnOnce(&[u8]) -> R,
    ) -> Result<Read<R>> {
        if let Some(found) = self.find_in_memory(version, table, key, bound) {
            if found.is_tombstone() {
                return Ok(Read::Nothing);
            }
            self.staging.note_read();
            let looked = self.look(version, found, scratch, |record| seen(record.value))?;
            return Ok(match looked {
                Look::Found(answer) => Read::Value(answer),
                Look::Gone => Read::Gone,
            });
        }
        let mut seen = Some(seen);
        let answer = self.find_in_levels(version, table, key, scratch, |position, record| {
            match seen.take() {
                Some(seen) if !position.is_tombstone() => Some(seen(record.value)),
                _ => None,
            }
        })?;
        Ok(match answer.flatten() {
            Some(answer) => Read::Value(answer),
            None => Read::Nothing,
        })
    }

    #[inline]
    pub(crate) fn find_in_memory(
        &self,
        version: &Version,
        table: TableId,
        key: &[u8],
        bound: Option<u64>,
    ) -> Option<Position> {
        version.table(table)?;
        let generations = std::iter::once(&version.active).chain(&version.frozen);
        generations
            .filter_map(|generation| {
                let l0 = generation.l0(table).filter(|l0| !l0.is_empty())?;
                match bound {
                    Some(bound) => visible(l0.get(key)?, version, bound),
                    // A batch that is complete by then is seen as a whole.
                    None => l0.get_at(key, || self.visible.load(Ordering::Acquire)),
                }
            })
            .map(|found| found.position)
            .next()
    }

    /// Calls `seen` with the record at a position. All of it is asked for at once, where it is as long
    /// as the last one that this thread read.
    #[inline]
    fn look<R>(
        &self,
        version: &Version,
        position: Position,
        scratch: &mut Vec<u8>,
        seen: impl FnOnce(&Record<'_>) -> R,
    ) -> Result<Look<R>> {
        version.prefetch(position);
        version.look(&self.staging, position, self.options.verify, scratch, seen)
    }

    #[inline]
    fn find_in_levels<R>(
        &self,
        version: &Version,
        table: TableId,
        key: &[u8],
        scratch: &mut Vec<u8>,
        mut seen: impl FnMut(Position, &Record<'_>) -> R,
    ) -> Result<Option<R>> {
        let Some(table) = version.table(table) else { return Ok(None) };
        let key_hash = hash(key);
        let tag = Tag::of(key_hash);
        for level in table.levels.iter().flatten() {
            let Some(leaf) = level.leaf_of(key, key_hash)? else { continue };
            leaf.prefetch();
            for place in leaf.ties(key) {
                let position = Position::from_bits(leaf.value(place));
                if !position.may_be(tag) {
                    continue;
                }
                self.staging.note_read();
                let looked = self.look(version, position, scratch, |record| {
                    (record.key == key).then(|| seen(position, record))
                })?;
                if let Look::Found(Some(answer)) = looked {
                    return Ok(Some(answer));
                }
            }
        }
        Ok(None)
    }
}

/// The newest of a key's versions that counts at `bound` in a version of the store. One whose
/// segment is not in that is a copy of what an older one says.
#[inline]
pub(crate) fn visible<'a>(
    newest: &'a l0::Version,
    version: &Version,
    bound: u64,
) -> Option<&'a l0::Version> {
    let mut found = newest.at(bound)?;
    while version.segments.get(found.position.segment()).is_none() {
        found = found.older()?;
    }
    Some(found)
}
