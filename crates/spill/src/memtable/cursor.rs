//! A cursor over a memtable that is being written, in either direction.

use std::sync::Arc;

use super::entry::Entry;
use super::node::FANOUT;
use super::{KeyVersion, Memtable, child_of};
use crate::bytes::head_at;

/// A position before, at or behind the entries of a memtable. It sees all entries that existed when
/// it was created; later ones may or may not show.
pub(crate) struct Cursor {
    memtable: Arc<Memtable>,
    /// Entries of the current leaf, copied consistently.
    leaf: Vec<*const Entry>,
    slot: usize,
    /// Bounds of the leaf; null at the ends of the tree.
    low: *const Entry,
    high: *const Entry,
}

// SAFETY: the pointers refer to the memtable that it holds, whose entries any thread may read.
unsafe impl Send for Cursor {}
// SAFETY: as above.
unsafe impl Sync for Cursor {}

impl Cursor {
    /// An unpositioned cursor.
    pub(crate) fn new(memtable: Arc<Memtable>) -> Cursor {
        let leaf = Vec::with_capacity(FANOUT);
        Cursor { memtable, leaf, slot: 0, low: std::ptr::null(), high: std::ptr::null() }
    }

    /// Moves to the first key at or above `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        self.load_leaf(key);
        let entries = &self.leaf;
        // SAFETY: entries live as long as the memtable.
        self.slot = entries.partition_point(|&entry| unsafe { (*entry).key() } < key);
        self.skip_to_next_leaf();
    }

    /// Moves to the last key below `key`, or to the last of all.
    pub(crate) fn seek_below(&mut self, key: Option<&[u8]>) {
        match key {
            None => {
                self.load_leaf_by(|node| node.count().checked_sub(1));
                self.slot = self.leaf.len();
            }
            Some(key) => {
                self.load_leaf(key);
                let entries = &self.leaf;
                // SAFETY: entries live as long as the memtable.
                self.slot = entries.partition_point(|&entry| unsafe { (*entry).key() } < key);
            }
        }
        self.step_back();
    }

    /// The current key and its newest version.
    pub(crate) fn current(&self) -> Option<(&[u8], &KeyVersion)> {
        let &entry = self.leaf.get(self.slot)?;
        // SAFETY: entries live as long as the memtable.
        let entry = unsafe { &*entry };
        Some((entry.key(), entry.newest()))
    }

    pub(crate) fn next(&mut self) {
        self.slot += 1;
        self.skip_to_next_leaf();
    }

    pub(crate) fn previous(&mut self) {
        self.step_back();
    }

    fn skip_to_next_leaf(&mut self) {
        while self.slot >= self.leaf.len() {
            // SAFETY: bounds are entries of the memtable.
            let Some(high) = (unsafe { self.high.as_ref() }) else {
                self.leaf.clear();
                return;
            };
            self.load_leaf(high.key());
            let key = high.key();
            // SAFETY: as above.
            self.slot = self.leaf.partition_point(|&entry| unsafe { (*entry).key() } < key);
        }
    }

    /// Moves from `slot`, exclusive, to the previous entry.
    fn step_back(&mut self) {
        while self.slot == 0 {
            // SAFETY: bounds are entries of the memtable.
            let Some(low) = (unsafe { self.low.as_ref() }) else {
                self.leaf.clear();
                return;
            };
            let key = low.key();
            // The leaf with all keys below the bound: the child before the first whose lower bound
            // is at or above it.
            self.load_leaf_by(|node| {
                let head = head_at(key, node.prefix_len());
                let (index, _) = child_of(node, key);
                if index == 0 {
                    return Some(0);
                }
                // SAFETY: only nodes with a height are passed, and fences are entries.
                let fence = unsafe {
                    let fence =
                        node.as_inner().fences[index].load(std::sync::atomic::Ordering::Acquire);
                    fence.as_ref()?
                };
                let is_bound = node.head(index) == head && fence.key() == key;
                Some(if is_bound { index - 1 } else { index })
            });
            // SAFETY: as above.
            self.slot = self.leaf.partition_point(|&entry| unsafe { (*entry).key() } < key);
        }
        self.slot -= 1;
    }

    fn load_leaf(&mut self, key: &[u8]) {
        self.load_leaf_by(|node| Some(child_of(node, key).0));
    }

    /// Copies the leaf that `choose` leads to.
    fn load_leaf_by(&mut self, choose: impl Fn(&super::Node) -> Option<usize>) {
        loop {
            self.leaf.clear();
            let Some((leaf, version, path)) = self.memtable.descend(&choose) else { return };
            let entries = (0..leaf.count()).map(|slot| leaf.entry(slot));
            self.leaf.extend(entries.take_while(|entry| !entry.is_null()));
            if leaf.is_unchanged(version) {
                (self.low, self.high) = (path.low, path.high);
                return;
            }
        }
    }
}
