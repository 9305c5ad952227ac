//! Zeroed memory with a fixed address, so that a file's content can be mapped.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Range;
use std::ptr::NonNull;

/// Alignment of file pages.
const ALIGNMENT: usize = 4096;

pub struct Memory {
    start: NonNull<u8>,
    capacity: usize,
}

// SAFETY: it owns its bytes; sharers are ordered by the lock of the disk or, for stores into a
// mapping, by the engine.
unsafe impl Send for Memory {}

impl Memory {
    pub fn zeroed(capacity: usize) -> Memory {
        let capacity = capacity.max(ALIGNMENT).next_multiple_of(ALIGNMENT);
        let layout = Memory::layout(capacity);
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        match NonNull::new(start) {
            Some(start) => Memory { start, capacity },
            None => handle_alloc_error(layout),
        }
    }

    fn layout(capacity: usize) -> Layout {
        Layout::from_size_align(capacity, ALIGNMENT).expect("a valid layout")
    }

    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn read(&self, at: usize, into: &mut [u8]) {
        assert!(at + into.len() <= self.capacity);
        // SAFETY: the range was just checked; `into` does not overlap it, since nobody gets a
        // reference into it.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.start.as_ptr().add(at),
                into.as_mut_ptr(),
                into.len(),
            );
        }
    }

    pub fn copy(&self, part: Range<usize>) -> Vec<u8> {
        let mut bytes = vec![0; part.len()];
        self.read(part.start, &mut bytes);
        bytes
    }

    pub fn write(&mut self, at: usize, from: &[u8]) {
        assert!(at + from.len() <= self.capacity);
        // SAFETY: the range was just checked. `from` may be in a mapping of the same file, so
        // the two may overlap.
        unsafe {
            std::ptr::copy(from.as_ptr(), self.start.as_ptr().add(at), from.len());
        }
    }

    pub fn zero(&mut self, part: Range<usize>) {
        assert!(part.end <= self.capacity);
        // SAFETY: the range was just checked.
        unsafe { std::ptr::write_bytes(self.start.as_ptr().add(part.start), 0, part.len()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with the same layout, and no longer used.
        unsafe { dealloc(self.start.as_ptr(), Memory::layout(self.capacity)) }
    }
}
