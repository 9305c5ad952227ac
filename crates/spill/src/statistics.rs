//! Statistics of a store.

use std::sync::atomic::Ordering;

use crate::engine::Engine;

/// State and counters of a store, for all of its handles. Counters start at the opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of all records in the log, dead ones included, without those in the staging file.
    pub log_bytes: u64,
    /// Record bytes known to be dead; compactions find out.
    pub dead_bytes: u64,
    /// Bytes of index pages in use.
    pub index_bytes: u64,
    /// Of these, bytes of Bloom filters.
    pub filter_bytes: u64,
    /// Entries of all levels; a key counts once per level.
    pub index_entries: u64,
    /// The most non-empty levels of any table.
    pub levels: u64,
    /// Bytes of memtables, including frozen ones.
    pub memory_bytes: u64,
    /// Compactions of memtables into the levels, of all tables at once.
    pub spills: u64,
    /// Entries of the levels that compactions made, including those in reused leaves.
    pub merged_entries: u64,
    /// Segments collected.
    pub collected_segments: u64,
    /// Segments that cannot be collected, because something in them, or in what that refers to, is
    /// damaged or unreadable: [`Store::scrub`](crate::Store::scrub) says where.
    pub stuck_segments: u64,
    /// Bytes of live records that garbage collection copied.
    pub copied_bytes: u64,
    /// Writes delayed because compaction or garbage collection lagged. A batch counts as one.
    pub throttled_writes: u64,
}

impl Engine {
    pub(crate) fn statistics(&self) -> Statistics {
        let version = self.version.load();
        let tables = || version.tables.iter().flatten();
        let levels = || tables().flat_map(|table| table.levels.iter().flatten());
        let pages: u64 =
            levels().flat_map(|level| &level.files).map(|(_, used)| u64::from(*used)).sum();
        let memory = std::iter::once(&version.active).chain(&version.frozen);
        Statistics {
            log_bytes: version.log_bytes(),
            dead_bytes: version.dead_bytes(),
            index_bytes: pages * crate::level::page::PAGE_SIZE as u64,
            filter_bytes: levels()
                .filter_map(|level| level.filter)
                .map(|filter| u64::from(filter.pages) * crate::level::page::PAGE_SIZE as u64)
                .sum(),
            index_entries: levels().map(|level| level.entries).sum(),
            levels: tables()
                .map(|table| table.levels.iter().flatten().count() as u64)
                .max()
                .unwrap_or(0),
            memory_bytes: memory.map(|memtable_set| memtable_set.bytes() as u64).sum(),
            spills: self.counters.spills.get(),
            merged_entries: self.counters.merged_entries.get(),
            collected_segments: self.counters.collected.get(),
            stuck_segments: version
                .segments
                .iter()
                .filter(|segment| segment.stuck.load(Ordering::Relaxed))
                .count() as u64,
            copied_bytes: self.counters.copied.get(),
            throttled_writes: self.counters.throttled.get(),
        }
    }
}
