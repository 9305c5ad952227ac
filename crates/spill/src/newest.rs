//! Which records are the newest of their keys: asked for several side by side, so that the waits for
//! memory of one are those of all.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::Result;
use crate::inner::Inner;
use crate::l0::{Search, side_by_side};
use crate::level::Level;
use crate::log::reader::Found;
use crate::position::{Position, Tag};
use crate::record::{Header, Kind};
use crate::version::{Look, TableId, Version};

/// As many as are worth asking at once: their memory fits into the processor's first cache, and it
/// has no more requests under way.
pub(crate) const SIDE_BY_SIDE: usize = 16;

/// A record of which that is asked.
pub(crate) struct Candidate<'a> {
    pub(crate) table: TableId,
    pub(crate) key: &'a [u8],
    pub(crate) key_hash: u64,
    pub(crate) position: Position,
}

impl<'a> Candidate<'a> {
    /// A put or a delete that lies in a segment.
    pub(crate) fn of(segment: u32, found: &Found<'a>) -> Self {
        let Header { kind, table, .. } = found.record.header;
        let key_hash = found.hashes.key;
        let tag = Tag::of(key_hash);
        let position = Position::new(segment, found.offset, kind == Kind::Delete, tag);
        Candidate { table, key: found.record.key, key_hash, position }
    }
}

impl Inner {
    /// Whether each of them is what its key says now.
    pub(crate) fn are_newest(&self, candidates: &[Candidate<'_>]) -> Result<Vec<bool>> {
        let mut answers = vec![None; candidates.len()];
        // Again where what was found is in a segment that came after the version.
        while answers.contains(&None) {
            self.answer(&self.version.load(), candidates, &mut answers)?;
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// Answers those that have no answer yet, but for those of which a record is in a segment that
    /// this version does not have.
    fn answer(
        &self,
        version: &Version,
        candidates: &[Candidate<'_>],
        answers: &mut [Option<bool>],
    ) -> Result<()> {
        let mut open = Vec::with_capacity(candidates.len());
        for (at, answer) in answers.iter_mut().enumerate().filter(|(_, answer)| answer.is_none()) {
            match version.table(candidates[at].table) {
                Some(_) => open.push(at),
                None => *answer = Some(false),
            }
        }
        for generation in std::iter::once(&version.active).chain(&version.frozen) {
            let search = |&at: &usize| {
                let Candidate { table, key, .. } = candidates[at];
                Search::new(generation.l0(table).map(Arc::as_ref), key)
            };
            let mut searches: Vec<Search<'_>> = open.iter().map(search).collect();
            side_by_side(&mut searches);
            // A batch that is complete by now is seen as a whole.
            let visible = self.visible.load(Ordering::Acquire);
            let mut searches = searches.iter();
            open.retain(|&at| {
                let found = searches.next().and_then(Search::found);
                let Some(found) = found.and_then(|newest| newest.at(visible)) else { return true };
                if version.segments.get(found.position.segment()).is_some() {
                    answers[at] = Some(found.position == candidates[at].position);
                }
                false
            });
        }
        let tables = candidates.iter().filter_map(|candidate| version.table(candidate.table));
        let depth = tables.map(|table| table.levels.len()).max().unwrap_or(0);
        for depth in 0..depth {
            self.answer_by_level(version, depth, candidates, &open, answers)?;
            open.retain(|&at| answers[at].is_none());
        }
        // Nothing leads to them.
        for at in open {
            answers[at] = Some(false);
        }
        Ok(())
    }

    /// Answers those of which the levels at a depth have a record.
    fn answer_by_level(
        &self,
        version: &Version,
        depth: usize,
        candidates: &[Candidate<'_>],
        open: &[usize],
        answers: &mut [Option<bool>],
    ) -> Result<()> {
        let mut leaves = Vec::with_capacity(open.len());
        for &at in open {
            let Some((level, below)) = level(version, candidates[at].table, depth) else {
                continue;
            };
            if !level.may_have(candidates[at].key_hash)? {
                continue;
            }
            let leaf = level.leaf_id_of(candidates[at].key)?;
            level.page(leaf)?.prefetch();
            leaves.push((at, level, leaf, below));
        }
        for &(at, level, leaf, _) in &leaves {
            level.leaf(leaf)?.prefetch_block(candidates[at].key);
        }
        // Of the same key, if they are not of another one with the same tag.
        let mut others = Vec::new();
        for (at, level, leaf, below) in leaves {
            let Candidate { key, position, .. } = candidates[at];
            let leaf = level.leaf(leaf)?;
            for found in leaf.ties(key).map(|place| Position::from_bits(leaf.value(place))) {
                if found == position {
                    answers[at] = Some(true);
                } else if found.may_be(position.tag()) && below {
                    version.prefetch_begin(found);
                    others.push((at, found));
                }
            }
        }
        let mut scratch = Vec::new();
        for (at, found) in others {
            if answers[at].is_some() {
                continue;
            }
            let looked = version.key_at(&self.staging, found, &mut scratch, |record| {
                record.key == candidates[at].key
            })?;
            if matches!(looked, Look::Found(true)) {
                answers[at] = Some(false);
            }
        }
        Ok(())
    }
}

/// The level of a table at a depth, and whether there is another one below.
fn level(version: &Version, table: TableId, depth: usize) -> Option<(&Level, bool)> {
    let levels = &version.table(table)?.levels;
    let level = levels.get(depth)?.as_ref()?;
    Some((level, levels[depth + 1..].iter().any(Option::is_some)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::inner::lock;
    use crate::log::reader::{Buffer, Reader};
    use crate::log::segment::FILE_HEADER;
    use crate::record::hash;
    use crate::{Batch, Options, Store, Table};

    struct Written {
        table: TableId,
        key: Vec<u8>,
        position: Position,
        sequence: u64,
    }

    /// All puts and deletes that the files have.
    fn written(version: &Version) -> Vec<Written> {
        let mut all = Vec::new();
        let mut buffer = Buffer::default();
        for segment in version.segments.iter() {
            let written = segment.written();
            let mut reader = Reader::new(segment, FILE_HEADER, written, &mut buffer);
            while let Some(found) = reader.next().unwrap() {
                let header = found.record.header;
                if !matches!(header.kind, Kind::Put | Kind::Delete) {
                    continue;
                }
                let Candidate { table, key, position, .. } = Candidate::of(segment.id, &found);
                let sequence = header.sequence;
                all.push(Written { table, key: key.to_vec(), position, sequence });
            }
        }
        all
    }

    #[test]
    fn the_newest_are_those_with_the_last_sequence() {
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
        let mut any = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for write in 0..20_000_u32 {
            let key = any(3000).to_string();
            let table = &tables[any(3) as usize];
            match any(10) {
                0 => table.delete(key.as_bytes()).unwrap(),
                1 => {
                    let mut batch = Batch::new();
                    batch.put(table, key.as_bytes(), b"of a batch");
                    batch.delete(table, any(3000).to_string().as_bytes());
                    store.write(&batch).unwrap();
                }
                _ => table.put(key.as_bytes(), &write.to_le_bytes()).unwrap(),
            }
        }
        store.drop_table("gone").unwrap();
        for key in (0..3000).step_by(17) {
            tables[key % 2].put(key.to_string().as_bytes(), b"in memory").unwrap();
        }
        let inner = store.inner();
        inner.write_out().unwrap();
        let version = inner.version.load_full();
        let levels = &version.table(tables[0].id).unwrap().levels;
        assert!(levels.iter().flatten().count() >= 2);
        assert!(levels.iter().flatten().any(|level| level.filter.is_some()));
        assert!(!version.active.is_empty() && version.frozen.is_empty());
        check(inner, &tables[..2]);
        inner.rotate(&mut lock(&inner.writer));
        assert_eq!(inner.version.load().frozen.len(), 1);
        check(inner, &tables[..2]);
    }

    /// Asks of all that was written.
    fn check(inner: &Inner, tables: &[Table]) {
        let version = inner.version.load_full();
        let all = written(&version);
        let mut last = HashMap::new();
        for Written { table, key, sequence, .. } in &all {
            let known = last.entry((*table, key)).or_insert(0);
            *known = (*sequence).max(*known);
        }
        let mut answers = Vec::new();
        for some in all.chunks(SIDE_BY_SIDE) {
            let candidates: Vec<Candidate<'_>> = some
                .iter()
                .map(|&Written { table, ref key, position, .. }| Candidate {
                    table,
                    key,
                    key_hash: hash(key),
                    position,
                })
                .collect();
            answers.extend(inner.are_newest(&candidates).unwrap());
        }
        assert_eq!(answers.len(), all.len());
        for (answer, Written { table: table_id, key, sequence, position }) in
            answers.iter().zip(&all)
        {
            let is_last = last[&(*table_id, key)] == *sequence;
            // A deletion may be gone, and with it what it tells of the last put.
            let is_there =
                |table: &Table| table.id == *table_id && table.get(key).unwrap().is_some();
            let is_newest = is_last && tables.iter().any(is_there);
            assert!(
                *answer == is_newest || is_last && position.is_tombstone(),
                "{key:?} {sequence}"
            );
        }
    }
}
