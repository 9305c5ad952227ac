//! Memory that is only ever added to, and freed as a whole.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

const FIRST_BLOCK: usize = 16 << 10;
/// A huge page: fewer misses of the TLB in a tree that is much larger than what it covers.
const LARGEST_BLOCK: usize = 2 << 20;
/// What everything in it is aligned to: a cache line.
const LINE: usize = 64;

/// Zeroed memory from blocks that grow up to a huge page.
pub(super) struct Arena {
    blocks: Vec<(NonNull<u8>, Layout)>,
    next: usize,
    end: usize,
    taken: usize,
}

// SAFETY: the blocks are owned and nothing in them belongs to a thread.
unsafe impl Send for Arena {}

impl Arena {
    pub(super) fn new() -> Arena {
        Arena { blocks: Vec::new(), next: 0, end: 0, taken: 0 }
    }

    /// Bytes of all blocks.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// `len` zeroed bytes, aligned to 8 or to a cache line; they live as long as the arena.
    pub(super) fn take(&mut self, len: usize, whole_lines: bool) -> NonNull<u8> {
        let align = if whole_lines { LINE } else { 8 };
        let at = self.next.next_multiple_of(align);
        if at + len > self.end {
            self.add_block(len);
            return self.take(len, whole_lines);
        }
        self.next = at + len;
        let Some((block, layout)) = self.blocks.last() else { unreachable!("a block was added") };
        let start = self.end - layout.size();
        // SAFETY: `at - start + len` is within the block.
        unsafe { block.add(at - start) }
    }

    #[cold]
    fn add_block(&mut self, least: usize) {
        let last = self.blocks.last().map_or(FIRST_BLOCK / 2, |(_, layout)| layout.size());
        let size = (last * 2).min(LARGEST_BLOCK).max(least.next_multiple_of(LINE));
        let align = if size == LARGEST_BLOCK { LARGEST_BLOCK } else { LINE };
        let Ok(layout) = Layout::from_size_align(size, align) else {
            unreachable!("sizes are far below the limit of a layout")
        };
        // SAFETY: the size is not zero.
        let block = unsafe { alloc_zeroed(layout) };
        let Some(block) = NonNull::new(block) else { handle_alloc_error(layout) };
        if align == LARGEST_BLOCK {
            // SAFETY: the block is ours; the advice changes no content. It is only a hint.
            let _ = unsafe {
                let start = block.as_ptr().cast();
                rustix::mm::madvise(start, size, rustix::mm::Advice::LinuxHugepage)
            };
        }
        self.blocks.push((block, layout));
        // Addresses within the arena are counted on over the blocks, each aligned as a block is.
        self.next = self.end.next_multiple_of(LARGEST_BLOCK);
        self.end = self.next + size;
        self.taken += size;
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for (block, layout) in self.blocks.drain(..) {
            // SAFETY: it was allocated with this layout and is freed once.
            unsafe { dealloc(block.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_zeroed_aligned_memory_that_is_nobody_elses() {
        let mut arena = Arena::new();
        let mut given = Vec::new();
        for round in 0..20_000_usize {
            let len = 1 + round * 37 % 500;
            let lines = round % 3 == 0;
            let start = arena.take(len, lines).as_ptr();
            assert_eq!(start as usize % if lines { 64 } else { 8 }, 0);
            // SAFETY: the arena gave `len` bytes.
            let bytes = unsafe { std::slice::from_raw_parts_mut(start, len) };
            assert!(bytes.iter().all(|&byte| byte == 0));
            bytes.fill(0xff);
            given.push((start as usize, len));
        }
        let large = arena.take(5 << 20, false);
        given.push((large.as_ptr() as usize, 5 << 20));
        given.sort_unstable();
        assert!(given.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0));
        assert!(arena.taken() >= given.iter().map(|(_, len)| len).sum());
    }
}
