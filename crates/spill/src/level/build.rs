//! Building the tree of a level from left to right: new leaves from entries, old leaves by
//! reference.

use std::cmp::Ordering;

use super::file::{IndexFile, IndexWriter};
use super::filter::{Filter, FilterBuilder};
use super::page::{MAX_ENTRIES, MAX_PREFIX_LEN, PAGE_SIZE, PageId, write_inner, write_leaf};
use super::partial_key::PartialKey;
use crate::bytes::common_prefix;
use crate::directory::Directory;
use crate::error::Result;
use crate::record::hash;
use crate::time_slice;
use crate::value_pointer::ValuePointer;

/// Reads the whole key of a record.
pub(crate) trait KeyReader {
    fn key(&self, pointer: ValuePointer) -> Result<Vec<u8>>;
    fn key_hash(&self, pointer: ValuePointer) -> Result<u64>;
}

/// An old leaf is kept only behind a page that is filled at least so far.
const MIN_LEAF_ENTRIES: usize = MAX_ENTRIES / 2;
/// So many entries wait for their leaf at most: what is left once one is written is enough to stand before
/// an old leaf. Otherwise one key more in a full leaf would move the entries of all full ones behind it.
const MAX_PENDING: usize = MAX_ENTRIES + MIN_LEAF_ENTRIES;

/// One in so many heads that is that of the entry before, and keys are looked up.
const TIE_DIVISOR: usize = 4;

pub(crate) struct TreeBuilder<'a, K> {
    directory: &'a Directory,
    file: u32,
    keys: &'a K,
    /// Made with the first page.
    writer: Option<IndexWriter>,
    pending: Vec<(PartialKey<'a>, ValuePointer)>,
    /// The last entry of the leaf before the pending ones, if that was built here.
    last_entry: Option<(Vec<u8>, usize, ValuePointer)>,
    /// The lower bound that the next new leaf gets.
    bound: Option<Vec<u8>>,
    /// Lower bounds and pages of each height above the leaves that wait for their page.
    above: Vec<Vec<(Vec<u8>, u64)>>,
    entries: u64,
    /// What all keys are added to that the tree gets.
    filter: Option<FilterBuilder>,
}

/// A tree that was built.
pub(crate) struct BuiltTree {
    pub(crate) root: PageId,
    pub(crate) height: u32,
    pub(crate) entries: u64,
    /// None: all is in one old leaf.
    pub(crate) file: Option<IndexFile>,
    pub(crate) filter: Option<Filter>,
}

impl<'a, K: KeyReader> TreeBuilder<'a, K> {
    /// `filter` has the keys of all leaves that will be kept.
    pub(crate) fn new(
        directory: &'a Directory,
        file: u32,
        keys: &'a K,
        filter: Option<FilterBuilder>,
    ) -> Self {
        TreeBuilder {
            directory,
            file,
            keys,
            writer: None,
            pending: Vec::with_capacity(MAX_PENDING),
            last_entry: None,
            bound: None,
            above: Vec::new(),
            entries: 0,
            filter,
        }
    }

    /// The next entry, of a key that the filter may not have yet.
    #[inline]
    pub(crate) fn push_new(&mut self, key: PartialKey<'a>, pointer: ValuePointer) -> Result<()> {
        if let Some(filter) = &mut self.filter {
            filter.add(match key {
                PartialKey::Whole(key) => hash(key),
                PartialKey::KeyPrefix { .. } => self.keys.key_hash(pointer)?,
            });
        }
        self.push(key, pointer)
    }

    /// Whether an old leaf can be kept here without leaving a thin one before it.
    pub(crate) fn can_reuse(&self) -> bool {
        self.pending.is_empty() || self.pending.len() >= MIN_LEAF_ENTRIES
    }

    /// Takes an old leaf as it is.
    pub(crate) fn reuse_leaf(&mut self, leaf: PageId, bound: &[u8], entries: usize) -> Result<()> {
        self.write_pending()?;
        self.last_entry = None;
        self.entries += entries as u64;
        self.add(0, bound.to_vec(), leaf)
    }

    /// What comes now is not below `bound`, and what came before is.
    pub(crate) fn set_lower_bound(&mut self, bound: &[u8]) {
        if self.pending.is_empty() && self.last_entry.is_none() {
            self.bound = Some(bound.to_vec());
        }
    }

    /// The next entry in the order of the keys.
    #[inline]
    pub(crate) fn push(&mut self, key: PartialKey<'a>, pointer: ValuePointer) -> Result<()> {
        self.pending.push((key, pointer));
        if self.pending.len() == MAX_PENDING {
            self.write_leaf_of(MAX_ENTRIES)?;
        }
        Ok(())
    }

    /// Writes the pending entries as a leaf, or as two.
    fn write_pending(&mut self) -> Result<()> {
        if self.pending.len() > MAX_ENTRIES {
            self.write_leaf_of(self.pending.len() / 2)?;
        }
        self.write_leaf_of(self.pending.len())
    }

    /// Writes so many of the pending entries as a leaf.
    fn write_leaf_of(&mut self, count: usize) -> Result<()> {
        let pending = &self.pending[..count];
        let keys = self.resolve_ties(pending);
        let whole: Vec<(PartialKey<'_>, ValuePointer)>;
        let pending = match &keys {
            None => pending,
            Some(keys) => {
                let keys = keys.iter().zip(pending);
                whole =
                    keys.map(|(key, &(_, pointer))| (PartialKey::Whole(key), pointer)).collect();
                whole.as_slice()
            }
        };
        let (Some(&(first, first_at)), Some(&(last_entry, last_at))) =
            (pending.first(), pending.last())
        else {
            return Ok(());
        };
        let bound = match (self.bound.take(), self.last_entry.take()) {
            (Some(bound), _) => bound,
            (None, None) => first.bytes(),
            (None, Some((bytes, known, pointer))) => {
                self.separator(&bytes, known, pointer, first, first_at)?
            }
        };
        let prefix_len = shared_len(pending).min(known_len(pending));
        let prefix = first.untrimmed();
        let prefix = &prefix[..prefix_len];
        let mut page = [0; PAGE_SIZE];
        let entries =
            pending.iter().map(|(key, pointer)| (key.head_at(prefix_len), pointer.bits()));
        let writer = writer(&mut self.writer, self.directory, self.file)?;
        let id = writer.next();
        write_leaf(id, prefix, entries, &mut page);
        writer.append(&page)?;
        self.last_entry = Some((last_entry.bytes(), last_entry.len(), last_at));
        self.entries += count as u64;
        self.pending.drain(..count);
        self.add(0, bound, id)
    }

    /// The keys of entries of a leaf, where their heads hardly tell them apart, and would begin later
    /// if more were known: old leaves, of a table that had few keys or a greater variety of them, take
    /// out less than all of these share.
    fn resolve_ties(&self, entries: &[(PartialKey<'_>, ValuePointer)]) -> Option<Vec<Vec<u8>>> {
        let (shared, known) = (shared_len(entries), known_len(entries));
        if shared <= known {
            return None;
        }
        let heads = entries.iter().map(|(key, _)| key.head_at(known));
        let ties = heads.clone().zip(heads.skip(1)).filter(|(one, next)| one == next).count();
        if ties * TIE_DIVISOR < entries.len() {
            return None;
        }
        let key = |&(known, pointer): &(PartialKey<'_>, ValuePointer)| {
            time_slice::yield_if_expired();
            match known {
                PartialKey::Whole(key) => Some(key.to_vec()),
                // What is damaged stays in its place.
                PartialKey::KeyPrefix { .. } => self
                    .keys
                    .key(pointer)
                    .ok()
                    .filter(|key| known.compare(&PartialKey::Whole(key)) == Ordering::Equal),
            }
        };
        let keys: Vec<Vec<u8>> = entries.iter().map(key).collect::<Option<_>>()?;
        keys.is_sorted_by(|one, next| one < next).then_some(keys)
    }

    /// A short key above one entry and not above the next.
    fn separator(
        &self,
        before: &[u8],
        before_known: usize,
        before_at: ValuePointer,
        next: PartialKey<'_>,
        next_at: ValuePointer,
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
        time_slice::yield_if_expired();
        if self.above.len() == height {
            self.above.push(Vec::new());
        }
        self.above[height].push((bound, page.bits()));
        if self.above[height].len() == MAX_ENTRIES {
            self.emit_inner(height)?;
        }
        Ok(())
    }

    fn emit_inner(&mut self, height: usize) -> Result<()> {
        let mut page = [0; PAGE_SIZE];
        let writer = writer(&mut self.writer, self.directory, self.file)?;
        let id = writer.next();
        let count = write_inner(id, &self.above[height], &mut page);
        writer.append(&page)?;
        let bound = self.above[height][0].0.clone();
        self.above[height].drain(..count);
        self.add(height + 1, bound, id)
    }

    /// Writes what waits; None: there was no entry at all.
    pub(crate) fn finish(mut self) -> Result<Option<BuiltTree>> {
        self.write_pending()?;
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
                return Ok(Some(BuiltTree { root, height, entries: self.entries, file, filter }));
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
fn shared_len(entries: &[(PartialKey<'_>, ValuePointer)]) -> usize {
    let (Some((first, _)), Some((last_entry, _))) = (entries.first(), entries.last()) else {
        return 0;
    };
    common_prefix(&first.untrimmed(), &last_entry.untrimmed()).min(MAX_PREFIX_LEN)
}

/// How many bytes are known of each, but the eight of its head.
fn known_len(entries: &[(PartialKey<'_>, ValuePointer)]) -> usize {
    entries.iter().map(|(key, _)| key.len() - 8).min().unwrap_or(0)
}

fn writer<'w>(
    writer: &'w mut Option<IndexWriter>,
    directory: &Directory,
    id: u32,
) -> Result<&'w mut IndexWriter> {
    match writer {
        Some(writer) => Ok(writer),
        None => Ok(writer.insert(IndexWriter::create(directory, id)?)),
    }
}
