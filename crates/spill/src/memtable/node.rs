//! A node of the tree: changed by one writer, read by any thread at any time.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

use super::entry::Entry;
use crate::backoff::Backoff;
use crate::schedule::yield_point;

/// Entries of a node; few under Miri, which tests small trees.
pub(super) const FANOUT: usize = if cfg!(miri) { 8 } else { 64 };

/// A leaf (`slots` are entries) or an inner node (`slots` are nodes; `fences[i]` is the lower bound
/// of child `i`, none for child 0).
///
/// Readers are optimistic: they read first and validate the node's version afterwards
/// ([`Node::is_unchanged`]). Pointers are valid even if that fails, since their targets live as
/// long as the tree.
#[repr(C, align(64))]
pub(super) struct Node {
    /// Odd while the node is being changed.
    version: AtomicU64,
    count: AtomicU32,
    /// 0: a leaf.
    pub(super) height: u32,
    /// Bytes that all keys between the node's bounds share; heads follow them.
    prefix_len: AtomicU32,
    pub(super) heads: [AtomicU64; FANOUT],
    pub(super) slots: [AtomicPtr<()>; FANOUT],
}

/// An inner node is followed by the bounds of its children.
#[repr(C, align(64))]
pub(super) struct InnerNode {
    pub(super) node: Node,
    pub(super) fences: [AtomicPtr<Entry>; FANOUT],
}

impl Node {
    #[inline]
    pub(super) fn count(&self) -> usize {
        (self.count.load(Ordering::Relaxed) as usize).min(FANOUT)
    }

    pub(super) fn set_count(&self, count: usize) {
        self.count.store(count as u32, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn prefix_len(&self) -> usize {
        self.prefix_len.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set_prefix_len(&self, prefix_len: usize) {
        self.prefix_len.store(prefix_len as u32, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn head(&self, index: usize) -> u64 {
        self.heads[index].load(Ordering::Relaxed)
    }

    /// The version, once nobody changes the node.
    #[inline]
    pub(super) fn stable_version(&self) -> u64 {
        let mut backoff = Backoff::default();
        loop {
            let version = self.version.load(Ordering::Acquire);
            if version & 1 == 0 {
                return version;
            }
            backoff.wait();
        }
    }

    /// Whether all that was read since `version` belongs to it.
    #[inline]
    pub(super) fn is_unchanged(&self, version: u64) -> bool {
        yield_point();
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == version
    }

    /// Invalidates concurrent reads of the node. Only the writer calls this.
    pub(super) fn begin_change(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        yield_point();
    }

    pub(super) fn end_change(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Release);
    }

    /// Number of heads below `head`.
    #[inline]
    pub(super) fn lower_bound(&self, head: u64) -> usize {
        let mut low = 0;
        let mut len = self.count();
        while len > 0 {
            let half = len / 2;
            let right = self.head(low + half) < head;
            low = if right { low + half + 1 } else { low };
            len = if right { len - half - 1 } else { half };
        }
        low
    }

    /// The entry at `index` of a leaf; may be null while the leaf changes.
    #[inline]
    pub(super) fn entry(&self, index: usize) -> *const Entry {
        self.slots[index].load(Ordering::Acquire).cast_const().cast()
    }

    #[inline]
    pub(super) fn child(&self, index: usize) -> *const Node {
        self.slots[index].load(Ordering::Acquire).cast_const().cast()
    }

    /// # Safety
    /// The node is an inner one (`height > 0`).
    #[inline]
    pub(super) unsafe fn as_inner(&self) -> &InnerNode {
        // SAFETY: every node with a height was allocated as an `InnerNode`, whose first field this
        // is.
        unsafe { &*std::ptr::from_ref(self).cast::<InnerNode>() }
    }

    /// Opens a gap at `index`, which the writer then fills.
    pub(super) fn open_gap(&self, index: usize) {
        let count = self.count();
        for slot in (index..count).rev() {
            self.copy(slot, self, slot + 1);
        }
        self.set_count(count + 1);
    }

    /// Copies an entry to another slot, with its head.
    pub(super) fn copy(&self, from: usize, to: &Node, slot: usize) {
        to.heads[slot].store(self.head(from), Ordering::Relaxed);
        yield_point();
        to.slots[slot].store(self.slots[from].load(Ordering::Relaxed), Ordering::Release);
        if self.height > 0 {
            // SAFETY: both have the same height, which is not 0.
            let (from_inner, to_inner) = unsafe { (self.as_inner(), to.as_inner()) };
            let fence = from_inner.fences[from].load(Ordering::Relaxed);
            to_inner.fences[slot].store(fence, Ordering::Release);
        }
    }
}
