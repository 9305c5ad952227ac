//! Buffers provided to the kernel, which picks one for each receive.
#![allow(unsafe_code)]

use std::alloc::{self, Layout};
use std::io;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// How many buffers there are; a power of two.
const COUNT: u16 = 128;
/// The size of one, in bytes.
const SIZE: usize = 16 << 10;
/// The ring of their addresses comes first; the buffers start on a page.
const ENTRIES: usize = (COUNT as usize * size_of::<BufRingEntry>()).next_multiple_of(PAGE);
const PAGE: usize = 4096;

pub(crate) struct BorrowedBuffer {
    memory: NonNull<u8>,
    tail: u16,
}

impl BorrowedBuffer {
    /// The name of the group in this process' ring.
    pub(crate) const GROUP: u16 = 0;
    /// The bytes that can be received before buffers are returned.
    pub(crate) const TOTAL: usize = COUNT as usize * SIZE;

    const LAYOUT: Layout = match Layout::from_size_align(ENTRIES + BorrowedBuffer::TOTAL, PAGE) {
        Ok(layout) => layout,
        Err(_) => panic!("a page is a power of two"),
    };

    pub(crate) fn new() -> BorrowedBuffer {
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc::alloc_zeroed(BorrowedBuffer::LAYOUT) };
        let Some(memory) = NonNull::new(memory) else {
            alloc::handle_alloc_error(BorrowedBuffer::LAYOUT)
        };
        let mut buffers = BorrowedBuffer { memory, tail: 0 };
        for id in 0..COUNT {
            buffers.give_back(id);
        }
        buffers
    }

    /// Provides them to a ring.
    ///
    /// # Safety
    /// They must not be dropped before they are unregistered.
    pub(crate) unsafe fn register(&self, ring: &Submitter<'_>) -> io::Result<()> {
        // SAFETY: the memory begins with room for so many entries, on a page, and lives as long
        // as the caller promises.
        unsafe {
            ring.register_buf_ring_with_flags(
                self.memory.as_ptr().expose_provenance() as u64,
                COUNT,
                BorrowedBuffer::GROUP,
                0,
            )
        }
    }

    /// The first `length` bytes of a buffer that the kernel has filled.
    ///
    /// # Safety
    /// The kernel has given the buffer out and it was not given back since.
    pub(crate) unsafe fn bytes(&self, id: u16, length: usize) -> &[u8] {
        assert!(id < COUNT && length <= SIZE);
        // SAFETY: within the memory, which was zeroed once and is not the kernel's now.
        unsafe {
            let start = self.memory.as_ptr().add(ENTRIES + usize::from(id) * SIZE);
            slice::from_raw_parts(start, length)
        }
    }

    /// Returns a buffer to the kernel.
    pub(crate) fn give_back(&mut self, id: u16) {
        assert!(id < COUNT);
        let entries = self.memory.as_ptr().cast::<BufRingEntry>();
        // SAFETY: both lie within the memory: the entry below the count, the tail (whose bytes
        // are reserved in the first entry) by the kernel's definition. The kernel reads an entry
        // only once the tail is past it.
        unsafe {
            let entry = &mut *entries.add(usize::from(self.tail % COUNT));
            let start = self.memory.as_ptr().add(ENTRIES + usize::from(id) * SIZE);
            entry.set_addr(start.expose_provenance() as u64);
            entry.set_len(SIZE as u32);
            entry.set_bid(id);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(entries).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for BorrowedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no longer registered.
        unsafe { alloc::dealloc(self.memory.as_ptr(), BorrowedBuffer::LAYOUT) }
    }
}
