//! Zeroed memory with chosen size and alignment, in huge pages where it is large.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Size of a huge page: one TLB entry, and one segment of a device request.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// An owned block of bytes.
pub(crate) struct AlignedMemory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: plain memory that does not belong to a thread.
unsafe impl Send for AlignedMemory {}

impl AlignedMemory {
    /// `len` zeroed bytes, aligned to `align`. An `align` of [`HUGE_PAGE`] asks for huge pages; the
    /// system may refuse.
    pub(crate) fn new(len: usize, align: usize) -> AlignedMemory {
        let Ok(layout) = Layout::from_size_align(len.max(1), align) else {
            unreachable!("sizes are far below the limit of a layout")
        };
        let is_mapped = is_mapped(layout);
        let start = if is_mapped {
            mapped(layout)
        } else {
            // SAFETY: the layout has a non-zero size.
            NonNull::new(unsafe { alloc_zeroed(layout) })
        };
        let Some(start) = start else { handle_alloc_error(layout) };
        let mut memory = AlignedMemory { start, layout };
        if is_mapped {
            // Faults the pages in here instead of at their first use.
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
        // SAFETY: all of it was written, and the owner has it exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len()) }
    }

    pub(crate) fn clear(&mut self) {
        // SAFETY: it is exclusively ours.
        unsafe { ptr::write_bytes(self.start.as_ptr(), 0, self.len()) };
    }
}

impl Drop for AlignedMemory {
    fn drop(&mut self) {
        if is_mapped(self.layout) {
            // SAFETY: it was mapped with this length, and nobody uses it any more.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), mapped_len(self.layout)) };
            return;
        }
        // SAFETY: it was allocated with this layout and is freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

fn is_mapped(layout: Layout) -> bool {
    layout.align() >= HUGE_PAGE
}

fn mapped_len(layout: Layout) -> usize {
    layout.size().next_multiple_of(HUGE_PAGE)
}

/// Maps memory directly: an allocator would cache blocks of this size per thread and keep twice the
/// memory in use. `None` if there is none.
fn mapped(layout: Layout) -> Option<NonNull<u8>> {
    let len = mapped_len(layout);
    let most = len + layout.align();
    let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at an address of the system's choice touches no other memory.
    let all = unsafe { mmap_anonymous(ptr::null_mut(), most, rights, flags) }.ok()?.cast::<u8>();
    let before = all.align_offset(layout.align());
    // SAFETY: all three parts belong to the mapping: the unused parts before the first multiple and
    // behind the length, and the part between. The advice comes before the first store, which would
    // fault in small pages; it changes no content.
    unsafe {
        let start = all.add(before);
        if before > 0 {
            let _ = munmap(all.cast(), before);
        }
        let _ = munmap(start.add(len).cast(), most - before - len);
        let _ = madvise(start.cast(), len, Advice::LinuxHugepage);
        NonNull::new(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_aligned_and_writable() {
        for (len, align) in
            [(1, 64), (5000, 4096), (HUGE_PAGE, HUGE_PAGE), (3 * HUGE_PAGE + 7, HUGE_PAGE)]
        {
            // Repeats, so that some blocks reuse freed memory.
            for round in 1..20_u8 {
                let mut memory = AlignedMemory::new(len, align);
                assert_eq!(memory.start().as_ptr().align_offset(align), 0);
                assert_eq!(memory.len(), len);
                assert!(memory.as_bytes().iter().all(|&byte| byte == 0));
                memory.bytes().fill(round);
            }
        }
    }
}
