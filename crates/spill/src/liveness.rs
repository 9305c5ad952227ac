//! Liveness: whether records are the newest of their keys. Several look-ups run interleaved, so
//! that their cache misses overlap.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::error::Result;
use crate::level::Level;
use crate::memtable::{Search, run_interleaved};
use crate::record::{Header, RecordKind};
use crate::value_log::reader::LocatedRecord;
use crate::value_pointer::{Tag, ValuePointer};
use crate::version::{Lookup, TableId, Version};

/// Look-ups to interleave: their memory fits the first-level cache, and a CPU has no more
/// outstanding misses.
pub(crate) const INTERLEAVED: usize = 16;

/// A record whose liveness is asked for.
pub(crate) struct Candidate<'a> {
    pub(crate) table: TableId,
    pub(crate) key: &'a [u8],
    pub(crate) key_hash: u64,
    pub(crate) pointer: ValuePointer,
}

impl<'a> Candidate<'a> {
    /// A put or a delete in a segment.
    pub(crate) fn of(segment: u32, found: &LocatedRecord<'a>) -> Self {
        let Header { kind, table, .. } = found.record.header;
        let key_hash = found.hashes.key;
        let tag = Tag::of(key_hash);
        let pointer = ValuePointer::new(segment, found.offset, kind == RecordKind::Delete, tag);
        Candidate { table, key: found.record.key, key_hash, pointer }
    }
}

impl Engine {
    /// Whether each record is the newest of its key.
    pub(crate) fn are_live(&self, candidates: &[Candidate<'_>]) -> Result<Vec<bool>> {
        let mut answers = vec![None; candidates.len()];
        // Repeats where a newer record lies in a segment that the version does not have yet.
        while answers.contains(&None) {
            self.resolve(&self.version.load(), candidates, &mut answers)?;
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// Resolves candidates, except those whose newest record is in a segment unknown to this
    /// version.
    fn resolve(
        &self,
        version: &Version,
        candidates: &[Candidate<'_>],
        answers: &mut [Option<bool>],
    ) -> Result<()> {
        let mut unresolved = Vec::with_capacity(candidates.len());
        for (index, is_live) in
            answers.iter_mut().enumerate().filter(|(_, is_live)| is_live.is_none())
        {
            match version.table(candidates[index].table) {
                Some(_) => unresolved.push(index),
                None => *is_live = Some(false),
            }
        }
        for memtable_set in std::iter::once(&version.active).chain(&version.frozen) {
            let search = |&index: &usize| {
                let Candidate { table, key, .. } = candidates[index];
                Search::new(memtable_set.memtable(table).map(Arc::as_ref), key)
            };
            let mut searches: Vec<Search<'_>> = unresolved.iter().map(search).collect();
            run_interleaved(&mut searches);
            // A batch that is complete by now is seen as a whole.
            let visible_sequence = self.visible_sequence.load(Ordering::Acquire);
            let mut searches = searches.iter();
            unresolved.retain(|&index| {
                let found = searches.next().and_then(Search::found);
                let Some(found) = found.and_then(|newest| newest.at(visible_sequence)) else {
                    return true;
                };
                if version.segments.get(found.pointer.segment()).is_some() {
                    answers[index] = Some(found.pointer == candidates[index].pointer);
                }
                false
            });
        }
        let tables = candidates.iter().filter_map(|candidate| version.table(candidate.table));
        let depth = tables.map(|table| table.levels.len()).max().unwrap_or(0);
        for depth in 0..depth {
            self.resolve_in_level(version, depth, candidates, &unresolved, answers)?;
            unresolved.retain(|&index| answers[index].is_none());
        }
        // No index refers to them.
        for index in unresolved {
            answers[index] = Some(false);
        }
        Ok(())
    }

    /// Resolves the candidates that the levels at a depth have records of.
    fn resolve_in_level(
        &self,
        version: &Version,
        depth: usize,
        candidates: &[Candidate<'_>],
        unresolved: &[usize],
        answers: &mut [Option<bool>],
    ) -> Result<()> {
        let mut leaves = Vec::with_capacity(unresolved.len());
        for &index in unresolved {
            let Some((level, below)) = level(version, candidates[index].table, depth) else {
                continue;
            };
            if !level.may_contain(candidates[index].key_hash)? {
                continue;
            }
            let leaf = level.leaf_id_of(candidates[index].key)?;
            level.page(leaf)?.prefetch();
            leaves.push((index, level, leaf, below));
        }
        for &(index, level, leaf, _) in &leaves {
            level.leaf(leaf)?.prefetch_block(candidates[index].key);
        }
        // Probably the same key, unless tags collide.
        let mut same_tag = Vec::new();
        for (index, level, leaf, below) in leaves {
            let Candidate { key, pointer, .. } = candidates[index];
            let leaf = level.leaf(leaf)?;
            for found in leaf.ties(key).map(|slot| ValuePointer::from_bits(leaf.value(slot))) {
                if found == pointer {
                    answers[index] = Some(true);
                } else if found.may_match(pointer.tag()) && below {
                    version.prefetch_begin(found);
                    same_tag.push((index, found));
                }
            }
        }
        let mut scratch = Vec::new();
        for (index, found) in same_tag {
            if answers[index].is_some() {
                continue;
            }
            let lookup = version.read_key(&self.staging, found, &mut scratch, |record| {
                record.key == candidates[index].key
            })?;
            if matches!(lookup, Lookup::Found(true)) {
                answers[index] = Some(false);
            }
        }
        Ok(())
    }
}

/// The level of a table at a depth, and whether there is one below.
fn level(version: &Version, table: TableId, depth: usize) -> Option<(&Level, bool)> {
    let levels = &version.table(table)?.levels;
    let level = levels.get(depth)?.as_ref()?;
    Some((level, levels[depth + 1..].iter().any(Option::is_some)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::locks::lock;
    use crate::record::hash;
    use crate::value_log::reader::{ReadBuffer, SegmentReader};
    use crate::value_log::segment::FILE_HEADER_LEN;
    use crate::{Batch, Options, Store, Table};

    struct LoggedWrite {
        table: TableId,
        key: Vec<u8>,
        pointer: ValuePointer,
        sequence: u64,
    }

    /// All puts and deletes in the files.
    fn logged_writes(version: &Version) -> Vec<LoggedWrite> {
        let mut all = Vec::new();
        let mut buffer = ReadBuffer::default();
        for segment in version.segments.iter() {
            let end = segment.written();
            let mut reader = SegmentReader::new(segment, FILE_HEADER_LEN, end, &mut buffer);
            while let Some(found) = reader.next().unwrap() {
                let header = found.record.header;
                if !matches!(header.kind, RecordKind::Put | RecordKind::Delete) {
                    continue;
                }
                let Candidate { table, key, pointer, .. } = Candidate::of(segment.id, &found);
                let sequence = header.sequence;
                all.push(LoggedWrite { table, key: key.to_vec(), pointer, sequence });
            }
        }
        all
    }

    #[test]
    fn live_records_are_those_with_the_highest_sequence() {
        let home = tempfile::tempdir().unwrap();
        let options = Options {
            background: false,
            memory: 64 << 10,
            segment: 64 << 10,
            growth: 2,
            bloom_bits: 10,
            ..Options::default()
        };
        let store = Store::open(home.path(), options).unwrap();
        let tables = ["one", "two", "gone"].map(|name| store.table(name).unwrap());
        let mut random = 1_u64;
        let mut random_below = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for write in 0..20_000_u32 {
            let key = random_below(3000).to_string();
            let table = &tables[random_below(3) as usize];
            match random_below(10) {
                0 => table.delete(key.as_bytes()).unwrap(),
                1 => {
                    let mut batch = Batch::new();
                    batch.put(table, key.as_bytes(), b"of a batch");
                    batch.delete(table, random_below(3000).to_string().as_bytes());
                    store.write(&batch).unwrap();
                }
                _ => table.put(key.as_bytes(), &write.to_le_bytes()).unwrap(),
            }
        }
        store.drop_table("gone").unwrap();
        for key in (0..3000).step_by(17) {
            tables[key % 2].put(key.to_string().as_bytes(), b"in memory").unwrap();
        }
        let engine = store.engine();
        engine.flush_staging().unwrap();
        let version = engine.version.load_full();
        let levels = &version.table(tables[0].id).unwrap().levels;
        assert!(levels.iter().flatten().count() >= 2);
        assert!(levels.iter().flatten().any(|level| level.filter.is_some()));
        assert!(!version.active.is_empty() && version.frozen.is_empty());
        check(engine, &tables[..2]);
        engine.freeze_memtables(&mut lock(&engine.writer));
        assert_eq!(engine.version.load().frozen.len(), 1);
        check(engine, &tables[..2]);
    }

    /// Checks the liveness of every written record.
    fn check(engine: &Engine, tables: &[Table]) {
        let version = engine.version.load_full();
        let all = logged_writes(&version);
        let mut last = HashMap::new();
        for LoggedWrite { table, key, sequence, .. } in &all {
            let known = last.entry((*table, key)).or_insert(0);
            *known = (*sequence).max(*known);
        }
        let mut answers = Vec::new();
        for some in all.chunks(INTERLEAVED) {
            let candidates: Vec<Candidate<'_>> = some
                .iter()
                .map(|&LoggedWrite { table, ref key, pointer, .. }| Candidate {
                    table,
                    key,
                    key_hash: hash(key),
                    pointer,
                })
                .collect();
            answers.extend(engine.are_live(&candidates).unwrap());
        }
        assert_eq!(answers.len(), all.len());
        for (is_live, LoggedWrite { table: table_id, key, sequence, pointer }) in
            answers.iter().zip(&all)
        {
            let is_last = last[&(*table_id, key)] == *sequence;
            // A tombstone may be gone, and with it what it says of the last put.
            let is_there =
                |table: &Table| table.id == *table_id && table.get(key).unwrap().is_some();
            let is_newest = is_last && tables.iter().any(is_there);
            assert!(
                *is_live == is_newest || is_last && pointer.is_tombstone(),
                "{key:?} {sequence}"
            );
        }
    }
}
