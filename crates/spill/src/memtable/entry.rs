//! A key in memory with its versions since the memtable was created.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::arena::Arena;
use crate::value_pointer::ValuePointer;

/// A key, followed by its bytes, and its versions, newest first.
#[repr(C)]
pub(super) struct Entry {
    newest: AtomicPtr<KeyVersion>,
    key_len: u32,
}

/// One write of a key.
#[derive(Debug)]
pub(crate) struct KeyVersion {
    pub(crate) sequence: u64,
    pub(crate) pointer: ValuePointer,
    /// Length of its record in the log, in bytes.
    pub(crate) size: u32,
    older: *const KeyVersion,
}

impl KeyVersion {
    pub(crate) fn older(&self) -> Option<&KeyVersion> {
        // SAFETY: versions live as long as their arena, which is borrowed with this one.
        unsafe { self.older.as_ref() }
    }

    /// The newest version from this one on with a sequence up to `bound`.
    #[inline]
    pub(crate) fn at(&self, bound: u64) -> Option<&KeyVersion> {
        let mut version = self;
        while version.sequence > bound {
            version = version.older()?;
        }
        Some(version)
    }
}

impl Entry {
    /// A new entry with its first version.
    pub(super) fn new(
        arena: &mut Arena,
        key: &[u8],
        first: (u64, ValuePointer, u32),
    ) -> *const Entry {
        let key_capacity = key.len().next_multiple_of(8);
        let all = size_of::<Entry>() + key_capacity + size_of::<KeyVersion>();
        let slot = arena.take(all, false);
        // SAFETY: the slot is zeroed, aligned to 8, exclusively ours, and large enough for the
        // entry, the key and the version after it.
        unsafe {
            let read_key = slot.add(size_of::<Entry>());
            let version = read_key.add(key_capacity).cast::<KeyVersion>();
            let (sequence, pointer, size) = first;
            version.write(KeyVersion { sequence, pointer, size, older: ptr::null() });
            ptr::copy_nonoverlapping(key.as_ptr(), read_key.as_ptr(), key.len());
            let entry = slot.cast::<Entry>();
            let newest = AtomicPtr::new(version.as_ptr());
            entry.write(Entry { newest, key_len: key.len() as u32 });
            entry.as_ptr()
        }
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        // SAFETY: the key was written after the entry when it was created.
        unsafe {
            let start = ptr::from_ref(self).add(1).cast::<u8>();
            std::slice::from_raw_parts(start, self.key_len as usize)
        }
    }

    #[inline]
    pub(super) fn newest(&self) -> &KeyVersion {
        // SAFETY: there is at least one version, and versions live as long as the entry.
        unsafe { &*self.newest.load(Ordering::Acquire) }
    }

    /// Prepends a version; its sequence is the highest. Only the writer calls this.
    pub(super) fn add(&self, arena: &mut Arena, sequence: u64, pointer: ValuePointer, size: u32) {
        let slot = arena.take(size_of::<KeyVersion>(), false).cast::<KeyVersion>();
        let mut version = KeyVersion { sequence, pointer, size, older: ptr::null() };
        let newest = self.newest.load(Ordering::Relaxed);
        // SAFETY: `newest` points to a version of this entry.
        debug_assert!(unsafe { (*newest).sequence } < sequence);
        version.older = newest;
        // SAFETY: the slot is ours, aligned, and large enough.
        unsafe { slot.write(version) };
        self.newest.store(slot.as_ptr(), Ordering::Release);
    }
}
