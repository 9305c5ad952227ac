//! A level: an immutable B+-tree over all keys merged into it.

mod build;
mod cursor;
pub(crate) mod file;
pub(crate) mod filter;
pub(crate) mod merge;
pub(crate) mod page;
mod partial_key;

use std::sync::Arc;

pub(crate) use cursor::Cursor;
use file::IndexFile;
use filter::Filter;
use page::{Page, PageId, PageKind};

use crate::error::{Error, Result};

/// A tree whose pages may lie in several files: leaves that a merge reuses stay where they are.
#[derive(Clone)]
pub(crate) struct Level {
    pub(crate) root: PageId,
    /// 0: the root is a leaf.
    pub(crate) height: u32,
    pub(crate) entries: u64,
    /// Newest first, with the number of pages that belong to this tree.
    pub(crate) files: Vec<(Arc<IndexFile>, u32)>,
    /// At the end of the newest file, if there is one.
    pub(crate) filter: Option<Filter>,
}

impl Level {
    #[inline]
    pub(crate) fn page(&self, id: PageId) -> Result<Page<'_>> {
        for (file, _) in &self.files {
            if file.id == id.file {
                return file.page(id.number);
            }
        }
        Err(self.dangling_page(id))
    }

    #[cold]
    fn dangling_page(&self, id: PageId) -> Error {
        let path = self.files.first().map(|(file, _)| file.path().to_owned()).unwrap_or_default();
        let what = format!("page {} of file {} is referenced but missing", id.number, id.file);
        Error::Damaged { path, offset: 0, what }
    }

    /// Whether a key with this hash may exist.
    #[inline]
    pub(crate) fn may_contain(&self, key_hash: u64) -> Result<bool> {
        match (self.filter, self.files.first()) {
            (Some(filter), Some((file, _))) => filter.may_contain(key_hash, |number| {
                self.page_of_kind(PageId { file: file.id, number }, PageKind::Filter)
            }),
            _ => Ok(true),
        }
    }

    /// The pages of the filter.
    pub(crate) fn filter_pages(&self) -> Option<impl Iterator<Item = Result<Page<'_>>>> {
        let (filter, (file, _)) = (self.filter?, self.files.first()?);
        let numbers = filter.first..filter.first + filter.pages;
        Some(
            numbers.map(|number| {
                self.page_of_kind(PageId { file: file.id, number }, PageKind::Filter)
            }),
        )
    }

    /// The leaf of a key with this hash; `None` if the filter excludes it.
    #[inline]
    pub(crate) fn leaf_of(&self, key: &[u8], key_hash: u64) -> Result<Option<Page<'_>>> {
        if !self.may_contain(key_hash)? {
            return Ok(None);
        }
        self.leaf(self.leaf_id_of(key)?).map(Some)
    }

    /// The page number of the leaf of a key.
    #[inline]
    pub(crate) fn leaf_id_of(&self, key: &[u8]) -> Result<PageId> {
        let mut id = self.root;
        for _ in 0..self.height {
            let page = self.inner(id)?;
            id = PageId::from_bits(page.value(page.child_of(key)));
        }
        Ok(id)
    }

    pub(crate) fn leaf(&self, id: PageId) -> Result<Page<'_>> {
        self.page_of_kind(id, PageKind::Leaf)
    }

    pub(crate) fn inner(&self, id: PageId) -> Result<Page<'_>> {
        self.page_of_kind(id, PageKind::Inner)
    }

    #[inline]
    fn page_of_kind(&self, id: PageId, kind: PageKind) -> Result<Page<'_>> {
        let page = self.page(id)?;
        if page.kind() != kind {
            return Err(self.dangling_page(id));
        }
        Ok(page)
    }

    /// All leaves in order, with their lower bounds.
    pub(crate) fn leaves(&self) -> Leaves<'_> {
        Leaves { level: self, stack: vec![(self.root, self.height, Vec::new())] }
    }
}

/// The leaves of a level in order.
pub(crate) struct Leaves<'a> {
    level: &'a Level,
    /// Pages to visit, the next one last: page, height, lower bound.
    stack: Vec<(PageId, u32, Vec<u8>)>,
}

impl Iterator for Leaves<'_> {
    type Item = Result<(PageId, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (id, height, bound) = self.stack.pop()?;
            if height == 0 {
                return Some(Ok((id, bound)));
            }
            match self.level.inner(id) {
                Err(error) => {
                    self.stack.clear();
                    return Some(Err(error));
                }
                Ok(page) => self.stack.extend((0..page.count()).rev().map(|index| {
                    (PageId::from_bits(page.value(index)), height - 1, page.bound(index))
                })),
            }
        }
    }
}
