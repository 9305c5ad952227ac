//! Reading many records at once: what has to come from the device is asked for together.

use std::sync::Arc;

use crate::error::Result;
use crate::inner::Inner;
use crate::log::Segment;
use crate::position::{Position, Tag};
use crate::prefetch;
use crate::read::Read;
use crate::record::hash;
use crate::version::{TableId, Version};

impl Inner {
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        table: TableId,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let version = self.version.load_full();
        let mut wanted = Vec::new();
        for key in keys {
            self.candidates(&version, table, key.as_ref(), &mut wanted)?;
        }
        version.bring_together(wanted.into_iter());
        let mut scratch = Vec::new();
        let mut read = |key: &[u8]| loop {
            let version = self.version.load();
            let read = self.read_with(&version, table, key, None, &mut scratch, <[u8]>::to_vec)?;
            match read {
                Read::Value(value) => return Ok(Some(value)),
                Read::Nothing => return Ok(None),
                Read::Gone => {}
            }
        };
        keys.iter().map(|key| read(key.as_ref())).collect()
    }

    /// Adds the records that reading a key will probably look at.
    fn candidates(
        &self,
        version: &Version,
        table: TableId,
        key: &[u8],
        into: &mut Vec<Position>,
    ) -> Result<()> {
        if let Some(position) = self.find_in_memory(version, table, key, None) {
            into.push(position);
            return Ok(());
        }
        let key_hash = hash(key);
        let tag = Tag::of(key_hash);
        let levels = version.table(table).into_iter().flat_map(|table| table.levels.iter());
        for level in levels.flatten() {
            let Some(leaf) = level.leaf_of(key, key_hash)? else { continue };
            let ties = leaf.ties(key).map(|place| Position::from_bits(leaf.value(place)));
            let before = into.len();
            into.extend(ties.filter(|position| position.may_be(tag)));
            if into.len() > before {
                // Most probably this is the one.
                break;
            }
        }
        Ok(())
    }
}

impl Version {
    /// Has records in the processor's cache or in memory before they are read one by one.
    pub(crate) fn bring_together(&self, positions: impl Iterator<Item = Position>) {
        let mut cold: Vec<(&Arc<Segment>, u32)> = Vec::new();
        for position in positions {
            let Some(segment) = self.segments.get(position.segment()) else { continue };
            if segment.is_cold(position.offset()) {
                cold.push((segment, position.offset()));
            } else {
                segment.prefetch(position.offset(), prefetch::record_lines());
            }
        }
        // One alone is read as well when it is looked at.
        if cold.len() < 2 {
            return;
        }
        cold.sort_unstable_by_key(|(segment, offset)| (segment.id, *offset));
        for of_one in cold.chunk_by(|one, other| one.0.id == other.0.id) {
            let offsets: Vec<u32> = of_one.iter().map(|(_, offset)| *offset).collect();
            of_one[0].0.bring_many(&offsets, self.cold);
        }
    }
}
