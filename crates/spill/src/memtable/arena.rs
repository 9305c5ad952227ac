//! An arena: memory that only grows and is freed as a whole.

use std::ptr::NonNull;
use std::sync::Arc;

use super::block_pool::BlockPool;
use crate::memory::{AlignedMemory, HUGE_PAGE};

const FIRST_BLOCK: usize = 16 << 10;
/// Alignment of nodes: a cache line.
const LINE: usize = 64;

/// Zeroed memory in blocks that grow up to a huge page.
pub(super) struct Arena {
    blocks: Vec<AlignedMemory>,
    pool: Arc<BlockPool>,
    next: usize,
    end: usize,
    taken: usize,
}

impl Arena {
    /// An arena that takes huge pages from `pool` and returns them there.
    pub(super) fn new(pool: Arc<BlockPool>) -> Arena {
        Arena { blocks: Vec::new(), pool, next: 0, end: 0, taken: 0 }
    }

    /// Bytes handed out, and lost between blocks.
    pub(super) fn used(&self) -> usize {
        self.taken - (self.end - self.next)
    }

    /// `len` zeroed bytes, aligned to 8 or to a cache line; they live as long as the arena.
    pub(super) fn take(&mut self, len: usize, whole_lines: bool) -> NonNull<u8> {
        let align = if whole_lines { LINE } else { 8 };
        let offset = self.next.next_multiple_of(align);
        if offset + len > self.end {
            self.add_block(len);
            return self.take(len, whole_lines);
        }
        self.next = offset + len;
        let Some(block) = self.blocks.last() else { unreachable!("a block was added") };
        let start = self.end - block.len();
        // SAFETY: `offset - start + len` is within the block.
        unsafe { block.start().add(offset - start) }
    }

    #[cold]
    fn add_block(&mut self, least: usize) {
        let last = self.blocks.last().map_or(FIRST_BLOCK / 2, AlignedMemory::len);
        let size = (last * 2).min(HUGE_PAGE).max(least.next_multiple_of(LINE));
        let block =
            if size == HUGE_PAGE { self.pool.take() } else { AlignedMemory::new(size, LINE) };
        self.blocks.push(block);
        // Offsets continue across blocks; each block starts at an aligned offset.
        self.next = self.end.next_multiple_of(HUGE_PAGE);
        self.end = self.next + size;
        self.taken += size;
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for block in self.blocks.drain(..) {
            self.pool.release(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_zeroed_aligned_and_disjoint() {
        let mut arena = Arena::new(Arc::new(BlockPool::new(0)));
        let mut given = Vec::new();
        for round in 0..20_000_usize {
            let len = 1 + round * 37 % 500;
            let whole_lines = round % 3 == 0;
            let start = arena.take(len, whole_lines).as_ptr();
            assert_eq!(start as usize % if whole_lines { 64 } else { 8 }, 0);
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
        assert!(arena.used() >= given.iter().map(|(_, len)| len).sum());
    }
}
