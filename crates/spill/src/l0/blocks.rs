//! Blocks of memory for L0s, kept ready: the kernel takes up to a millisecond to give a huge page
//! out, which no writer should wait for.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

use crate::inner::lock;
use crate::schedule::Mutex;
use crate::schedule::atomic::{AtomicBool, Ordering};

/// A huge page: fewer misses of the TLB in a tree that is much larger than what it covers.
pub(super) const HUGE: usize = 2 << 20;

/// The most that are kept ready.
const READY: usize = 4;

/// Zeroed memory of its own, which the one who has it frees or gives back.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) start: NonNull<u8>,
    pub(super) layout: Layout,
}

// SAFETY: nothing in a block belongs to a thread.
unsafe impl Send for Block {}

impl Block {
    pub(super) fn new(layout: Layout) -> Block {
        // SAFETY: no caller asks for nothing.
        let start = unsafe { if layout == huge() { alloc(layout) } else { alloc_zeroed(layout) } };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        let block = Block { start, layout };
        if layout == huge() {
            // Before the first store, which would bring small pages otherwise.
            // SAFETY: the block is ours; the advice changes no content. It is only a hint.
            let _ = unsafe {
                let start = start.as_ptr().cast();
                rustix::mm::madvise(start, HUGE, rustix::mm::Advice::LinuxHugepage)
            };
            block.clear();
        }
        block
    }

    fn clear(&self) {
        // SAFETY: whoever has the block has it alone.
        unsafe { ptr::write_bytes(self.start.as_ptr(), 0, self.layout.size()) };
    }

    pub(super) fn free(self) {
        // SAFETY: it was allocated with this layout, and whoever has it frees it once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// The layout of the blocks that are kept.
pub(super) fn huge() -> Layout {
    match Layout::from_size_align(HUGE, HUGE) {
        Ok(layout) => layout,
        Err(_) => unreachable!("a huge page is far below the limit of a layout"),
    }
}

/// Huge pages that are ready for L0s, and some that L0s have used.
pub(crate) struct Blocks {
    kept: Mutex<Kept>,
    is_wanted: AtomicBool,
    /// How many are made ready, and how many wait to be used again: those of one L0, for memory
    /// that is new costs more than its zeros.
    most: usize,
    reused: usize,
}

#[derive(Default)]
struct Kept {
    ready: Vec<Block>,
    used: Vec<Block>,
}

impl Blocks {
    /// For L0s of so many bytes.
    pub(crate) fn new(memory: usize) -> Blocks {
        let most = READY.min(memory / HUGE);
        let is_wanted = AtomicBool::new(most > 0);
        Blocks { kept: Mutex::default(), is_wanted, most, reused: memory / HUGE }
    }

    /// Whether [`Blocks::prepare`] is to be called, which is said once.
    #[inline]
    pub(crate) fn asks(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed) && self.is_wanted.swap(false, Ordering::Relaxed)
    }

    /// Makes blocks ready; what it does others need not wait for.
    pub(crate) fn prepare(&self) {
        loop {
            let used = {
                let mut kept = lock(&self.kept);
                if kept.ready.len() >= self.most {
                    return;
                }
                kept.used.pop()
            };
            let block = match used {
                Some(block) => {
                    block.clear();
                    block
                }
                None => Block::new(huge()),
            };
            lock(&self.kept).ready.push(block);
        }
    }

    /// Frees what nobody has needed for a while.
    pub(crate) fn free_used(&self) {
        let used = std::mem::take(&mut lock(&self.kept).used);
        used.into_iter().for_each(Block::free);
    }

    /// A zeroed block.
    pub(super) fn take(&self) -> Block {
        let ready = lock(&self.kept).ready.pop();
        self.is_wanted.store(self.most > 0, Ordering::Relaxed);
        ready.unwrap_or_else(|| Block::new(huge()))
    }

    pub(super) fn give_back(&self, block: Block) {
        if block.layout == huge() {
            let mut kept = lock(&self.kept);
            if kept.used.len() < self.reused {
                kept.used.push(block);
                return;
            }
        }
        block.free();
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        let kept = std::mem::take(&mut *lock(&self.kept));
        kept.ready.into_iter().chain(kept.used).for_each(Block::free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_was_used_comes_back_zeroed() {
        let blocks = Blocks::new(HUGE);
        assert!(blocks.asks() && !blocks.asks());
        let block = blocks.take();
        // SAFETY: it was taken.
        unsafe { ptr::write_bytes(block.start.as_ptr(), 0xff, HUGE) };
        blocks.give_back(block);
        blocks.prepare();
        let again = blocks.take();
        assert_eq!(again.start, block.start);
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(again.start.as_ptr(), HUGE) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        blocks.give_back(again);
    }

    #[test]
    fn small_l0s_keep_nothing() {
        let blocks = Blocks::new(HUGE - 1);
        blocks.prepare();
        assert!(!blocks.asks() && lock(&blocks.kept).ready.is_empty());
    }
}
