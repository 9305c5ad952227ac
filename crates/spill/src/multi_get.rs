//! Batched reads: records that are not in memory are read together.

use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::prefetch;
use crate::read::ReadOutcome;
use crate::record::hash;
use crate::value_log::Segment;
use crate::value_pointer::{Tag, ValuePointer};
use crate::version::{TableId, Version};

impl Engine {
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        table: TableId,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let version = self.version.load_full();
        let mut pointers = Vec::new();
        for key in keys {
            self.likely_records(&version, table, key.as_ref(), &mut pointers)?;
        }
        version.prefetch_all(pointers.into_iter());
        let mut scratch = Vec::new();
        let mut read = |key: &[u8]| loop {
            let version = self.version.load();
            let read = self.read_with(&version, table, key, None, &mut scratch, <[u8]>::to_vec)?;
            match read {
                ReadOutcome::Value(value) => return Ok(Some(value)),
                ReadOutcome::NotFound => return Ok(None),
                ReadOutcome::SegmentGone => {}
            }
        };
        keys.iter().map(|key| read(key.as_ref())).collect()
    }

    /// Adds the records that a read of the key will probably access.
    fn likely_records(
        &self,
        version: &Version,
        table: TableId,
        key: &[u8],
        into: &mut Vec<ValuePointer>,
    ) -> Result<()> {
        if let Some(pointer) = self.find_in_memory(version, table, key, None) {
            into.push(pointer);
            return Ok(());
        }
        let key_hash = hash(key);
        let tag = Tag::of(key_hash);
        let levels = version.table(table).into_iter().flat_map(|table| table.levels.iter());
        for level in levels.flatten() {
            let Some(leaf) = level.leaf_of(key, key_hash)? else { continue };
            let ties = leaf.ties(key).map(|slot| ValuePointer::from_bits(leaf.value(slot)));
            let before = into.len();
            into.extend(ties.filter(|pointer| pointer.may_match(tag)));
            if into.len() > before {
                // Most probably this is the record.
                break;
            }
        }
        Ok(())
    }
}

impl Version {
    /// Prefetches records into the CPU cache or into memory before they are read one by one.
    pub(crate) fn prefetch_all(&self, pointers: impl Iterator<Item = ValuePointer>) {
        let mut cold: Vec<(&Arc<Segment>, u32)> = Vec::new();
        for pointer in pointers {
            let Some(segment) = self.segments.get(pointer.segment()) else { continue };
            if segment.is_cold(pointer.offset()) {
                cold.push((segment, pointer.offset()));
            } else {
                segment.prefetch(pointer.offset(), prefetch::record_lines());
            }
        }
        // A single record is read just as well when it is accessed.
        if cold.len() < 2 {
            return;
        }
        cold.sort_unstable_by_key(|(segment, offset)| (segment.id, *offset));
        for same_segment in cold.chunk_by(|one, other| one.0.id == other.0.id) {
            let offsets: Vec<u32> = same_segment.iter().map(|(_, offset)| *offset).collect();
            same_segment[0].0.populate_many(&offsets, self.cold_read_mode);
        }
    }
}
