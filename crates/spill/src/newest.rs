//! Which records are the newest of their keys: asked for several side by side, so that the waits for
//! memory of one are those of all.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::Result;
use crate::inner::Inner;
use crate::l0::{Search, side_by_side};
use crate::level::Level;
use crate::position::Position;
use crate::version::{Look, TableId, Version};

/// As many as are worth asking at once: their memory fits into the processor's first cache, and it
/// has no more requests under way.
pub(crate) const SIDE_BY_SIDE: usize = 16;

/// A record of which that is asked.
pub(crate) struct Candidate<'a> {
    pub(crate) table: TableId,
    pub(crate) key: &'a [u8],
    pub(crate) position: Position,
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
                    version.prefetch(found, 1);
                    others.push((at, found));
                }
            }
        }
        let mut scratch = Vec::new();
        for (at, found) in others {
            if answers[at].is_some() {
                continue;
            }
            let looked = version.look(&self.staging, found, false, &mut scratch, |record| {
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
