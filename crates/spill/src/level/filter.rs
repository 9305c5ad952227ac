//! A Bloom filter of the keys of a level, so that most look-ups of absent keys end at one cache
//! line.
//!
//! It is a blocked Bloom filter (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom
//! Filters, 2007): a key sets one bit in each of the eight words of one line. Its pages end the
//! newest file of its level; the first line of each is the page header.

use super::file::IndexWriter;
use super::page::{PAGE_SIZE, Page, PageKind, write_checksum};
use crate::error::Result;
use crate::time_slice;

/// Bytes of a line: eight words.
const LINE_SIZE: usize = 64;
/// Lines of a page behind its header.
const LINES_PER_PAGE: usize = PAGE_SIZE / LINE_SIZE - 1;

/// The most pages: 1 GiB.
const MAX_PAGES: u64 = 1 << 18;

/// Number of keys that a filter is sized for, and bits for each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilterSize {
    pub(crate) keys: u64,
    pub(crate) bits_per_key: u32,
}

/// The page and the line in it that a key belongs to.
#[inline]
fn locate(key_hash: u64, pages: u32) -> (u32, usize) {
    let lines = u64::from(pages) * LINES_PER_PAGE as u64;
    let line = ((u128::from(key_hash) * u128::from(lines)) >> 64) as u64;
    ((line / LINES_PER_PAGE as u64) as u32, 1 + (line % LINES_PER_PAGE as u64) as usize)
}

/// The bit of each word that a key sets.
#[inline]
fn masks(key_hash: u64) -> [u64; 8] {
    // The highest bits chose the line; these use the lowest.
    let mixed = (key_hash & u64::from(u32::MAX)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    std::array::from_fn(|word| 1 << (mixed >> (58 - 6 * word) & 63))
}

/// Whether a line of a filter page contains a key.
#[inline]
fn contains(page: &[u8; PAGE_SIZE], line: usize, key_hash: u64) -> bool {
    let words = page[line * LINE_SIZE..(line + 1) * LINE_SIZE].as_chunks().0;
    let missing =
        words.iter().zip(masks(key_hash)).map(|(word, mask)| !u64::from_le_bytes(*word) & mask);
    missing.fold(0, |all, missing| all | missing) == 0
}

/// The filter at the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) first: u32,
    pub(crate) pages: u32,
}

impl Filter {
    /// False: the level does not have the key.
    #[inline]
    pub(crate) fn may_contain<'a>(
        &self,
        key_hash: u64,
        page: impl Fn(u32) -> Result<Page<'a>>,
    ) -> Result<bool> {
        let (number, line) = locate(key_hash, self.pages);
        Ok(contains(page(self.first + number)?.bytes(), line, key_hash))
    }
}

/// A filter that is being built.
pub(crate) struct FilterBuilder {
    pages: Vec<[u8; PAGE_SIZE]>,
}

impl FilterBuilder {
    pub(crate) fn new(size: FilterSize) -> FilterBuilder {
        let bits = size.keys.saturating_mul(size.bits_per_key.into());
        let pages = bits.div_ceil((LINES_PER_PAGE * LINE_SIZE * 8) as u64).clamp(1, MAX_PAGES);
        FilterBuilder { pages: vec![[0; PAGE_SIZE]; pages as usize] }
    }

    /// A filter that starts with the content of another.
    pub(crate) fn from_pages<'a>(
        pages: impl Iterator<Item = Result<Page<'a>>>,
    ) -> Result<FilterBuilder> {
        let pages = pages.map(|page| {
            time_slice::yield_if_expired();
            Ok(*page?.bytes())
        });
        Ok(FilterBuilder { pages: pages.collect::<Result<_>>()? })
    }

    #[inline]
    pub(crate) fn add(&mut self, key_hash: u64) {
        let (page, line) = locate(key_hash, self.pages.len() as u32);
        let words =
            self.pages[page as usize][line * LINE_SIZE..(line + 1) * LINE_SIZE].as_chunks_mut().0;
        for (word, mask) in words.iter_mut().zip(masks(key_hash)) {
            *word = (u64::from_le_bytes(*word) | mask).to_le_bytes();
        }
    }

    /// Writes the pages at the end of a file.
    pub(crate) fn write(mut self, writer: &mut IndexWriter) -> Result<Filter> {
        let filter = Filter { first: writer.next().number, pages: self.pages.len() as u32 };
        for page in &mut self.pages {
            page[..LINE_SIZE].fill(0);
            page[4] = PageKind::Filter.byte();
            write_checksum(page, writer.next());
            writer.append(page)?;
            time_slice::yield_if_expired();
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::hash;

    fn built(keys: std::ops::Range<u32>, size: FilterSize) -> FilterBuilder {
        let mut builder = FilterBuilder::new(size);
        keys.for_each(|key| builder.add(hash(&key.to_le_bytes())));
        builder
    }

    fn contains_key(builder: &FilterBuilder, key: u32) -> bool {
        let key_hash = hash(&key.to_le_bytes());
        let (page, line) = locate(key_hash, builder.pages.len() as u32);
        contains(&builder.pages[page as usize], line, key_hash)
    }

    /// The expected false-positive rate: n keys leave a bit of a line clear with (1 - 1/64)^n, all
    /// eight words must have theirs set, and the number of keys per line is Poisson distributed.
    fn expected(keys_per_line: f64) -> f64 {
        let mut weight = (-keys_per_line).exp();
        let mut sum = 0.0;
        for keys in 0..1000 {
            sum += weight * (1.0 - (63_f64 / 64.0).powi(keys)).powi(8);
            weight *= keys_per_line / f64::from(keys + 1);
        }
        sum
    }

    #[test]
    fn false_positive_rate_matches_theory() {
        for bits_per_key in [4, 10, 16] {
            let keys = 200_000;
            let filter = built(0..keys, FilterSize { keys: keys.into(), bits_per_key });
            assert!((0..keys).all(|key| contains_key(&filter, key)));
            let tries = 1_000_000;
            let wrong = (keys..keys + tries).filter(|&key| contains_key(&filter, key)).count();
            let lines = filter.pages.len() * LINES_PER_PAGE;
            let share = wrong as f64 / f64::from(tries);
            let expected = expected(f64::from(keys) / lines as f64);
            // Five standard deviations, and what the keys themselves vary.
            let tolerance = 5.0 * (expected / f64::from(tries)).sqrt() + 0.05 * expected;
            assert!(
                (share - expected).abs() < tolerance,
                "{bits_per_key} bits: {share}, expected {expected}"
            );
        }
    }

    #[test]
    fn filter_extends_an_existing_one() {
        let size = FilterSize { keys: 10_000, bits_per_key: 10 };
        let first = built(0..5_000, size);
        let pages = || first.pages.iter().map(|page| Ok(Page::new(page)));
        let mut second = FilterBuilder::from_pages(pages()).unwrap();
        (5_000..10_000).for_each(|key: u32| second.add(hash(&key.to_le_bytes())));
        assert!((0..10_000).all(|key| contains_key(&second, key)));
        let all = built(0..10_000, size);
        assert!(second.pages == all.pages, "as if all had been added to one");
    }

    #[test]
    fn filter_size_follows_key_count() {
        let pages =
            |keys, bits_per_key| FilterBuilder::new(FilterSize { keys, bits_per_key }).pages.len();
        assert_eq!(pages(0, 10), 1);
        assert_eq!(pages(3225, 10), 1);
        assert_eq!(pages(3226, 10), 2);
    }
}
