//! Interleaved look-ups: a step that would miss the cache issues a prefetch, and the other look-ups
//! run meanwhile.

use std::mem::offset_of;
use std::ptr;

use super::entry::Entry;
use super::node::Node;
use super::{KeyVersion, Memtable, child_of, find};
use crate::bytes::head_at;
use crate::prefetch;

/// Cache lines that a node search touches before the slots: header and heads.
const LINES: usize = offset_of!(Node, slots).div_ceil(64);
/// Cache lines of an entry with a typical key and its first version.
const ENTRY_LINES: usize = 2;

/// A look-up in progress.
pub(crate) struct Search<'a> {
    memtable: Option<&'a Memtable>,
    key: &'a [u8],
    state: SearchState<'a>,
}

/// The next step; its memory was prefetched.
#[derive(Clone, Copy)]
enum SearchState<'a> {
    Root,
    /// A child of a node, with the node's version when it was chosen.
    Child(&'a Node, (&'a Node, u64)),
    /// The slot of a leaf that is probably the key's.
    Slot(&'a Node, u64, usize),
    /// Everything that the search of a leaf touches.
    Leaf(&'a Node, u64),
    Found(Option<&'a Entry>),
}

impl<'a> Search<'a> {
    /// Starts in a memtable, if there is one.
    pub(crate) fn new(memtable: Option<&'a Memtable>, key: &'a [u8]) -> Self {
        Search { memtable, key, state: SearchState::Root }
    }

    /// The newest version of the key, once the look-up is finished.
    pub(crate) fn found(&self) -> Option<&'a KeyVersion> {
        match self.state {
            SearchState::Found(entry) => entry.map(Entry::newest),
            _ => None,
        }
    }

    /// Takes the next step; false if the look-up was already finished.
    fn step(&mut self) -> bool {
        self.state = match self.state {
            SearchState::Found(_) => return false,
            SearchState::Root => match self.memtable.and_then(Memtable::stable_root) {
                None => SearchState::Found(None),
                Some((root, version)) => self.visit_node(root, version),
            },
            SearchState::Child(child, (parent, seen)) => {
                let version = child.stable_version();
                match parent.is_unchanged(seen) {
                    true => self.visit_node(child, version),
                    false => SearchState::Root,
                }
            }
            SearchState::Slot(leaf, version, slot) => {
                prefetch::lines(leaf.entry(slot).cast(), ENTRY_LINES);
                SearchState::Leaf(leaf, version)
            }
            SearchState::Leaf(leaf, version) => {
                let found = find(leaf, self.key).ok();
                if let Some(entry) = found {
                    prefetch::lines(ptr::from_ref(entry.newest()).cast(), 1);
                }
                match leaf.is_unchanged(version) {
                    true => SearchState::Found(found),
                    false => SearchState::Root,
                }
            }
        };
        true
    }

    /// Searches a node whose memory has arrived.
    fn visit_node(&self, node: &'a Node, version: u64) -> SearchState<'a> {
        if node.height == 0 {
            let head = head_at(self.key, node.prefix_len());
            let slot = node.lower_bound(head);
            if slot < node.count() && node.head(slot) == head {
                prefetch::lines(ptr::from_ref(&node.slots[slot]).cast(), 1);
                return SearchState::Slot(node, version, slot);
            }
            return SearchState::Leaf(node, version);
        }
        let child = node.child(child_of(node, self.key).0);
        if !node.is_unchanged(version) {
            return SearchState::Root;
        }
        prefetch::lines(child.cast(), LINES);
        // SAFETY: an unchanged node has valid children, which live as long as the tree.
        SearchState::Child(unsafe { &*child }, (node, version))
    }
}

/// Runs all look-ups to their end, in turns.
pub(crate) fn run_interleaved(searches: &mut [Search<'_>]) {
    let mut any_left = true;
    while any_left {
        any_left = false;
        for search in &mut *searches {
            any_left |= search.step();
        }
    }
}
