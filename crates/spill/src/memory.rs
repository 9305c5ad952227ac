//! Zeroed memory of a size and alignment of one's own, in huge pages where it is large.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

/// A huge page: one entry of the TLB, and one piece for a device.
pub(crate) const HUGE: usize = 2 << 20;

/// Bytes that are freed with it.
pub(crate) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it is plain memory, and nothing in it belongs to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// So many bytes, all zero, that begin at a multiple of `align`. An `align` of [`HUGE`] asks for
    /// huge pages, which the system may also not give.
    pub(crate) fn new(len: usize, align: usize) -> Memory {
        let Ok(layout) = Layout::from_size_align(len.max(1), align) else {
            unreachable!("sizes are far below the limit of a layout")
        };
        let is_huge = align >= HUGE;
        // SAFETY: the layout has a size.
        let start = unsafe { if is_huge { alloc(layout) } else { alloc_zeroed(layout) } };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        let mut memory = Memory { start, layout };
        if is_huge {
            // Before the first store, which would bring small pages otherwise.
            // SAFETY: the memory is ours; the advice changes no content. It is only a hint.
            let _ = unsafe {
                let start = start.as_ptr().cast();
                rustix::mm::madvise(start, len, rustix::mm::Advice::LinuxHugepage)
            };
            memory.clear();
        }
        memory
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: as below, and nobody changes it meanwhile.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len()) }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: all of it was written, and whoever has it has it alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len()) }
    }

    pub(crate) fn clear(&mut self) {
        // SAFETY: it is ours alone.
        unsafe { ptr::write_bytes(self.start.as_ptr(), 0, self.len()) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and is freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
