//! A cursor over the leaves of a level, in either direction.

use std::sync::Arc;

use super::Level;
use super::page::{Page, PageId};
use crate::error::Result;
use crate::value_pointer::ValuePointer;

/// A position between the entries of a level. It knows value pointers only; keys are in the log.
pub(crate) struct Cursor {
    level: Arc<Level>,
    /// Inner pages from the root, and the child taken in each.
    path: Vec<(PageId, usize)>,
    leaf: PageId,
    /// Index of the current entry; `count` is behind the last.
    slot: usize,
    count: usize,
}

impl Cursor {
    pub(crate) fn new(level: Arc<Level>) -> Cursor {
        let leaf = level.root;
        Cursor { level, path: Vec::new(), leaf, slot: 0, count: 0 }
    }

    fn page(&self) -> Result<Page<'_>> {
        self.level.leaf(self.leaf)
    }

    /// Moves to the first entry whose key may be at or above `key`. Returns how many entries from
    /// there on may still be below it.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<usize> {
        let level = Arc::clone(&self.level);
        self.descend(|page| page.child_of(key))?;
        let page = level.leaf(self.leaf)?;
        let ties = page.ties(key);
        self.count = page.count();
        self.slot = ties.start;
        let ambiguous = ties.len();
        if self.slot == self.count {
            self.next_leaf()?;
        }
        Ok(ambiguous)
    }

    /// Moves behind the last entry.
    pub(crate) fn seek_end(&mut self) -> Result<()> {
        self.descend(|page| page.count() - 1)?;
        self.count = self.page()?.count();
        self.slot = self.count;
        Ok(())
    }

    fn descend(&mut self, choose: impl Fn(&Page<'_>) -> usize) -> Result<()> {
        self.path.clear();
        let mut id = self.level.root;
        for _ in 0..self.level.height {
            let page = self.level.inner(id)?;
            let index = choose(&page);
            self.path.push((id, index));
            id = PageId::from_bits(page.value(index));
        }
        self.leaf = id;
        Ok(())
    }

    /// The current entry; `None` behind the last.
    pub(crate) fn current(&self) -> Result<Option<ValuePointer>> {
        if self.slot >= self.count {
            return Ok(None);
        }
        Ok(Some(ValuePointer::from_bits(self.page()?.value(self.slot))))
    }

    /// Up to `limit` entries from the current one on, within its leaf.
    pub(crate) fn ahead(&self, limit: usize) -> Result<impl Iterator<Item = ValuePointer> + '_> {
        let end = (self.slot + limit).min(self.count);
        let page = self.page()?;
        Ok((self.slot..end).map(move |slot| ValuePointer::from_bits(page.value(slot))))
    }

    /// Up to `limit` entries before the current one, nearest first, within its leaf.
    pub(crate) fn behind(&self, limit: usize) -> Result<impl Iterator<Item = ValuePointer> + '_> {
        let start = self.slot.saturating_sub(limit);
        let page = self.page()?;
        Ok((start..self.slot).rev().map(move |slot| ValuePointer::from_bits(page.value(slot))))
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        self.skip(1)
    }

    /// Skips entries within the leaf.
    pub(crate) fn skip(&mut self, entries: usize) -> Result<()> {
        self.slot += entries;
        if self.slot >= self.count {
            self.next_leaf()?;
        }
        Ok(())
    }

    /// Moves to the previous entry; returns false and stays at the first.
    pub(crate) fn previous(&mut self) -> Result<bool> {
        if self.slot == 0 && !self.previous_leaf()? {
            return Ok(false);
        }
        self.slot -= 1;
        Ok(true)
    }

    /// Moves to the start of the next leaf, or behind the last entry.
    fn next_leaf(&mut self) -> Result<()> {
        if self.step(|index, count| (index + 1 < count).then_some(index + 1), |_| 0)? {
            self.count = self.page()?.count();
            self.slot = 0;
        }
        Ok(())
    }

    /// Moves behind the last entry of the previous leaf; false if there is none.
    fn previous_leaf(&mut self) -> Result<bool> {
        let moved = self.step(|index, _| index.checked_sub(1), |page| page.count() - 1)?;
        if moved {
            self.count = self.page()?.count();
            self.slot = self.count;
        }
        Ok(moved)
    }

    /// Moves to another leaf: up until `sibling` finds a child, then down by `choose`.
    fn step(
        &mut self,
        sibling: impl Fn(usize, usize) -> Option<usize>,
        choose: impl Fn(&Page<'_>) -> usize,
    ) -> Result<bool> {
        let level = Arc::clone(&self.level);
        let mut depth = self.path.len();
        while depth > 0 {
            let (id, index) = self.path[depth - 1];
            let page = level.inner(id)?;
            if let Some(index) = sibling(index, page.count()) {
                self.path.truncate(depth);
                self.path[depth - 1].1 = index;
                let mut id = PageId::from_bits(page.value(index));
                while self.path.len() < level.height as usize {
                    let page = level.inner(id)?;
                    let index = choose(&page);
                    self.path.push((id, index));
                    id = PageId::from_bits(page.value(index));
                }
                self.leaf = id;
                return Ok(true);
            }
            depth -= 1;
        }
        Ok(false)
    }
}
