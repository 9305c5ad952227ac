//! Blocks of memory for L0s, kept ready: the kernel takes up to a millisecond to give a huge page
//! out, which no writer should wait for.

use crate::inner::lock;
use crate::memory::{HUGE, Memory};
use crate::schedule::Mutex;
use crate::schedule::atomic::{AtomicBool, Ordering};
use crate::stint;

/// The most that are kept ready.
const READY: usize = 4;

fn huge() -> Memory {
    // Huge pages: fewer misses of the TLB in a tree that is much larger than what it covers.
    Memory::new(HUGE, HUGE)
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
    ready: Vec<Memory>,
    used: Vec<Memory>,
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
                Some(mut block) => {
                    block.clear();
                    block
                }
                None => huge(),
            };
            lock(&self.kept).ready.push(block);
            stint::end_if_over();
        }
    }

    /// Frees what nobody has needed for a while.
    pub(crate) fn free_used(&self) {
        let used = std::mem::take(&mut lock(&self.kept).used);
        // With no lock held.
        drop(used);
    }

    /// A zeroed block.
    pub(super) fn take(&self) -> Memory {
        let ready = lock(&self.kept).ready.pop();
        self.is_wanted.store(self.most > 0, Ordering::Relaxed);
        ready.unwrap_or_else(huge)
    }

    pub(super) fn give_back(&self, block: Memory) {
        if block.len() == HUGE {
            let mut kept = lock(&self.kept);
            if kept.used.len() < self.reused {
                kept.used.push(block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_was_used_comes_back_zeroed() {
        let blocks = Blocks::new(HUGE);
        assert!(blocks.asks() && !blocks.asks());
        let mut block = blocks.take();
        block.bytes().fill(0xff);
        let start = block.start();
        blocks.give_back(block);
        blocks.prepare();
        let mut again = blocks.take();
        assert_eq!(again.start(), start);
        assert!(again.bytes().iter().all(|&byte| byte == 0));
        blocks.give_back(again);
    }

    #[test]
    fn small_l0s_keep_nothing() {
        let blocks = Blocks::new(HUGE - 1);
        blocks.prepare();
        assert!(!blocks.asks() && lock(&blocks.kept).ready.is_empty());
    }
}
