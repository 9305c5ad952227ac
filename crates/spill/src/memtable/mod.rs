//! The memtable (L0 in Kreon): the ordered in-memory index of recent writes. One writer at a time
//! inserts; readers take no lock.

mod arena;
mod block_pool;
mod cursor;
mod entry;
mod interleaved;
mod node;

use std::cell::UnsafeCell;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use arena::Arena;
pub(crate) use block_pool::BlockPool;
pub(crate) use cursor::Cursor;
use entry::Entry;
pub(crate) use entry::KeyVersion;
pub(crate) use interleaved::{Search, run_interleaved};
use node::{FANOUT, InnerNode, Node};

use crate::bytes::{common_prefix, head_at};
use crate::prefetch;
use crate::value_pointer::ValuePointer;

/// A B+-tree in an arena. Nodes hold eight bytes of each key, those after the prefix that all keys
/// of the node share; ties are resolved by the whole key.
pub(crate) struct Memtable {
    root: AtomicPtr<Node>,
    keys: AtomicUsize,
    bytes: AtomicUsize,
    /// Used by the writer alone.
    arena: UnsafeCell<Arena>,
}

// SAFETY: only `insert` and `seek` use the arena, and they have one caller at a time; everything
// else is atomic, and nothing is freed before the whole.
unsafe impl Send for Memtable {}
// SAFETY: as above.
unsafe impl Sync for Memtable {}

impl Memtable {
    /// An empty memtable with memory from `blocks`.
    pub(crate) fn new(blocks: &Arc<BlockPool>) -> Memtable {
        let arena = Arena::new(Arc::clone(blocks));
        Memtable {
            root: AtomicPtr::new(ptr::null_mut()),
            keys: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            arena: UnsafeCell::new(arena),
        }
    }

    /// Number of keys.
    pub(crate) fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// Bytes in use; the last block has more.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys() == 0
    }

    /// The newest version of a key.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<&KeyVersion> {
        self.entry(key).map(Entry::newest)
    }

    /// The newest version of a key up to a bound. The bound is read after the key is found and
    /// before its versions are.
    #[inline]
    pub(crate) fn get_at(&self, key: &[u8], bound: impl FnOnce() -> u64) -> Option<&KeyVersion> {
        let entry = self.entry(key)?;
        let bound = bound();
        entry.newest().at(bound)
    }

    #[inline]
    fn entry(&self, key: &[u8]) -> Option<&Entry> {
        loop {
            let (leaf, version) = self.leaf_of(key)?;
            let found = find(leaf, key);
            if leaf.is_unchanged(version) {
                return found.ok();
            }
        }
    }

    /// Adds a version of a key unless a later one exists; returns whether it did.
    ///
    /// # Safety
    /// As for [`Memtable::seek`].
    pub(crate) unsafe fn insert(
        &self,
        key: &[u8],
        sequence: u64,
        pointer: ValuePointer,
        size: u32,
    ) -> bool {
        // SAFETY: guaranteed by the caller; nothing is inserted between the two.
        unsafe { self.seek(key).insert(key, sequence, pointer, size) }.is_some()
    }

    /// Finds the leaf for a key and prefetches it.
    ///
    /// # Safety
    /// No other insertion is under way: callers hold the lock of the log writer.
    pub(crate) unsafe fn seek(&self, key: &[u8]) -> InsertionPoint<'_> {
        // SAFETY: there is one writer, by the caller's guarantee.
        let arena = unsafe { &mut *self.arena.get() };
        let mut path = DescentPath::default();
        let mut node = self.root(arena);
        if node.count() == FANOUT && node.height > 0 {
            node = self.grow(arena, node);
        }
        while node.height > 0 {
            let (index, _) = child_of(node, key);
            // SAFETY: the writer sees consistent nodes; children live as long as the tree.
            let child = unsafe { &*node.child(index) };
            // A leaf is not inspected before its memory has arrived.
            let is_leaf = node.height == 1;
            if is_leaf {
                prefetch::lines(ptr::from_ref(child).cast(), size_of::<Node>().div_ceil(64));
            } else if child.count() == FANOUT {
                self.split(arena, node, index, &path);
                continue;
            }
            path.narrow(node, index);
            (path.parent, path.index) = (ptr::from_ref(node), index);
            node = child;
            if is_leaf {
                break;
            }
        }
        InsertionPoint { memtable: self, leaf: node, path }
    }

    /// All keys in order with their newest versions, while nobody writes.
    pub(crate) fn entries(&self) -> MemtableIter<'_> {
        // SAFETY: the root is a node of this tree, or null.
        let root = unsafe { self.root.load(Ordering::Acquire).as_ref() };
        MemtableIter { stack: root.map(|root| (root, 0)).into_iter().collect() }
    }

    /// The root, created if missing.
    fn root(&self, arena: &mut Arena) -> &Node {
        let mut root = self.root.load(Ordering::Acquire);
        if root.is_null() {
            root = new_node(arena, 0).as_ptr();
            self.root.store(root, Ordering::Release);
        }
        // SAFETY: the root is a node of this tree.
        unsafe { &*root }
    }

    /// Adds a root above a full one and splits it; returns the new root.
    fn grow<'a>(&'a self, arena: &mut Arena, root: &Node) -> &'a Node {
        let above = self.grow_root(arena, root);
        self.split(arena, above, 0, &DescentPath::default());
        above
    }

    /// Adds a root with the old one as its only child.
    fn grow_root<'a>(&'a self, arena: &mut Arena, root: &Node) -> &'a Node {
        let above = new_node(arena, root.height + 1);
        // SAFETY: it was just created and lives as long as the tree.
        let node = unsafe { above.as_ref() };
        node.slots[0].store(ptr::from_ref(root).cast_mut().cast(), Ordering::Relaxed);
        node.set_count(1);
        self.root.store(above.as_ptr(), Ordering::Release);
        node
    }

    /// Splits child `index` of `parent`, which has space for one more. `path` holds the bounds of
    /// `parent`.
    fn split(&self, arena: &mut Arena, parent: &Node, index: usize, path: &DescentPath) {
        // SAFETY: children are nodes of this tree.
        let left = unsafe { &*parent.child(index) };
        let mut bounds = *path;
        bounds.narrow(parent, index);
        let right = new_node(arena, left.height);
        // SAFETY: it was just created and lives as long as the tree.
        let right = unsafe { right.as_ref() };
        let count = left.count();
        // Ascending insertions fill the left node.
        let middle = if bounds.high.is_null() { count - count / 8 } else { count / 2 };
        let fence: *const Entry = if left.height == 0 {
            left.entry(middle)
        } else {
            // SAFETY: it has a height.
            unsafe { left.as_inner() }.fences[middle].load(Ordering::Relaxed)
        };
        parent.begin_change();
        left.begin_change();
        for slot in middle..count {
            left.copy(slot, right, slot - middle);
        }
        right.set_count(count - middle);
        left.set_count(middle);
        right.set_prefix_len(left.prefix_len());
        tighten_prefix(right, fence, bounds.high);
        tighten_prefix(left, bounds.low, fence);
        parent.open_gap(index + 1);
        parent.slots[index + 1].store(ptr::from_ref(right).cast_mut().cast(), Ordering::Release);
        // SAFETY: the parent has a height, and fences are entries of this tree.
        unsafe {
            let head = head_at((*fence).key(), parent.prefix_len());
            parent.heads[index + 1].store(head, Ordering::Relaxed);
            parent.as_inner().fences[index + 1].store(fence.cast_mut(), Ordering::Release);
        }
        left.end_change();
        parent.end_change();
    }

    /// The leaf of a key, with the leaf's version.
    #[inline]
    fn leaf_of(&self, key: &[u8]) -> Option<(&Node, u64)> {
        let (leaf, version, _) = self.descend(|node| Some(child_of(node, key).0))?;
        Some((leaf, version))
    }

    /// The root with its version, while it is the root; `None` if the tree is empty.
    #[inline]
    fn stable_root(&self) -> Option<(&Node, u64)> {
        loop {
            let root = self.root.load(Ordering::Acquire);
            // SAFETY: the root is a node of this tree or null; all nodes live as long as the tree.
            let node = unsafe { root.as_ref() }?;
            let version = node.stable_version();
            if self.root.load(Ordering::Acquire) == root {
                return Some((node, version));
            }
        }
    }

    /// Descends to a leaf as `choose` says for each inner node (`None`: it saw a concurrent
    /// change). Returns the leaf, its version and its bounds; `None` if the tree is empty.
    #[inline]
    fn descend(
        &self,
        choose: impl Fn(&Node) -> Option<usize>,
    ) -> Option<(&Node, u64, DescentPath)> {
        'again: loop {
            let (mut node, mut version) = self.stable_root()?;
            let mut path = DescentPath::default();
            while node.height > 0 {
                let Some(index) = choose(node) else { continue 'again };
                let child = node.child(index);
                path.narrow(node, index);
                if !node.is_unchanged(version) {
                    continue 'again;
                }
                // SAFETY: an unchanged node has valid children.
                let child = unsafe { &*child };
                let child_version = child.stable_version();
                if !node.is_unchanged(version) {
                    continue 'again;
                }
                (node, version) = (child, child_version);
            }
            return Some((node, version, path));
        }
    }
}

/// Iterates over the keys of a frozen memtable.
#[derive(Clone)]
pub(crate) struct MemtableIter<'a> {
    /// The nodes from the root on, each with its next slot.
    stack: Vec<(&'a Node, usize)>,
}

impl<'a> Iterator for MemtableIter<'a> {
    type Item = (&'a [u8], &'a KeyVersion);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (node, slot) = self.stack.last_mut()?;
            if *slot == node.count() {
                self.stack.pop();
                continue;
            }
            let index = *slot;
            *slot += 1;
            if node.height > 0 {
                // SAFETY: children live as long as the tree.
                let child = unsafe { &*node.child(index) };
                self.stack.push((child, 0));
                continue;
            }
            if let Some(ahead) = node.slots.get(index + 4) {
                prefetch::lines(ahead.load(Ordering::Relaxed).cast_const().cast(), 1);
            }
            // SAFETY: entries live as long as the tree.
            let entry = unsafe { &*node.entry(index) };
            return Some((entry.key(), entry.newest()));
        }
    }
}

/// The leaf for a key, while nothing is inserted.
pub(crate) struct InsertionPoint<'a> {
    pub(crate) memtable: &'a Memtable,
    leaf: &'a Node,
    path: DescentPath,
}

impl InsertionPoint<'_> {
    /// Adds a version of its key like [`Memtable::insert`]. Returns the record length of the
    /// previous newest version, 0 if there was none, `None` if a later one exists.
    ///
    /// # Safety
    /// As for [`Memtable::seek`], and nothing was inserted since.
    pub(crate) unsafe fn insert(
        self,
        key: &[u8],
        sequence: u64,
        pointer: ValuePointer,
        size: u32,
    ) -> Option<u32> {
        // SAFETY: there is one writer, by the caller's guarantee.
        let arena = unsafe { &mut *self.memtable.arena.get() };
        let InsertionPoint { memtable, leaf: mut node, mut path } = self;
        let before = match find(node, key) {
            Ok(entry) if entry.newest().sequence > sequence => return None,
            Ok(entry) => {
                let before = entry.newest().size;
                entry.add(arena, sequence, pointer, size);
                before
            }
            Err(mut slot) => {
                if node.count() == FANOUT {
                    // SAFETY: the parent, if there is one, is a node of this tree.
                    let parent = match unsafe { path.parent.as_ref() } {
                        Some(parent) => parent,
                        None => {
                            let parent = memtable.grow_root(arena, node);
                            (path.parent, path.index) = (ptr::from_ref(parent), 0);
                            parent
                        }
                    };
                    path.widen();
                    memtable.split(arena, parent, path.index, &path);
                    let (index, _) = child_of(parent, key);
                    // SAFETY: as above.
                    node = unsafe { &*parent.child(index) };
                    slot = match find(node, key) {
                        Ok(_) => unreachable!("the key was not there before the split"),
                        Err(slot) => slot,
                    };
                }
                let entry = Entry::new(arena, key, (sequence, pointer, size));
                node.begin_change();
                node.open_gap(slot);
                node.heads[slot].store(head_at(key, node.prefix_len()), Ordering::Relaxed);
                node.slots[slot].store(entry.cast_mut().cast(), Ordering::Release);
                node.end_change();
                // Only one thread inserts at a time.
                memtable.keys.store(memtable.keys() + 1, Ordering::Relaxed);
                0
            }
        };
        memtable.bytes.store(arena.used(), Ordering::Relaxed);
        Some(before)
    }
}

/// The path to a node: the bounds of its keys, and its parent.
#[derive(Clone, Copy)]
struct DescentPath {
    low: *const Entry,
    high: *const Entry,
    /// The parent's bounds.
    above: (*const Entry, *const Entry),
    parent: *const Node,
    index: usize,
}

impl Default for DescentPath {
    fn default() -> Self {
        let none = ptr::null();
        DescentPath { low: none, high: none, above: (none, none), parent: ptr::null(), index: 0 }
    }
}

impl DescentPath {
    /// Narrows `node`'s bounds to those of its child.
    #[inline]
    fn narrow(&mut self, node: &Node, index: usize) {
        self.above = (self.low, self.high);
        // SAFETY: only nodes with a height have children.
        let inner = unsafe { node.as_inner() };
        if index > 0 {
            self.low = inner.fences[index].load(Ordering::Acquire);
        }
        if index + 1 < node.count() {
            self.high = inner.fences[index + 1].load(Ordering::Acquire);
        }
    }

    /// Restores the bounds of the parent.
    fn widen(&mut self) {
        (self.low, self.high) = self.above;
    }
}

fn new_node(arena: &mut Arena, height: u32) -> NonNull<Node> {
    let size = if height == 0 { size_of::<Node>() } else { size_of::<InnerNode>() };
    let node = arena.take(size, true).cast::<Node>();
    // SAFETY: zeros are a node without entries; the memory is ours, aligned and large enough.
    unsafe { (*node.as_ptr()).height = height };
    node
}

/// The child that a key belongs to, and the key's head.
#[inline]
fn child_of(node: &Node, key: &[u8]) -> (usize, u64) {
    let head = head_at(key, node.prefix_len());
    // SAFETY: only nodes with a height are passed.
    let inner = unsafe { node.as_inner() };
    let count = node.count();
    // Child 0 has no lower bound.
    let mut low = 1;
    let mut len = count.saturating_sub(1);
    while len > 0 {
        let half = len / 2;
        let slot = low + half;
        let there = node.head(slot);
        let right = there < head
            || there == head && {
                let fence = inner.fences[slot].load(Ordering::Acquire);
                // SAFETY: fences are entries of the tree, or null before they are set.
                unsafe { fence.as_ref() }.is_some_and(|fence| fence.key() <= key)
            };
        low = if right { slot + 1 } else { low };
        len = if right { len - half - 1 } else { half };
    }
    (low - 1, head)
}

/// The entry of a key in a leaf, or the slot where it belongs.
#[inline]
fn find<'a>(leaf: &Node, key: &[u8]) -> Result<&'a Entry, usize> {
    let head = head_at(key, leaf.prefix_len());
    let count = leaf.count();
    let mut slot = leaf.lower_bound(head);
    while slot < count && leaf.head(slot) == head {
        // SAFETY: slots of a leaf are entries of the tree, or null before they are set.
        match unsafe { leaf.entry(slot).as_ref() } {
            None => break,
            Some(entry) => match entry.key().cmp(key) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Ok(entry),
                std::cmp::Ordering::Greater => break,
            },
        }
        slot += 1;
    }
    Err(slot)
}

/// Extends the prefix of a node to what its bounds share, and recomputes its heads.
fn tighten_prefix(node: &Node, low: *const Entry, high: *const Entry) {
    // SAFETY: bounds are entries of the tree.
    let (Some(low), Some(high)) = (unsafe { low.as_ref() }, unsafe { high.as_ref() }) else {
        return;
    };
    let prefix_len = common_prefix(low.key(), high.key());
    if prefix_len == node.prefix_len() {
        return;
    }
    node.set_prefix_len(prefix_len);
    for slot in 0..node.count() {
        let entry: *const Entry = if node.height == 0 {
            node.entry(slot)
        } else {
            // SAFETY: it has a height.
            unsafe { node.as_inner() }.fences[slot].load(Ordering::Relaxed)
        };
        // SAFETY: entries live as long as the tree; child 0 has no bound.
        if let Some(entry) = unsafe { entry.as_ref() } {
            node.heads[slot].store(head_at(entry.key(), prefix_len), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
