//! Segments that are collected and not yet deleted.

use std::collections::HashSet;
use std::sync::Arc;

use crate::value_log::Segment;

/// Collected segments whose files still exist.
#[derive(Default)]
pub(crate) struct CollectedSegments {
    /// Their copies are not known to be durable.
    pub(crate) waiting: Vec<Arc<Segment>>,
    /// Segments released since a compaction began, which keeps their files until it ends. Snapshots
    /// do not count: they may keep files for long, and collection goes on meanwhile.
    pub(crate) pinned: Option<usize>,
}

impl CollectedSegments {
    pub(crate) fn add(&mut self, segment: Arc<Segment>) {
        self.waiting.push(segment);
    }

    /// Numbers of the unreleased segments.
    pub(crate) fn waiting(&self) -> HashSet<u32> {
        self.waiting.iter().map(|segment| segment.id).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.waiting.len() + self.pinned.unwrap_or(0)
    }

    /// Removes released segments; returns how many there were.
    pub(crate) fn remove(&mut self, gone: &HashSet<u32>) -> usize {
        let waiting = self.waiting.len();
        self.waiting.retain(|segment| !gone.contains(&segment.id));
        let released = waiting - self.waiting.len();
        if let Some(pinned_count) = &mut self.pinned {
            *pinned_count += released;
        }
        released
    }
}
