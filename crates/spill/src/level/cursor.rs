//! Walking through the leaves of a level in either direction.

use std::sync::Arc;

use super::Level;
use super::page::{Page, PageId};
use crate::error::Result;
use crate::value_pointer::ValuePointer;

/// A place between the entries of a level. It knows positions only: what the keys are the log
/// says.
pub(crate) struct Cursor {
    level: Arc<Level>,
    /// The inner pages from the root on, and which child was taken of each.
    path: Vec<(PageId, usize)>,
    leaf: PageId,
    /// The entry where it stands; `count` of the leaf: behind the last.
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

    /// To the first entry whose key may be `key` or above: those before are below it. The second
    /// answer is how many from there on may still be below it.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<usize> {
        let level = Arc::clone(&self.level);
        self.descend(|page| page.child_of(key))?;
        let page = level.leaf(self.leaf)?;
        let ties = page.ties(key);
        self.count = page.count();
        self.slot = ties.start;
        let unsure = ties.len();
        if self.slot == self.count {
            self.next_leaf()?;
        }
        Ok(unsure)
    }

    /// Behind the last entry of all.
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

    /// The entry where it stands; None behind the last.
    pub(crate) fn current(&self) -> Result<Option<ValuePointer>> {
        if self.slot >= self.count {
            return Ok(None);
        }
        Ok(Some(ValuePointer::from_bits(self.page()?.value(self.slot))))
    }

    /// The positions of up to `limit` entries from where it stands, within its leaf.
    pub(crate) fn ahead(&self, limit: usize) -> Result<impl Iterator<Item = ValuePointer> + '_> {
        let end = (self.slot + limit).min(self.count);
        let page = self.page()?;
        Ok((self.slot..end).map(move |slot| ValuePointer::from_bits(page.value(slot))))
    }

    /// The positions of up to `limit` entries before where it stands, the nearest first.
    pub(crate) fn behind(&self, limit: usize) -> Result<impl Iterator<Item = ValuePointer> + '_> {
        let start = self.slot.saturating_sub(limit);
        let page = self.page()?;
        Ok((start..self.slot).rev().map(move |slot| ValuePointer::from_bits(page.value(slot))))
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        self.skip(1)
    }

    /// Over so many entries, which lie within its leaf.
    pub(crate) fn skip(&mut self, entries: usize) -> Result<()> {
        self.slot += entries;
        if self.slot >= self.count {
            self.next_leaf()?;
        }
        Ok(())
    }

    /// To the entry before; false at the first of all, where it stays.
    pub(crate) fn previous(&mut self) -> Result<bool> {
        if self.slot == 0 && !self.previous_leaf()? {
            return Ok(false);
        }
        self.slot -= 1;
        Ok(true)
    }

    /// To the begin of the next leaf; behind the last entry if there is none.
    fn next_leaf(&mut self) -> Result<()> {
        if self.step(|index, count| (index + 1 < count).then_some(index + 1), |_| 0)? {
            self.count = self.page()?.count();
            self.slot = 0;
        }
        Ok(())
    }

    /// Behind the last entry of the leaf before; false if there is none.
    fn previous_leaf(&mut self) -> Result<bool> {
        let moved = self.step(|index, _| index.checked_sub(1), |page| page.count() - 1)?;
        if moved {
            self.count = self.page()?.count();
            self.slot = self.count;
        }
        Ok(moved)
    }

    /// To another leaf: up as far as `sibling` finds no other child, then down by `choose`.
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
