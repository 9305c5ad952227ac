//! Compaction: the oldest frozen memtables are merged into the levels, and the manifest is updated.

use std::cell::RefCell;
use std::sync::Arc;

use crate::engine::Engine;
use crate::error::Result;
use crate::level::Level;
use crate::level::file::IndexFile;
use crate::level::filter::FilterSize;
use crate::level::merge::{DeadBytes, LevelInput, MemtableInput, MergeInput, MergeOutput, merge};
use crate::locks::lock;
use crate::memtable::Memtable;
use crate::version::{LogView, TableVersion, Version};

/// Approximate memtable bytes per key.
const MEMTABLE_BYTES_PER_KEY: usize = 96;

impl Engine {
    /// Compacts the oldest frozen memtables; returns whether there were any.
    pub(crate) fn compact(&self) -> Result<bool> {
        self.compact_if(|| true)
    }

    /// The same, if it is still wanted when earlier compactions are over.
    pub(crate) fn compact_if(&self, is_wanted: impl FnOnce() -> bool) -> Result<bool> {
        let guard = lock(&self.compaction);
        if !is_wanted() {
            return Ok(false);
        }
        let result = self.compact_oldest();
        self.work.record_compaction(&guard, &result);
        drop(guard);
        if let Ok(true) = result {
            self.reclaim_if_behind();
            self.counters.spills.add(1);
            self.work.notify();
        }
        if !matches!(result, Ok(false)) {
            self.update_write_delay();
        }
        result
    }

    fn compact_oldest(&self) -> Result<bool> {
        let _pin = self.pin_for_compaction();
        let version = self.version.load_full();
        let Some(oldest) = version.frozen.last() else { return Ok(false) };
        let Some(coverage) = oldest.coverage else { return Ok(false) };
        self.check_writable()?;
        // The index must only refer to durable records.
        self.sync_to(coverage.positions)?;
        self.sync_copies()?;
        let hidden = version.hidden_in_levels + oldest.hidden();
        let compacts_all = hidden > self.max_hidden();
        let mut dead = DeadBytes::default();
        // On drop, files that no version uses are deleted.
        let new_files = NewIndexFiles { engine: self, files: RefCell::default() };
        let mut tables: Vec<Option<Arc<TableVersion>>> = Vec::new();
        for (id, table) in version.tables.iter().enumerate() {
            let compacted = match (table, oldest.memtables.get(id)) {
                (Some(table), Some(memtable))
                    if !memtable.is_empty() || compacts_all && table.has_upper_levels() =>
                {
                    let compaction =
                        TableCompaction { version: &version, table, memtable, compacts_all };
                    Some(Arc::new(self.compact_table(compaction, &new_files, &mut dead)?))
                }
                (None, Some(memtable)) => {
                    // Every record of a dropped table is dead.
                    let mut entries = MemtableInput::new(memtable);
                    let records = LogView { version: &version, staging: &self.staging };
                    while let Some((_, newest)) = entries.newest() {
                        dead.add(newest.pointer, newest.size);
                        entries.advance(&records, &mut dead)?;
                    }
                    None
                }
                _ => None,
            };
            tables.push(compacted);
        }
        new_files.sync()?;
        let found = dead.bytes();
        self.publish(&mut lock(&self.durable), &dead, |version| {
            version.coverage = coverage;
            version.frozen.retain(|memtable_set| !Arc::ptr_eq(memtable_set, oldest));
            for (table, compacted) in version.tables.iter_mut().zip(&tables) {
                // A table that was dropped meanwhile stays dropped.
                if let (Some(table), Some(compacted)) = (table, compacted) {
                    *table = Arc::clone(compacted);
                }
            }
            let may_hide = version.tables.iter().flatten().any(|table| table.has_upper_levels());
            version.hidden_in_levels = if may_hide { hidden.saturating_sub(found) } else { 0 };
            version.cold_read_mode = self.cold_read_mode(version);
        })?;
        self.record_live_bytes();
        Ok(true)
    }

    /// Merges a memtable into the levels of its table.
    fn compact_table(
        &self,
        TableCompaction { version, table, memtable, compacts_all }: TableCompaction<'_>,
        new_files: &NewIndexFiles<'_>,
        dead: &mut DeadBytes,
    ) -> Result<TableVersion> {
        let mut levels = table.levels.clone();
        let records = LogView { version, staging: &self.staging };
        let entries = |level: &Option<Arc<Level>>| level.as_ref().map_or(0, |level| level.entries);
        let keys = memtable.keys() as u64;
        let total = keys + levels.iter().map(entries).sum::<u64>();
        let tables = version.tables.iter().flatten().count().max(1);
        let base = keys.max((self.options.memory / MEMTABLE_BYTES_PER_KEY / tables) as u64).max(1);
        let depth = depth(total, base, self.options.growth);
        while levels.len() < depth {
            // The largest level stays the last.
            levels.insert(0, None);
        }
        let last = levels.len() - 1;
        let max_entries = |level: usize| {
            (total / self.options.growth.saturating_pow((last - level) as u32)).max(base)
        };
        let target = |levels: &[Option<Arc<Level>>], index: usize| {
            let is_last = levels[index + 1..].iter().all(Option::is_none);
            let bits_per_key = self.options.bloom_bits;
            let has_filter = !is_last && !compacts_all && bits_per_key > 0;
            MergeOutput {
                directory: &self.index,
                file: self.next_index(),
                is_last,
                // A level is merged down once it exceeds its maximum, so its last input may come on
                // top. A store that had little memory so far may exceed that by far, hence the
                // limit.
                filter: has_filter.then(|| FilterSize {
                    keys: (max_entries(index) + base).min(4 * total),
                    bits_per_key,
                }),
            }
        };
        let below = levels.iter().position(Option::is_some).unwrap_or(last);
        let first = if compacts_all { below } else { 0 };
        let output = target(&levels, first);
        let merged =
            merge(MemtableInput::new(memtable), levels[first].as_deref(), &output, &records, dead)?;
        self.counters.merged_entries.add(merged.as_ref().map_or(0, |level| level.entries));
        levels[first] = merged.map(|level| new_files.add(level));
        for upper in first..last {
            let Some(level) = levels[upper].clone() else { continue };
            if level.entries <= max_entries(upper) && !compacts_all {
                continue;
            }
            let output = target(&levels, upper + 1);
            let lower = levels[upper + 1].clone();
            let from = LevelInput::new(&level, &records)?;
            let merged = merge(from, lower.as_deref(), &output, &records, dead)?;
            self.counters.merged_entries.add(merged.as_ref().map_or(0, |level| level.entries));
            levels[upper + 1] = merged.map(|level| new_files.add(level));
            levels[upper] = None;
        }
        Ok(TableVersion { name: table.name.clone(), levels })
    }
}

/// What is compacted.
struct TableCompaction<'a> {
    version: &'a Version,
    table: &'a TableVersion,
    memtable: &'a Memtable,
    /// All levels become one, which finds all dead records.
    compacts_all: bool,
}

/// Index files created by a compaction.
struct NewIndexFiles<'a> {
    engine: &'a Engine,
    files: RefCell<Vec<Arc<IndexFile>>>,
}

impl NewIndexFiles<'_> {
    fn add(&self, level: Level) -> Arc<Level> {
        // The new file comes first; the others are older files that the level still refers to.
        self.files.borrow_mut().extend(level.files.first().map(|(file, _)| Arc::clone(file)));
        Arc::new(level)
    }

    /// Syncs all files together: one journal commit covers them all.
    fn sync(&self) -> Result<()> {
        for file in self.files.borrow().iter() {
            file.sync()?;
        }
        self.engine.index.sync()
    }
}

impl Drop for NewIndexFiles<'_> {
    fn drop(&mut self) {
        // If the store was halted, the manifest may refer to them.
        if self.engine.check_writable().is_ok() && !std::thread::panicking() {
            self.engine.retire_unless_used(self.files.borrow().iter());
        }
    }
}

/// Number of levels for `entries`, if the first takes `base` entries and each next one
/// `growth` times more.
fn depth(entries: u64, base: u64, growth: u64) -> usize {
    let mut depth = 1;
    let mut max_entries = base.saturating_mul(growth);
    while max_entries < entries {
        max_entries = max_entries.saturating_mul(growth);
        depth += 1;
    }
    depth
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Store};

    /// The next compaction may succeed at once, and a late record of the failure would stay.
    #[test]
    fn compaction_result_is_recorded_before_the_next() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, ..Options::default() };
        let store = Store::open(home.path(), options).unwrap();
        let (table, engine) = (store.table("t").unwrap(), store.engine());
        table.put(b"key", b"value").unwrap();
        engine.freeze_memtables(&mut lock(&engine.writer));
        // Blocks the next index file, but not the one after it.
        let next = engine.next_index.load(std::sync::atomic::Ordering::Relaxed);
        std::fs::write(engine.index.join(crate::level::file::name(next)), "").unwrap();
        assert!(engine.compact().is_err());
        assert!(engine.work.compaction_error().is_some());
        assert!(!engine.compact_if(|| false).unwrap());
        assert!(engine.work.compaction_error().is_some());
        assert!(engine.compact().unwrap());
        assert!(engine.work.compaction_error().is_none());
    }

    /// On a busy machine a low-priority compaction could take forever.
    #[test]
    fn refused_writers_boost_compaction() {
        for are_refused in [true, false] {
            let home = tempfile::tempdir().unwrap();
            let options = Options { background: false, ..Options::default() };
            let store = Store::open(home.path(), options).unwrap();
            let (table, engine) = (store.table("t").unwrap(), store.engine());
            let waits = || engine.priority.is_boosted();
            let freeze = || engine.freeze_memtables(&mut lock(&engine.writer));
            table.put(b"key", b"value").unwrap();
            let frozen = engine.options.frozen + usize::from(are_refused);
            (0..frozen).for_each(|_| freeze());
            assert!(!waits());
            let next = engine.next_index.load(std::sync::atomic::Ordering::Relaxed);
            std::fs::write(engine.index.join(crate::level::file::name(next)), "").unwrap();
            assert!(engine.compact().is_err());
            assert_eq!(waits(), are_refused);
            freeze();
            assert!(waits());
            assert!(engine.compact().unwrap());
            assert!(!waits());
        }
    }

    /// Keys that follow unrelated keys, at first so few that one leaf holds them all. Zero bytes
    /// are ordinary key bytes.
    #[test]
    fn leaves_strip_shared_prefixes() {
        let cases: [(&[&[u8]], &[u8]); 3] = [
            (&[b"!", b"~"], b"https://www.example.com/"),
            (&[b"user~"], b"user000000000000"),
            (&[b"user~"], b"user\0\0\0\0\0\0\0\0\0\0\0\0"),
        ];
        for (others, prefix) in cases {
            let home = tempfile::tempdir().unwrap();
            let options = Options { background: false, ..Options::default() };
            let store = Store::open(home.path(), options).unwrap();
            let table = store.table("t").unwrap();
            others.iter().for_each(|other| table.put(other, b"").unwrap());
            let key =
                |number: u32| [prefix, &number.wrapping_mul(0x9e37_79b9).to_be_bytes()].concat();
            let mut count = 0;
            for total in [100, 1000, 10_000] {
                while count < total {
                    table.put(&key(count), &count.to_be_bytes()).unwrap();
                    count += 1;
                }
                store.flush().unwrap();
            }
            let version = store.engine().version.load_full();
            let level = version.table(table.id).unwrap().levels.iter().flatten().next().unwrap();
            let leaves: Vec<_> =
                level.leaves().map(|leaf| level.leaf(leaf.unwrap().0).unwrap()).collect();
            let ties = |page: &&crate::level::page::Page<'_>| {
                (1..page.count()).any(|place| page.head(place - 1) == page.head(place))
            };
            // The first and the last leaf also hold unrelated keys.
            let tied = leaves.iter().filter(ties).count();
            assert!(leaves.len() > 40 && tied <= 2, "{prefix:?}: {tied} of {}", leaves.len());
            for number in 0..count {
                assert_eq!(table.get(&key(number)).unwrap().unwrap(), number.to_be_bytes());
            }
            assert_eq!(table.range(..).pairs().count(), count as usize + others.len());
        }
    }

    /// Full leaves behind the changed one are reused.
    #[test]
    fn inserting_one_key_rewrites_few_leaves() {
        let home = tempfile::tempdir().unwrap();
        let options = Options { background: false, ..Options::default() };
        let store = Store::open(home.path(), options).unwrap();
        let table = store.table("t").unwrap();
        let key = |number: u32| (2 * number).to_be_bytes();
        (0..100_000).for_each(|number| table.put(&key(number), b"value").unwrap());
        store.flush().unwrap();
        let pages = || {
            let version = store.engine().version.load_full();
            let level = version.table(table.id).unwrap().levels.iter().flatten().next().unwrap();
            let newest = level.files.first().map_or(0, |(file, _)| file.pages());
            (newest, level.leaves().count())
        };
        let (total, leaves) = pages();
        assert_eq!(leaves, 100_000_usize.div_ceil(240), "as full as can be: {total} pages");
        for (step, from) in (1..).zip([0_u32, 100, 50_000, 99_999]) {
            table.put(&(2 * from + 1).to_be_bytes(), b"between").unwrap();
            store.flush().unwrap();
            let (written, now) = pages();
            assert!(written <= 6, "{written} pages");
            assert!(now <= leaves + step, "{now} leaves");
        }
        assert_eq!(table.range(..).pairs().count(), 100_004);
    }

    #[test]
    fn depth_grows_with_entries() {
        assert_eq!(depth(0, 100, 8), 1);
        assert_eq!(depth(800, 100, 8), 1);
        assert_eq!(depth(801, 100, 8), 2);
        assert_eq!(depth(6401, 100, 8), 3);
    }
}
