//! What a store counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// A monotonic counter.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
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
    /// Live record bytes, as of the last compaction or the opening.
    pub(crate) live_bytes: AtomicU64,
}
