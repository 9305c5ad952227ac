//! What a store says of itself.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::engine::Engine;

/// A number that only rises.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) spills: Counter,
    pub(crate) merged_entries: Counter,
    pub(crate) collected: Counter,
    pub(crate) copied: Counter,
    pub(crate) throttled: Counter,
    /// Bytes of records that live, as of the last merge or the opening.
    pub(crate) live_bytes: AtomicU64,
}

/// The state of a store and what it has done since it was opened, for all of its handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of all records in the log, those that are dead too; not those that are still in the
    /// staging file.
    pub log_bytes: u64,
    /// Bytes of records that are known to be dead; merges find out.
    pub dead_bytes: u64,
    /// Bytes of index pages that are in use.
    pub index_bytes: u64,
    /// Bytes of pages of filters, of those.
    pub filter_bytes: u64,
    /// Entries of all levels: a key that is in several counts as often.
    pub index_entries: u64,
    /// The most levels of a table that have entries.
    pub levels: u64,
    /// Bytes of the in-memory indexes, those included that wait for their merge.
    pub memory_bytes: u64,
    /// Merges of an L0, of all tables at once, into the levels, since the opening.
    pub spills: u64,
    /// Entries of the levels that merges made since the opening, those in leaves included that were
    /// left as they are.
    pub merged_entries: u64,
    /// Segments that were collected.
    pub collected_segments: u64,
    /// Segments that cannot be collected, as something in them, or what that leads to, is damaged or
    /// cannot be read: [`Store::scrub`](crate::Store::scrub) says where. Since the store was opened.
    pub stuck_segments: u64,
    /// Bytes of live records that collecting copied.
    pub copied_bytes: u64,
    /// Writes that were slowed down since the opening, because merging or collecting was behind. A
    /// batch is one.
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
