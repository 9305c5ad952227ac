//! A pool of memory blocks for memtables. The kernel may take a millisecond to provide a huge page,
//! which no writer should wait for.

use crate::locks::lock;
use crate::memory::{AlignedMemory, HUGE_PAGE};
use crate::schedule::Mutex;
use crate::schedule::atomic::{AtomicBool, Ordering};
use crate::time_slice;

/// The most blocks that are kept ready.
const MAX_READY: usize = 4;

fn huge() -> AlignedMemory {
    // A tree much larger than the TLB covers misses less with huge pages.
    AlignedMemory::new(HUGE_PAGE, HUGE_PAGE)
}

/// Huge pages ready for memtables, and pages that memtables have released.
pub(crate) struct BlockPool {
    pooled: Mutex<PooledBlocks>,
    is_wanted: AtomicBool,
    /// Limits: blocks kept ready, and released blocks kept for reuse. New memory costs more than
    /// zeroing, so the blocks of one memtable are kept.
    max_ready: usize,
    max_used: usize,
}

#[derive(Default)]
struct PooledBlocks {
    ready: Vec<AlignedMemory>,
    used: Vec<AlignedMemory>,
}

impl BlockPool {
    /// A pool for memtables of this many bytes.
    pub(crate) fn new(memory: usize) -> BlockPool {
        let max_ready = MAX_READY.min(memory / HUGE_PAGE);
        let is_wanted = AtomicBool::new(max_ready > 0);
        BlockPool { pooled: Mutex::default(), is_wanted, max_ready, max_used: memory / HUGE_PAGE }
    }

    /// Whether [`BlockPool::refill`] should be called; true once per request.
    #[inline]
    pub(crate) fn take_request(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed) && self.is_wanted.swap(false, Ordering::Relaxed)
    }

    /// Prepares blocks outside of the callers' threads.
    pub(crate) fn refill(&self) {
        loop {
            let used = {
                let mut pooled = lock(&self.pooled);
                if pooled.ready.len() >= self.max_ready {
                    return;
                }
                pooled.used.pop()
            };
            let block = match used {
                Some(mut block) => {
                    block.clear();
                    block
                }
                None => huge(),
            };
            lock(&self.pooled).ready.push(block);
            time_slice::yield_if_expired();
        }
    }

    /// Frees blocks that nobody has needed for a while.
    pub(crate) fn free_idle(&self) {
        let used = std::mem::take(&mut lock(&self.pooled).used);
        // Freed without the lock.
        drop(used);
    }

    /// A zeroed block.
    pub(super) fn take(&self) -> AlignedMemory {
        let ready = lock(&self.pooled).ready.pop();
        self.is_wanted.store(self.max_ready > 0, Ordering::Relaxed);
        ready.unwrap_or_else(huge)
    }

    pub(super) fn release(&self, block: AlignedMemory) {
        if block.len() == HUGE_PAGE {
            let mut pooled = lock(&self.pooled);
            if pooled.used.len() < self.max_used {
                pooled.used.push(block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reused_block_is_zeroed() {
        let blocks = BlockPool::new(HUGE_PAGE);
        assert!(blocks.take_request() && !blocks.take_request());
        let mut block = blocks.take();
        block.bytes().fill(0xff);
        let start = block.start();
        blocks.release(block);
        blocks.refill();
        let mut again = blocks.take();
        assert_eq!(again.start(), start);
        assert!(again.bytes().iter().all(|&byte| byte == 0));
        blocks.release(again);
    }

    #[test]
    fn small_memtables_pool_nothing() {
        let blocks = BlockPool::new(HUGE_PAGE - 1);
        blocks.refill();
        assert!(!blocks.take_request() && lock(&blocks.pooled).ready.is_empty());
    }
}
