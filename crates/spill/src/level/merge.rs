//! Merges newer entries into a level. Only indexes are read and written; values stay where they
//! are.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::iter;
use std::sync::Arc;

use super::build::{BuiltTree, KeyReader, TreeBuilder};
use super::file::IndexFile;
use super::filter::{FilterBuilder, FilterSize};
use super::page::{Page, PageId};
use super::partial_key::PartialKey;
use super::{Leaves, Level};
use crate::bytes::head_at;
use crate::directory::Directory;
use crate::error::Result;
use crate::memtable;
use crate::record::hash;
use crate::time_slice;
use crate::value_pointer::ValuePointer;

/// Reads records for a merge.
pub(crate) trait RecordReader {
    /// Calls `visit` with the key of a record; returns its result and the record's length in bytes.
    fn read_key<R>(
        &self,
        pointer: ValuePointer,
        visit: impl FnOnce(&[u8]) -> R,
    ) -> Result<(R, u32)>;

    /// Announces that a record will be read soon.
    fn prefetch(&self, _: ValuePointer) {}

    /// Whether its segment was deleted: then a newer entry for its key exists.
    fn is_segment_gone(&self, pointer: ValuePointer) -> bool;
}

impl<T: RecordReader> KeyReader for T {
    fn key(&self, pointer: ValuePointer) -> Result<Vec<u8>> {
        Ok(self.read_key(pointer, <[u8]>::to_vec)?.0)
    }

    fn key_hash(&self, pointer: ValuePointer) -> Result<u64> {
        Ok(self.read_key(pointer, hash)?.0)
    }
}

/// Sorted entries with unique keys.
pub(crate) trait MergeInput<'a> {
    fn current(&self) -> Option<(PartialKey<'a>, ValuePointer)>;
    fn advance(&mut self, records: &impl RecordReader, dead: &mut DeadBytes) -> Result<()>;

    /// The keys from the current one on, where they are wholly known.
    fn keys_ahead(&self) -> impl Iterator<Item = &'a [u8]> {
        iter::empty()
    }
}

/// Bytes of dead records, by segment.
#[derive(Debug, Default, Clone)]
pub(crate) struct DeadBytes(pub(crate) HashMap<u32, u64>);

impl DeadBytes {
    pub(crate) fn add(&mut self, pointer: ValuePointer, bytes: u32) {
        *self.0.entry(pointer.segment()).or_default() += u64::from(bytes);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.values().sum()
    }
}

/// An index file with a smaller share of its pages in use is rewritten leaf by leaf.
const MIN_FILE_USE: f64 = 0.5;
/// Index files of a level at most; the least used are rewritten.
const MAX_FILES: usize = 6;

/// Where a merge writes to.
pub(crate) struct MergeOutput<'a> {
    pub(crate) directory: &'a Directory,
    /// Number of the new file.
    pub(crate) file: u32,
    /// Nothing lies below, so tombstones can be dropped.
    pub(crate) is_last: bool,
    /// Size of a new filter, if the level should have one.
    pub(crate) filter: Option<FilterSize>,
}

impl MergeOutput<'_> {
    /// The filter to extend. A level without one only starts one while it is empty, since its keys
    /// are in the log alone.
    fn filter(&self, lower: Option<&Level>) -> Result<Option<FilterBuilder>> {
        match (self.filter, lower) {
            (None, _) => Ok(None),
            (Some(size), None) => Ok(Some(FilterBuilder::new(size))),
            (Some(_), Some(lower)) => {
                lower.filter_pages().map(FilterBuilder::from_pages).transpose()
            }
        }
    }
}

/// Merges `input` into `lower`; `None` if nothing is left.
pub(crate) fn merge<'a>(
    mut input: impl MergeInput<'a>,
    lower: Option<&'a Level>,
    output: &MergeOutput<'a>,
    records: &'a impl RecordReader,
    dead: &mut DeadBytes,
) -> Result<Option<Level>> {
    let mut builder =
        TreeBuilder::new(output.directory, output.file, records, output.filter(lower)?);
    let rewritten = lower.map(files_to_rewrite).unwrap_or_default();
    let mut reused: HashMap<u32, u32> = HashMap::new();
    let mut leaves = lower.map(Level::leaves);
    let next_leaf = |leaves: &mut Option<Leaves<'a>>| match leaves {
        Some(leaves) => leaves.next().transpose(),
        None => Ok(None),
    };
    let mut leaf = next_leaf(&mut leaves)?;
    let mut is_first = true;
    while let (Some((id, bound)), Some(lower)) = (leaf, lower) {
        let next = next_leaf(&mut leaves)?;
        let end = next.as_ref().map(|(_, bound)| bound.as_slice());
        let page = lower.leaf(id)?;
        let is_touched = match input.current() {
            Some((key, pointer)) => is_below(key, pointer, end, records)?,
            None => false,
        };
        if !is_touched && !rewritten.contains(&id.file) && builder.can_reuse() {
            builder.reuse_leaf(id, &bound, page.count())?;
            *reused.entry(id.file).or_default() += 1;
        } else {
            // Newer keys may lie below the first leaf's bound.
            if !is_first {
                builder.set_lower_bound(&bound);
            }
            prefetch_ahead(page, end, &input, records);
            let mut slot = 0;
            while let Some((key, pointer)) = input.current() {
                if !is_below(key, pointer, end, records)? {
                    break;
                }
                merge_below(page, &mut slot, key, pointer, &mut builder, records, dead)?;
                push_new(key, pointer, &mut builder, output, records, dead)?;
                input.advance(records, dead)?;
            }
            for slot in slot..page.count() {
                push_old(page, slot, &mut builder, records)?;
            }
        }
        is_first = false;
        leaf = next;
    }
    while let Some((key, pointer)) = input.current() {
        push_new(key, pointer, &mut builder, output, records, dead)?;
        input.advance(records, dead)?;
    }
    let Some(BuiltTree { root, height, entries, file, filter }) = builder.finish()? else {
        return Ok(None);
    };
    let mut files: Vec<(Arc<IndexFile>, u32)> = Vec::new();
    if let Some(file) = file {
        let pages = file.pages();
        files.push((Arc::new(file), pages));
    }
    for (file, _) in lower.iter().flat_map(|lower| &lower.files) {
        if let Some(&pages) = reused.get(&file.id) {
            files.push((Arc::clone(file), pages));
        }
    }
    Ok(Some(Level { root, height, entries, files, filter }))
}

fn files_to_rewrite(level: &Level) -> Vec<u32> {
    let mut files: Vec<(f64, u32)> = level
        .files
        .iter()
        .map(|(file, used)| (f64::from(*used) / f64::from(file.pages()), file.id))
        .collect();
    files.sort_by(|one, other| one.0.total_cmp(&other.0));
    let too_many = files.len().saturating_sub(MAX_FILES);
    let thin = files.iter().take_while(|(used, _)| *used < MIN_FILE_USE).count();
    files.iter().take(too_many.max(thin)).map(|(_, id)| *id).collect()
}

/// Whether a key is below a bound; without a bound every key is.
fn is_below(
    key: PartialKey<'_>,
    pointer: ValuePointer,
    bound: Option<&[u8]>,
    records: &impl RecordReader,
) -> Result<bool> {
    let Some(bound) = bound else { return Ok(true) };
    match key.compare(&PartialKey::Whole(bound)) {
        Ordering::Less => Ok(true),
        Ordering::Greater => Ok(false),
        Ordering::Equal => match key {
            PartialKey::Whole(_) => Ok(false),
            PartialKey::KeyPrefix { .. } => Ok(records.read_key(pointer, |key| key < bound)?.0),
        },
    }
}

/// Prefetches the old records of a leaf that the coming keys replace. They are scattered, and
/// reading them one by one would wait for each.
fn prefetch_ahead<'a>(
    page: Page<'_>,
    end: Option<&[u8]>,
    input: &impl MergeInput<'a>,
    records: &impl RecordReader,
) {
    let pointers = (0..page.count()).map(|slot| ValuePointer::from_bits(page.value(slot)));
    if page.head(0) == page.head(page.count() - 1) {
        // All heads tie, so every record will be read.
        return pointers.for_each(|pointer| records.prefetch(pointer));
    }
    // Where the last heads tie, only the bound tells which keys belong to the next leaf.
    for key in input.keys_ahead().take_while(|&key| end.is_none_or(|end| key < end)) {
        match page.compare_prefix(key) {
            Ordering::Less => continue,
            Ordering::Equal => {}
            Ordering::Greater => return,
        }
        let head = head_at(key, page.prefix_len());
        let slot = page.lower_bound(head);
        if slot == page.count() {
            return;
        }
        if page.head(slot) == head {
            records.prefetch(ValuePointer::from_bits(page.value(slot)));
        }
    }
}

/// Moves the old entries of a leaf below a key into the tree, and drops the entry of the key
/// itself.
fn merge_below<'a, K: KeyReader>(
    page: Page<'a>,
    slot: &mut usize,
    key: PartialKey<'a>,
    pointer: ValuePointer,
    builder: &mut TreeBuilder<'a, K>,
    records: &impl RecordReader,
    dead: &mut DeadBytes,
) -> Result<()> {
    let count = page.count();
    // Where the whole key is known and has the page's prefix, heads decide.
    let head = match key {
        PartialKey::Whole(whole) if page.compare_prefix(whole) == Ordering::Equal => {
            Some(head_at(whole, page.prefix_len()))
        }
        _ => None,
    };
    while *slot < count {
        let old = ValuePointer::from_bits(page.value(*slot));
        let order = match head {
            Some(head) => page.head(*slot).cmp(&head),
            None => partial_key(page, *slot).compare(&key),
        };
        match order {
            Ordering::Less => push_old(page, *slot, builder, records)?,
            Ordering::Greater => return Ok(()),
            Ordering::Equal if records.is_segment_gone(old) => {}
            Ordering::Equal => {
                let (order, size) = match key {
                    PartialKey::Whole(key) => records.read_key(old, |old| old.cmp(key))?,
                    PartialKey::KeyPrefix { .. } => {
                        let key = records.key(pointer)?;
                        records.read_key(old, |old| old.cmp(&key))?
                    }
                };
                // The record may have come from the device.
                time_slice::yield_if_expired();
                match order {
                    Ordering::Less => push_old(page, *slot, builder, records)?,
                    Ordering::Greater => return Ok(()),
                    Ordering::Equal => dead.add(old, size),
                }
            }
        }
        *slot += 1;
    }
    Ok(())
}

/// Adds a newer entry, unless it is a tombstone that is no longer needed.
#[inline]
fn push_new<'a, K: KeyReader>(
    key: PartialKey<'a>,
    pointer: ValuePointer,
    builder: &mut TreeBuilder<'a, K>,
    output: &MergeOutput<'_>,
    records: &impl RecordReader,
    dead: &mut DeadBytes,
) -> Result<()> {
    if !(pointer.is_tombstone() && output.is_last) {
        return builder.push_new(key, pointer);
    }
    let ((), size) = records.read_key(pointer, |_| ())?;
    dead.add(pointer, size);
    Ok(())
}

fn partial_key(page: Page<'_>, slot: usize) -> PartialKey<'_> {
    PartialKey::KeyPrefix { prefix: page.prefix(), head: page.head(slot) }
}

#[inline]
fn push_old<'a, K: KeyReader>(
    page: Page<'a>,
    slot: usize,
    builder: &mut TreeBuilder<'a, K>,
    records: &impl RecordReader,
) -> Result<()> {
    let pointer = ValuePointer::from_bits(page.value(slot));
    if records.is_segment_gone(pointer) {
        return Ok(());
    }
    builder.push(partial_key(page, slot), pointer)
}

/// The newest version of each key of a frozen memtable.
pub(crate) struct MemtableInput<'a> {
    entries: memtable::MemtableIter<'a>,
    current: Option<(&'a [u8], &'a memtable::KeyVersion)>,
}

impl<'a> MemtableInput<'a> {
    pub(crate) fn new(memtable: &'a memtable::Memtable) -> Self {
        let mut entries = memtable.entries();
        let current = entries.next();
        MemtableInput { entries, current }
    }
}

impl<'a> MemtableInput<'a> {
    /// The next key and its newest version.
    pub(crate) fn newest(&self) -> Option<(&'a [u8], &'a memtable::KeyVersion)> {
        self.current
    }
}

impl<'a> MergeInput<'a> for MemtableInput<'a> {
    #[inline]
    fn current(&self) -> Option<(PartialKey<'a>, ValuePointer)> {
        let (key, newest) = self.current?;
        Some((PartialKey::Whole(key), newest.pointer))
    }

    fn keys_ahead(&self) -> impl Iterator<Item = &'a [u8]> {
        let current = self.current.map(|(key, _)| key);
        current.into_iter().chain(self.entries.clone().map(|(key, _)| key))
    }

    fn advance(&mut self, _: &impl RecordReader, dead: &mut DeadBytes) -> Result<()> {
        let mut older = self.current.and_then(|(_, newest)| newest.older());
        while let Some(version) = older {
            dead.add(version.pointer, version.size);
            older = version.older();
        }
        self.current = self.entries.next();
        Ok(())
    }
}

/// The entries of a level.
pub(crate) struct LevelInput<'a> {
    level: &'a Level,
    leaves: Leaves<'a>,
    page: Option<Page<'a>>,
    slot: usize,
}

impl<'a> LevelInput<'a> {
    pub(crate) fn new(level: &'a Level, records: &impl RecordReader) -> Result<Self> {
        let mut all = LevelInput { level, leaves: level.leaves(), page: None, slot: 0 };
        all.next_page(records)?;
        all.skip_gone(records)?;
        Ok(all)
    }

    fn next_page(&mut self, records: &impl RecordReader) -> Result<()> {
        let next: Option<(PageId, _)> = self.leaves.next().transpose()?;
        self.page = next.map(|(id, _)| self.level.leaf(id)).transpose()?;
        self.slot = 0;
        // Their keys are read where the lower level has equal heads, or for a filter.
        if let Some(page) = self.page {
            let pointers = (0..page.count()).map(|slot| ValuePointer::from_bits(page.value(slot)));
            pointers.for_each(|pointer| records.prefetch(pointer));
        }
        Ok(())
    }

    fn skip_gone(&mut self, records: &impl RecordReader) -> Result<()> {
        while let Some(page) = self.page {
            if self.slot == page.count() {
                self.next_page(records)?;
            } else if records.is_segment_gone(ValuePointer::from_bits(page.value(self.slot))) {
                self.slot += 1;
            } else {
                break;
            }
        }
        Ok(())
    }
}

impl<'a> MergeInput<'a> for LevelInput<'a> {
    fn current(&self) -> Option<(PartialKey<'a>, ValuePointer)> {
        let page = self.page?;
        Some((partial_key(page, self.slot), ValuePointer::from_bits(page.value(self.slot))))
    }

    fn advance(&mut self, records: &impl RecordReader, _: &mut DeadBytes) -> Result<()> {
        self.slot += 1;
        self.skip_gone(records)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::level::page::{PAGE_SIZE, write_leaf};
    use crate::value_pointer::Tag;

    /// Counts the keys that are inspected ahead.
    struct CountingInput<'a> {
        keys: &'a [Vec<u8>],
        lookups: Cell<usize>,
    }

    impl<'a> MergeInput<'a> for CountingInput<'a> {
        fn current(&self) -> Option<(PartialKey<'a>, ValuePointer)> {
            None
        }

        fn advance(&mut self, _: &impl RecordReader, _: &mut DeadBytes) -> Result<()> {
            Ok(())
        }

        fn keys_ahead(&self) -> impl Iterator<Item = &'a [u8]> {
            self.keys.iter().map(|key| {
                self.lookups.set(self.lookups.get() + 1);
                key.as_slice()
            })
        }
    }

    #[derive(Default)]
    struct PrefetchRecorder(RefCell<Vec<ValuePointer>>);

    impl RecordReader for PrefetchRecorder {
        fn read_key<R>(&self, _: ValuePointer, visit: impl FnOnce(&[u8]) -> R) -> Result<(R, u32)> {
            Ok((visit(b""), 0))
        }

        fn prefetch(&self, pointer: ValuePointer) {
            self.0.borrow_mut().push(pointer);
        }

        fn is_segment_gone(&self, _: ValuePointer) -> bool {
            false
        }
    }

    /// Otherwise a merge into leaves with equal heads inspects the whole memtable for each of them.
    #[test]
    fn prefetch_stays_within_the_leaf() {
        let keys: Vec<Vec<u8>> =
            (0..1000).map(|number| format!("https://{number:04}").into_bytes()).collect();
        let pointer = |number: u32| ValuePointer::new(1, number * 8, false, Tag::of(0));
        let of_leaf = keys.iter().step_by(2).take(50);
        let (tied, separated) = (of_leaf.clone(), of_leaf.clone());
        let with_another = [b"!".to_vec()];
        let with_another = with_another.iter().chain(of_leaf);
        let check = |old: &mut dyn Iterator<Item = &Vec<u8>>, prefix: &str, prefetched, lookups| {
            let old = old.zip(1..);
            let old = old.map(|(key, number)| (head_at(key, prefix.len()), pointer(number).bits()));
            let mut page = [0; PAGE_SIZE];
            write_leaf(PageId { file: 1, number: 0 }, prefix.as_bytes(), old, &mut page);
            let input = CountingInput { keys: &keys, lookups: Cell::new(0) };
            let records = PrefetchRecorder::default();
            prefetch_ahead(Page::new(&page), Some(b"https://0100"), &input, &records);
            let mut all = records.0.into_inner();
            all.dedup();
            assert_eq!((all.len(), input.lookups.get()), (prefetched, lookups));
        };
        // All entries that heads do not separate.
        check(&mut tied.into_iter(), "", 50, 0);
        check(&mut with_another.into_iter(), "", 1, 101);
        // Entries that are replaced; keys behind the leaf's last are not inspected.
        check(&mut separated.into_iter(), "https://", 50, 100);
    }
}
