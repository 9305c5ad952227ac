//! Blocks of memory for L0s, kept ready: the kernel takes up to a millisecond to give a huge page
//! out, which no writer should wait for.

use crate::engine::lock;
use crate::memory::{AlignedMemory, HUGE_PAGE};
use crate::schedule::Mutex;
use crate::schedule::atomic::{AtomicBool, Ordering};
use crate::time_slice;

/// The most that are kept ready.
const MAX_READY: usize = 4;

fn huge() -> AlignedMemory {
    // Huge pages: fewer misses of the TLB in a tree that is much larger than what it covers.
    AlignedMemory::new(HUGE_PAGE, HUGE_PAGE)
}

/// Huge pages that are ready for L0s, and some that L0s have used.
pub(crate) struct BlockPool {
    pooled: Mutex<PooledBlocks>,
    is_wanted: AtomicBool,
    /// How many are made ready, and how many wait to be used again: those of one L0, for memory
    /// that is new costs more than its zeros.
    max_ready: usize,
    max_used: usize,
}

#[derive(Default)]
struct PooledBlocks {
    ready: Vec<AlignedMemory>,
    used: Vec<AlignedMemory>,
}

impl BlockPool {
    /// For L0s of so many bytes.
    pub(crate) fn new(memory: usize) -> BlockPool {
        let max_ready = MAX_READY.min(memory / HUGE_PAGE);
        let is_wanted = AtomicBool::new(max_ready > 0);
        BlockPool { pooled: Mutex::default(), is_wanted, max_ready, max_used: memory / HUGE_PAGE }
    }

    /// Whether [`BlockPool::refill`] is to be called, which is said once.
    #[inline]
    pub(crate) fn take_request(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed) && self.is_wanted.swap(false, Ordering::Relaxed)
    }

    /// Makes blocks ready; what it does others need not wait for.
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

    /// Frees what nobody has needed for a while.
    pub(crate) fn free_idle(&self) {
        let used = std::mem::take(&mut lock(&self.pooled).used);
        // With no lock held.
        drop(used);
    }

    /// A zeroed block.
    pub(super) fn take(&self) -> AlignedMemory {
        let ready = lock(&self.pooled).ready.pop();
        self.is_wanted.store(self.max_ready > 0, Ordering::Relaxed);
        ready.unwrap_or_else(huge)
    }

    pub(super) fn give_back(&self, block: AlignedMemory) {
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
        blocks.give_back(block);
        blocks.refill();
        let mut again = blocks.take();
        assert_eq!(again.start(), start);
        assert!(again.bytes().iter().all(|&byte| byte == 0));
        blocks.give_back(again);
    }

    #[test]
    fn small_memtables_pool_nothing() {
        let blocks = BlockPool::new(HUGE_PAGE - 1);
        blocks.refill();
        assert!(!blocks.take_request() && lock(&blocks.pooled).ready.is_empty());
    }
}
