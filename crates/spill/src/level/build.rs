//! Builds the tree of a level from left to right: new leaves from entries, old leaves by reference.

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

/// Reads whole keys from the log.
pub(crate) trait KeyReader {
    fn key(&self, pointer: ValuePointer) -> Result<Vec<u8>>;
    fn key_hash(&self, pointer: ValuePointer) -> Result<u64>;
}

/// Minimum entries of a new leaf in front of a reused one.
const MIN_LEAF_ENTRIES: usize = MAX_ENTRIES / 2;
/// Entries that wait for their leaf at most. After a full leaf is written, enough are left for a
/// leaf in front of a reused one; otherwise one new key would shift the entries of all full leaves
/// behind it.
const MAX_PENDING: usize = MAX_ENTRIES + MIN_LEAF_ENTRIES;

/// Keys are looked up in the log once this share of heads (one in four) equals their predecessors.
const TIE_DIVISOR: usize = 4;

pub(crate) struct TreeBuilder<'a, K> {
    directory: &'a Directory,
    file: u32,
    keys: &'a K,
    /// Created with the first page.
    writer: Option<IndexWriter>,
    pending: Vec<(PartialKey<'a>, ValuePointer)>,
    /// The last entry of the previous leaf, if that was built here.
    last_entry: Option<(Vec<u8>, usize, ValuePointer)>,
    /// Lower bound for the next new leaf.
    bound: Option<Vec<u8>>,
    /// By height above the leaves: bounds and pages that wait for their inner page.
    above: Vec<Vec<(Vec<u8>, u64)>>,
    entries: u64,
    /// Filter that receives all keys of the tree.
    filter: Option<FilterBuilder>,
}

/// A finished tree.
pub(crate) struct BuiltTree {
    pub(crate) root: PageId,
    pub(crate) height: u32,
    pub(crate) entries: u64,
    /// `None`: a single old leaf holds everything.
    pub(crate) file: Option<IndexFile>,
    pub(crate) filter: Option<Filter>,
}

impl<'a, K: KeyReader> TreeBuilder<'a, K> {
    /// `filter` contains the keys of all leaves that may be reused.
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

    /// Adds the next entry, whose key may be missing in the filter.
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

    /// Whether an old leaf can be reused here without leaving a thin leaf before it.
    pub(crate) fn can_reuse(&self) -> bool {
        self.pending.is_empty() || self.pending.len() >= MIN_LEAF_ENTRIES
    }

    /// Takes an old leaf by reference.
    pub(crate) fn reuse_leaf(&mut self, leaf: PageId, bound: &[u8], entries: usize) -> Result<()> {
        self.write_pending()?;
        self.last_entry = None;
        self.entries += entries as u64;
        self.add(0, bound.to_vec(), leaf)
    }

    /// All that follows is at or above `bound`, and all before is below.
    pub(crate) fn set_lower_bound(&mut self, bound: &[u8]) {
        if self.pending.is_empty() && self.last_entry.is_none() {
            self.bound = Some(bound.to_vec());
        }
    }

    /// Adds the next entry in key order.
    #[inline]
    pub(crate) fn push(&mut self, key: PartialKey<'a>, pointer: ValuePointer) -> Result<()> {
        self.pending.push((key, pointer));
        if self.pending.len() == MAX_PENDING {
            self.write_leaf_of(MAX_ENTRIES)?;
        }
        Ok(())
    }

    /// Writes the pending entries as one leaf or two.
    fn write_pending(&mut self) -> Result<()> {
        if self.pending.len() > MAX_ENTRIES {
            self.write_leaf_of(self.pending.len() / 2)?;
        }
        self.write_leaf_of(self.pending.len())
    }

    /// Writes the first pending entries as a leaf.
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

    /// Reads the keys of a leaf's entries where many heads tie and longer prefixes would separate
    /// them. Old leaves of a table with few or diverse keys share shorter prefixes than these
    /// entries do.
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
                // Damaged entries stay where they are.
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
        // Beyond its known bytes `before` may continue with zeros, so a zero does not separate
        // them.
        if shared < known && bytes.get(shared).is_some_and(|&byte| byte != 0) {
            return Ok(bytes[..=shared].to_vec());
        }
        // The known bytes do not separate them.
        let before = self.keys.key(before_at)?;
        let next = self.keys.key(next_at)?;
        let shared = common_prefix(&before, &next);
        Ok(next[..(shared + 1).min(next.len())].to_vec())
    }

    /// Adds a page to the inner page above it.
    fn add(&mut self, height: usize, bound: Vec<u8>, page: PageId) -> Result<()> {
        time_slice::yield_if_expired();
        if self.above.len() == height {
            self.above.push(Vec::new());
        }
        self.above[height].push((bound, page.bits()));
        if self.above[height].len() == MAX_ENTRIES {
            self.write_inner_page(height)?;
        }
        Ok(())
    }

    fn write_inner_page(&mut self, height: usize) -> Result<()> {
        let mut page = [0; PAGE_SIZE];
        let writer = writer(&mut self.writer, self.directory, self.file)?;
        let id = writer.next();
        let count = write_inner(id, &self.above[height], &mut page);
        writer.append(&page)?;
        let bound = self.above[height][0].0.clone();
        self.above[height].drain(..count);
        self.add(height + 1, bound, id)
    }

    /// Writes what is pending; `None` if there was no entry.
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
                self.write_inner_page(height)?;
            }
            height += 1;
        }
        Ok(None)
    }
}

/// Bytes that all entries share, as far as the first and the last are known and a page can strip.
fn shared_len(entries: &[(PartialKey<'_>, ValuePointer)]) -> usize {
    let (Some((first, _)), Some((last_entry, _))) = (entries.first(), entries.last()) else {
        return 0;
    };
    common_prefix(&first.untrimmed(), &last_entry.untrimmed()).min(MAX_PREFIX_LEN)
}

/// Known bytes of every entry, without the eight of its head.
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
