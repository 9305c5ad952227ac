//! An index page of 4 KiB with a checksum: a leaf (keys and pointers to their records), an inner
//! page (lower bounds and child pages), or a filter page (`filter.rs`), which shares only checksum
//! and kind.
//!
//! ```text
//! 0     checksum u32, kind u8 (1 leaf, 2 inner, 3 filter), 0 u8, count u16, prefix_len u16,
//!       tails u16, heap u16, 0 u16
//! 16    samples: the first head of block 1, 2, ... 14
//! 128   blocks of 16 heads (u64 each) and their 16 values (u64 each)
//! 3968  the prefix: the first `prefix_len` bytes, which all keys of the page share
//! ```
//! A head is the eight bytes of a key after the prefix, as a big-endian number. A bound that its head
//! does not represent exactly has its rest (tail) in a heap that grows down from 3968: index u16,
//! length u16, bytes. Numbers are little-endian.

use std::cmp::Ordering;

use xxhash_rust::xxh3::xxh3_64;

use crate::bytes::head_at;
use crate::prefetch;
use crate::value_pointer::{Tag, ValuePointer};

pub(crate) const PAGE_SIZE: usize = 4096;
/// The most entries of a page.
pub(crate) const MAX_ENTRIES: usize = 240;
const BLOCK_ENTRIES: usize = 16;
const SAMPLES_AT: usize = 16;
const BLOCKS_AT: usize = 128;
const PREFIX_AT: usize = 3968;
/// The longest common prefix that a page strips.
pub(crate) const MAX_PREFIX_LEN: usize = PAGE_SIZE - PREFIX_AT;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    Leaf,
    Inner,
    Filter,
}

impl PageKind {
    pub(crate) fn byte(self) -> u8 {
        match self {
            PageKind::Leaf => 1,
            PageKind::Inner => 2,
            PageKind::Filter => 3,
        }
    }
}

/// A page in memory.
#[derive(Clone, Copy)]
pub(crate) struct Page<'a>(&'a [u8; PAGE_SIZE]);

/// Number of a page and its file; part of its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageId {
    pub(crate) file: u32,
    pub(crate) number: u32,
}

impl PageId {
    pub(crate) fn bits(self) -> u64 {
        u64::from(self.file) << 32 | u64::from(self.number)
    }

    pub(crate) fn from_bits(bits: u64) -> PageId {
        PageId { file: (bits >> 32) as u32, number: bits as u32 }
    }
}

impl<'a> Page<'a> {
    /// Wraps bytes without a check; see [`Page::defect`].
    #[inline]
    pub(crate) fn new(bytes: &'a [u8; PAGE_SIZE]) -> Page<'a> {
        Page(bytes)
    }

    /// What is wrong with the page, if anything.
    pub(crate) fn defect(&self, id: PageId, store: u64) -> Option<&'static str> {
        if self.0[..4] != (checksum(self.0, id) ^ store_salt(store)).to_le_bytes() {
            return Some("the checksum of the page is wrong");
        }
        if self.0[4] == PageKind::Filter.byte() {
            return None;
        }
        if !matches!(self.0[4], 1 | 2)
            || self.count() == 0
            || self.count() > MAX_ENTRIES
            || self.prefix_len() > MAX_PREFIX_LEN
        {
            return Some("the page header is invalid");
        }
        let mut at = self.u16_at(12);
        for _ in 0..self.u16_at(10) {
            if at + 4 > PREFIX_AT || at + 4 + self.u16_at(at + 2) > PREFIX_AT {
                return Some("a bound of the page lies outside of it");
            }
            at += 4 + self.u16_at(at + 2);
        }
        None
    }

    pub(crate) fn kind(&self) -> PageKind {
        match self.0[4] {
            1 => PageKind::Leaf,
            2 => PageKind::Inner,
            _ => PageKind::Filter,
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8; PAGE_SIZE] {
        self.0
    }

    #[inline]
    fn u16_at(&self, at: usize) -> usize {
        usize::from(u16::from_le_bytes([self.0[at], self.0[at + 1]]))
    }

    #[inline]
    fn u64_at(&self, at: usize) -> u64 {
        match self.0[at..].first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => 0,
        }
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.u16_at(6)
    }

    #[inline]
    pub(crate) fn prefix_len(&self) -> usize {
        self.u16_at(8)
    }

    #[inline]
    pub(crate) fn prefix(&self) -> &'a [u8] {
        &self.0[PREFIX_AT..(PREFIX_AT + self.prefix_len()).min(PAGE_SIZE)]
    }

    #[inline]
    pub(crate) fn head(&self, index: usize) -> u64 {
        self.u64_at(BLOCKS_AT + index / BLOCK_ENTRIES * 256 + index % BLOCK_ENTRIES * 8)
    }

    /// The value pointer, or the child page.
    #[inline]
    pub(crate) fn value(&self, index: usize) -> u64 {
        self.u64_at(BLOCKS_AT + index / BLOCK_ENTRIES * 256 + 128 + index % BLOCK_ENTRIES * 8)
    }

    /// Number of heads below `head`.
    #[inline]
    pub(crate) fn lower_bound(&self, head: u64) -> usize {
        // Missing samples and heads hold the maximum, so loops of fixed length compare all of them
        // with a few vector instructions.
        let block = count_below(&self.0[SAMPLES_AT..BLOCKS_AT], head);
        let at = BLOCKS_AT + block * 256;
        let within = count_below(&self.0[at..at + BLOCK_ENTRIES * 8], head);
        (block * BLOCK_ENTRIES + within).min(self.count())
    }

    /// Compares a key with the page's prefix.
    #[inline]
    pub(crate) fn compare_prefix(&self, key: &[u8]) -> Ordering {
        let prefix_len = self.prefix_len();
        if key.len() >= prefix_len {
            key[..prefix_len].cmp(self.prefix())
        } else if self.prefix().starts_with(key) {
            // The rest of the key counts as zeros: no key of the page is below it.
            Ordering::Less
        } else {
            key.cmp(self.prefix())
        }
    }

    /// The entries with the head of this key; an empty range at their place if there are none.
    #[inline]
    pub(crate) fn ties(&self, key: &[u8]) -> std::ops::Range<usize> {
        let count = self.count();
        match self.compare_prefix(key) {
            Ordering::Less => 0..0,
            Ordering::Greater => count..count,
            Ordering::Equal => {
                let head = head_at(key, self.prefix_len());
                let from = self.lower_bound(head);
                let mut to = from;
                while to < count && self.head(to) == head {
                    to += 1;
                }
                from..to
            }
        }
    }

    /// The entry that is probably this key's, if there is one.
    pub(crate) fn find_likely(&self, key: &[u8], tag: Tag) -> Option<ValuePointer> {
        let mut pointers = self.ties(key).map(|slot| ValuePointer::from_bits(self.value(slot)));
        pointers.find(|pointer| pointer.may_match(tag))
    }

    /// The child of an inner page that a key belongs to.
    #[inline]
    pub(crate) fn child_of(&self, key: &[u8]) -> usize {
        let ties = self.ties(key);
        if ties.is_empty() {
            // The usual case: heads decide, and no tail is read.
            return ties.end.saturating_sub(1);
        }
        let rest = key.get(self.prefix_len()..).unwrap_or_default();
        let is_above = |&(index, tail): &(usize, &[u8])| ties.contains(&index) && tail > rest;
        ties.end.saturating_sub(self.tails().filter(is_above).count() + 1)
    }

    /// The rest of those bounds that their heads do not represent exactly, with their indexes.
    fn tails(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        let page = *self;
        let mut at = self.u16_at(12);
        (0..self.u16_at(10)).map_while(move |_| {
            let len = page.u16_at(at + 2);
            let tail = (page.u16_at(at), page.0.get(at + 4..at + 4 + len)?);
            at += 4 + len;
            Some(tail)
        })
    }

    /// The rest of a bound behind the prefix, if its head is not exact.
    fn tail(&self, index: usize) -> Option<&'a [u8]> {
        self.tails().find(|&(of, _)| of == index).map(|(_, tail)| tail)
    }

    /// The lower bound of child `index` of an inner page.
    pub(crate) fn bound(&self, index: usize) -> Vec<u8> {
        let mut bound = self.prefix().to_vec();
        match self.tail(index) {
            Some(tail) => bound.extend_from_slice(tail),
            None => {
                bound.extend_from_slice(&self.head(index).to_be_bytes());
                trim(&mut bound);
            }
        }
        bound
    }

    /// Prefetches what a search touches first.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch::lines(self.0.as_ptr(), BLOCKS_AT / 64);
        prefetch::lines(self.0[PREFIX_AT..].as_ptr(), 1);
    }

    /// Prefetches the block that a search for a key touches.
    #[inline]
    pub(crate) fn prefetch_block(&self, key: &[u8]) {
        if self.compare_prefix(key) == Ordering::Equal {
            let block =
                count_below(&self.0[SAMPLES_AT..BLOCKS_AT], head_at(key, self.prefix_len()));
            prefetch::lines(self.0[BLOCKS_AT + block * 256..].as_ptr(), 4);
        }
    }
}

fn trim(bytes: &mut Vec<u8>) {
    let zeros = bytes.iter().rev().take_while(|&&byte| byte == 0).count();
    bytes.truncate(bytes.len() - zeros);
}

/// Number of words below `head`.
#[inline(always)]
fn count_below(words: &[u8], head: u64) -> usize {
    let below = |word: &[u8; 8]| u64::from(u64::from_le_bytes(*word) < head);
    words.as_chunks().0.iter().map(below).sum::<u64>() as usize
}

fn checksum(page: &[u8; PAGE_SIZE], id: PageId) -> u32 {
    let salt = id.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (xxh3_64(&page[4..]) ^ salt ^ salt >> 32) as u32
}

/// The store's share in the checksum of its pages.
fn store_salt(store: u64) -> u32 {
    (store ^ store >> 32) as u32
}

/// Binds a page with a checksum to its store.
pub(super) fn xor_store_salt(store: u64, page: &mut [u8]) {
    for (byte, with) in page.iter_mut().zip(store_salt(store).to_le_bytes()) {
        *byte ^= with;
    }
}

/// Writes a leaf: prefix, then heads and values in order, 1 to [`MAX_ENTRIES`] of them.
pub(crate) fn write_leaf(
    id: PageId,
    prefix: &[u8],
    entries: impl Iterator<Item = (u64, u64)>,
    into: &mut [u8; PAGE_SIZE],
) {
    write(PageKind::Leaf, id, prefix, entries, &[], into);
}

/// Writes an inner page with as many of the entries as fit; returns how many.
pub(crate) fn write_inner(
    id: PageId,
    entries: &[(Vec<u8>, u64)],
    into: &mut [u8; PAGE_SIZE],
) -> usize {
    let mut count = entries.len().min(MAX_ENTRIES);
    loop {
        let entries = &entries[..count];
        let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else {
            return 0;
        };
        let prefix_len = crate::bytes::common_prefix(first, last).min(MAX_PREFIX_LEN);
        let tails: Vec<(usize, &[u8])> = entries
            .iter()
            .enumerate()
            .filter(|(_, (bound, _))| bound.len() > prefix_len + 8 || bound.last() == Some(&0))
            .map(|(index, (bound, _))| (index, &bound[prefix_len.min(bound.len())..]))
            .collect();
        let heap: usize = tails.iter().map(|(_, tail)| 4 + tail.len()).sum();
        if BLOCKS_AT + count.div_ceil(BLOCK_ENTRIES) * 256 + heap > PREFIX_AT && count > 2 {
            count = (count / 2).max(2);
            continue;
        }
        let pairs = entries.iter().map(|(bound, page)| (head_at(bound, prefix_len), *page));
        write(PageKind::Inner, id, &first[..prefix_len], pairs, &tails, into);
        return count;
    }
}

fn write(
    kind: PageKind,
    id: PageId,
    prefix: &[u8],
    entries: impl Iterator<Item = (u64, u64)>,
    tails: &[(usize, &[u8])],
    into: &mut [u8; PAGE_SIZE],
) {
    into.fill(0);
    into[SAMPLES_AT..BLOCKS_AT].fill(0xff);
    let mut count = 0;
    for (index, (head, value)) in entries.enumerate() {
        let at = BLOCKS_AT + index / BLOCK_ENTRIES * 256 + index % BLOCK_ENTRIES * 8;
        into[at..at + 8].copy_from_slice(&head.to_le_bytes());
        into[at + 128..at + 136].copy_from_slice(&value.to_le_bytes());
        if index % BLOCK_ENTRIES == 0 && index > 0 {
            let at = SAMPLES_AT + (index / BLOCK_ENTRIES - 1) * 8;
            into[at..at + 8].copy_from_slice(&head.to_le_bytes());
        }
        count = index + 1;
    }
    for index in count..count.next_multiple_of(BLOCK_ENTRIES) {
        let at = BLOCKS_AT + index / BLOCK_ENTRIES * 256 + index % BLOCK_ENTRIES * 8;
        into[at..at + 8].fill(0xff);
    }
    into[PREFIX_AT..PREFIX_AT + prefix.len()].copy_from_slice(prefix);
    let mut heap = PREFIX_AT - tails.iter().map(|(_, tail)| 4 + tail.len()).sum::<usize>();
    into[12..14].copy_from_slice(&(heap as u16).to_le_bytes());
    for (index, tail) in tails {
        into[heap..heap + 2].copy_from_slice(&(*index as u16).to_le_bytes());
        into[heap + 2..heap + 4].copy_from_slice(&(tail.len() as u16).to_le_bytes());
        into[heap + 4..heap + 4 + tail.len()].copy_from_slice(tail);
        heap += 4 + tail.len();
    }
    into[4] = kind.byte();
    into[6..8].copy_from_slice(&(count as u16).to_le_bytes());
    into[8..10].copy_from_slice(&(prefix.len() as u16).to_le_bytes());
    into[10..12].copy_from_slice(&(tails.len() as u16).to_le_bytes());
    write_checksum(into, id);
}

/// Computes and stores the checksum of a page.
pub(crate) fn write_checksum(page: &mut [u8; PAGE_SIZE], id: PageId) {
    let checksum = checksum(page, id);
    page[..4].copy_from_slice(&checksum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: PageId = PageId { file: 3, number: 9 };

    fn bounds() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let key = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..12),
            prop::collection::vec(prop_oneof![Just(0_u8), Just(1)], 0..30),
            "same start [a-c]{1,30}".prop_map(String::into_bytes),
        ];
        prop::collection::btree_set(key, 2..200).prop_map(|keys| keys.into_iter().collect())
    }

    proptest! {
        #[test]
        fn inner_pages_route_by_their_bounds(bounds in bounds(), keys in bounds()) {
            let entries: Vec<(Vec<u8>, u64)> = bounds.iter().cloned().zip(100..).collect();
            let mut bytes = [0; PAGE_SIZE];
            let count = write_inner(ID, &entries, &mut bytes);
            prop_assert!(count >= 2);
            let page = Page::new(&bytes);
            prop_assert_eq!(page.defect(ID, 0), None);
            for (index, bound) in bounds[..count].iter().enumerate() {
                prop_assert_eq!(&page.bound(index), bound);
                prop_assert_eq!(page.value(index), 100 + index as u64);
            }
            for key in keys.iter().chain(&bounds) {
                let right = bounds[..count].partition_point(|bound| bound <= key);
                prop_assert_eq!(page.child_of(key), right.saturating_sub(1));
            }
        }

        #[test]
        fn leaf_ties_contain_every_key_with_that_head(keys in bounds()) {
            let shared = crate::bytes::common_prefix(&keys[0], &keys[keys.len() - 1]);
            let prefix = &keys[0][..shared];
            let heads = keys.iter().map(|key| head_at(key, shared));
            let mut bytes = [0; PAGE_SIZE];
            write_leaf(ID, prefix, heads.clone().zip(0..), &mut bytes);
            let page = Page::new(&bytes);
            prop_assert_eq!(page.defect(ID, 0), None);
            for (index, (key, head)) in keys.iter().zip(heads).enumerate() {
                let ties = page.ties(key);
                prop_assert!(ties.contains(&index));
                prop_assert!(ties.clone().all(|tie| page.head(tie) == head));
                prop_assert!(ties.start == 0 || page.head(ties.start - 1) < head);
            }
        }
    }

    #[test]
    fn changed_or_moved_page_is_detected() {
        let mut bytes = [0; PAGE_SIZE];
        write_leaf(ID, b"user", (0..240).map(|entry| (entry * 7, entry)), &mut bytes);
        assert_eq!(Page::new(&bytes).defect(ID, 0), None);
        assert!(Page::new(&bytes).defect(PageId { file: 3, number: 8 }, 0).is_some());
        assert!(Page::new(&bytes).defect(ID, 1).is_some());
        for bit in (0..PAGE_SIZE * 8).step_by(61) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Page::new(&bytes).defect(ID, 0).is_some(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn lower_bound_counts_smaller_heads() {
        for count in [1, 15, 16, 17, 100, 239, 240] {
            let mut bytes = [0; PAGE_SIZE];
            let entries = (0..count as u64).map(|entry| (entry / 3 * 10, entry));
            write_leaf(ID, b"", entries.clone(), &mut bytes);
            let page = Page::new(&bytes);
            for head in (0..900).chain([u64::MAX]) {
                let right = entries.clone().filter(|&(entry, _)| entry < head).count();
                assert_eq!(page.lower_bound(head), right, "{count} entries, {head}");
            }
        }
    }
}
