//! Building the tree of a level from left to right: new leaves from entries, old leaves by
//! reference.

use std::cmp::Ordering;

use super::file::{IndexFile, IndexWriter};
use super::filter::{Filter, FilterBuilder};
use super::known::Known;
use super::page::{LONGEST_SKIP, PAGE, PageId, WIDTH, write_inner, write_leaf};
use crate::bytes::common_prefix;
use crate::error::Result;
use crate::folder::Folder;
use crate::position::Position;
use crate::record::hash;
use crate::stint;

/// Reads the whole key of a record.
pub(crate) trait Keys {
    fn key(&self, position: Position) -> Result<Vec<u8>>;
    fn key_hash(&self, position: Position) -> Result<u64>;
}

/// An old leaf is kept only behind a page that is filled at least so far.
const HALF: usize = WIDTH / 2;
/// So many entries wait for their leaf at most: what is left once one is written is enough to stand before
/// an old leaf. Otherwise one key more in a full leaf would move the entries of all full ones behind it.
const MOST_PENDING: usize = WIDTH + HALF;

/// One in so many heads that is that of the entry before, and keys are looked up.
const MANY_TIES: usize = 4;

pub(crate) struct TreeBuilder<'a, K> {
    folder: &'a Folder,
    file: u32,
    keys: &'a K,
    /// Made with the first page.
    writer: Option<IndexWriter>,
    pending: Vec<(Known<'a>, Position)>,
    /// The last entry of the leaf before the pending ones, if that was built here.
    last: Option<(Vec<u8>, usize, Position)>,
    /// The lower bound that the next new leaf gets.
    bound: Option<Vec<u8>>,
    /// Lower bounds and pages of each height above the leaves that wait for their page.
    above: Vec<Vec<(Vec<u8>, u64)>>,
    entries: u64,
    /// What all keys are added to that the tree gets.
    filter: Option<FilterBuilder>,
}

/// A tree that was built.
pub(crate) struct Built {
    pub(crate) root: PageId,
    pub(crate) height: u32,
    pub(crate) entries: u64,
    /// None: all is in one old leaf.
    pub(crate) file: Option<IndexFile>,
    pub(crate) filter: Option<Filter>,
}

impl<'a, K: Keys> TreeBuilder<'a, K> {
    /// `filter` has the keys of all leaves that will be kept.
    pub(crate) fn new(
        folder: &'a Folder,
        file: u32,
        keys: &'a K,
        filter: Option<FilterBuilder>,
    ) -> Self {
        TreeBuilder {
            folder,
            file,
            keys,
            writer: None,
            pending: Vec::with_capacity(MOST_PENDING),
            last: None,
            bound: None,
            above: Vec::new(),
            entries: 0,
            filter,
        }
    }

    /// The next entry, of a key that the filter may not have yet.
    #[inline]
    pub(crate) fn push_new(&mut self, key: Known<'a>, position: Position) -> Result<()> {
        if let Some(filter) = &mut self.filter {
            filter.add(match key {
                Known::Whole(key) => hash(key),
                Known::Begin { .. } => self.keys.key_hash(position)?,
            });
        }
        self.push(key, position)
    }

    /// Whether an old leaf can be kept here without leaving a thin one before it.
    pub(crate) fn may_keep(&self) -> bool {
        self.pending.is_empty() || self.pending.len() >= HALF
    }

    /// Takes an old leaf as it is.
    pub(crate) fn keep(&mut self, leaf: PageId, bound: &[u8], entries: usize) -> Result<()> {
        self.emit()?;
        self.last = None;
        self.entries += entries as u64;
        self.add(0, bound.to_vec(), leaf)
    }

    /// What comes now is not below `bound`, and what came before is.
    pub(crate) fn at_bound(&mut self, bound: &[u8]) {
        if self.pending.is_empty() && self.last.is_none() {
            self.bound = Some(bound.to_vec());
        }
    }

    /// The next entry in the order of the keys.
    #[inline]
    pub(crate) fn push(&mut self, key: Known<'a>, position: Position) -> Result<()> {
        self.pending.push((key, position));
        if self.pending.len() == MOST_PENDING {
            self.emit_first(WIDTH)?;
        }
        Ok(())
    }

    /// Writes the pending entries as a leaf, or as two.
    fn emit(&mut self) -> Result<()> {
        if self.pending.len() > WIDTH {
            self.emit_first(self.pending.len() / 2)?;
        }
        self.emit_first(self.pending.len())
    }

    /// Writes so many of the pending entries as a leaf.
    fn emit_first(&mut self, count: usize) -> Result<()> {
        let pending = &self.pending[..count];
        let keys = self.keys_of_ties(pending);
        let whole: Vec<(Known<'_>, Position)>;
        let pending = match &keys {
            None => pending,
            Some(keys) => {
                let keys = keys.iter().zip(pending);
                whole = keys.map(|(key, &(_, position))| (Known::Whole(key), position)).collect();
                whole.as_slice()
            }
        };
        let (Some(&(first, first_at)), Some(&(last, last_at))) = (pending.first(), pending.last())
        else {
            return Ok(());
        };
        let bound = match (self.bound.take(), self.last.take()) {
            (Some(bound), _) => bound,
            (None, None) => first.bytes(),
            (None, Some((bytes, known, position))) => {
                self.between(&bytes, known, position, first, first_at)?
            }
        };
        let skip = shared(pending).min(known(pending));
        let prefix = first.untrimmed();
        let prefix = &prefix[..skip];
        let mut page = [0; PAGE];
        let entries = pending.iter().map(|(key, position)| (key.head_at(skip), position.bits()));
        let writer = writer(&mut self.writer, self.folder, self.file)?;
        let id = writer.next();
        write_leaf(id, prefix, entries, &mut page);
        writer.append(&page)?;
        self.last = Some((last.bytes(), last.len(), last_at));
        self.entries += count as u64;
        self.pending.drain(..count);
        self.add(0, bound, id)
    }

    /// The keys of entries of a leaf, where their heads hardly tell them apart, and would begin later
    /// if more were known: old leaves, of a table that had few keys or a greater variety of them, take
    /// out less than all of these share.
    fn keys_of_ties(&self, entries: &[(Known<'_>, Position)]) -> Option<Vec<Vec<u8>>> {
        let (shared, known) = (shared(entries), known(entries));
        if shared <= known {
            return None;
        }
        let heads = entries.iter().map(|(key, _)| key.head_at(known));
        let ties = heads.clone().zip(heads.skip(1)).filter(|(one, next)| one == next).count();
        if ties * MANY_TIES < entries.len() {
            return None;
        }
        let key = |&(known, position): &(Known<'_>, Position)| {
            stint::end_if_over();
            match known {
                Known::Whole(key) => Some(key.to_vec()),
                // What is damaged stays in its place.
                Known::Begin { .. } => self
                    .keys
                    .key(position)
                    .ok()
                    .filter(|key| known.compare(&Known::Whole(key)) == Ordering::Equal),
            }
        };
        let keys: Vec<Vec<u8>> = entries.iter().map(key).collect::<Option<_>>()?;
        keys.is_sorted_by(|one, next| one < next).then_some(keys)
    }

    /// A short key above one entry and not above the next.
    fn between(
        &self,
        before: &[u8],
        before_known: usize,
        before_at: Position,
        next: Known<'_>,
        next_at: Position,
    ) -> Result<Vec<u8>> {
        let known = before_known.min(next.len());
        let bytes = next.bytes();
        let shared = common_prefix(before, &bytes);
        // Where `before` ends it may go on with zeros, so a zero is not above it for certain.
        if shared < known && bytes.get(shared).is_some_and(|&byte| byte != 0) {
            return Ok(bytes[..=shared].to_vec());
        }
        // What is known of them does not tell them apart.
        let before = self.keys.key(before_at)?;
        let next = self.keys.key(next_at)?;
        let shared = common_prefix(&before, &next);
        Ok(next[..(shared + 1).min(next.len())].to_vec())
    }

    /// Enters a page into the inner page above it.
    fn add(&mut self, height: usize, bound: Vec<u8>, page: PageId) -> Result<()> {
        stint::end_if_over();
        if self.above.len() == height {
            self.above.push(Vec::new());
        }
        self.above[height].push((bound, page.bits()));
        if self.above[height].len() == WIDTH {
            self.emit_inner(height)?;
        }
        Ok(())
    }

    fn emit_inner(&mut self, height: usize) -> Result<()> {
        let mut page = [0; PAGE];
        let writer = writer(&mut self.writer, self.folder, self.file)?;
        let id = writer.next();
        let count = write_inner(id, &self.above[height], &mut page);
        writer.append(&page)?;
        let bound = self.above[height][0].0.clone();
        self.above[height].drain(..count);
        self.add(height + 1, bound, id)
    }

    /// Writes what waits; None: there was no entry at all.
    pub(crate) fn finish(mut self) -> Result<Option<Built>> {
        self.emit()?;
        let mut height = 0;
        while height < self.above.len() {
            let is_top = height + 1 == self.above.len();
            if is_top && let [(_, root)] = self.above[height][..] {
                let filter = match (&mut self.writer, self.filter) {
                    (Some(writer), Some(filter)) => Some(filter.write(writer)?),
                    _ => None,
                };
                let file = self.writer.map(IndexWriter::finish).transpose()?;
                let (root, height) = (PageId::from_bits(root), height as u32);
                return Ok(Some(Built { root, height, entries: self.entries, file, filter }));
            }
            while !self.above[height].is_empty() {
                self.emit_inner(height)?;
            }
            height += 1;
        }
        Ok(None)
    }
}

/// How many bytes all of these share, in the order of their keys, as far as the first and the last are
/// known, and a page takes out at most.
fn shared(entries: &[(Known<'_>, Position)]) -> usize {
    let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else { return 0 };
    common_prefix(&first.untrimmed(), &last.untrimmed()).min(LONGEST_SKIP)
}

/// How many bytes are known of each, but the eight of its head.
fn known(entries: &[(Known<'_>, Position)]) -> usize {
    entries.iter().map(|(key, _)| key.len() - 8).min().unwrap_or(0)
}

fn writer<'w>(
    writer: &'w mut Option<IndexWriter>,
    folder: &Folder,
    id: u32,
) -> Result<&'w mut IndexWriter> {
    match writer {
        Some(writer) => Ok(writer),
        None => Ok(writer.insert(IndexWriter::create(folder, id)?)),
    }
}
