//! Packet buffers: a shared queue, and a stack of each worker in front of it.
//!
//! Like DPDK's mempool: a worker takes from and returns to the top of its own stack; an empty stack
//! is refilled from the shared queue, and buffers above one and a half times its size go back
//! there. So a worker mostly reuses recent buffers, and now and then an old one.

use std::collections::VecDeque;

/// The number of a buffer.
pub type Buffer = u32;

#[derive(Debug, Clone)]
pub struct Pool {
    shared: VecDeque<Buffer>,
    stacks: Vec<Vec<Buffer>>,
    size: usize,
}

impl Pool {
    /// `buffers` buffers for `workers` workers with stacks of `size`; 0 is no stacks.
    pub fn new(buffers: u32, workers: usize, size: usize) -> Pool {
        Pool { shared: (0..buffers).collect(), stacks: vec![Vec::new(); workers], size }
    }

    /// Takes up to `count` buffers from the shared queue: rings are set up one after the other, so
    /// their buffers are adjacent.
    pub fn fill(&mut self, count: usize, into: &mut VecDeque<Buffer>) {
        let count = count.min(self.shared.len());
        into.extend(self.shared.drain(..count));
    }

    /// Takes `count` buffers, or none if there are not as many.
    pub fn take(&mut self, worker: usize, count: usize, into: &mut VecDeque<Buffer>) -> bool {
        let stack = &mut self.stacks[worker];
        if stack.len() < count {
            let refill = count - stack.len() + self.size;
            let refill = if refill <= self.shared.len() { refill } else { count - stack.len() };
            if refill > self.shared.len() {
                return false;
            }
            stack.extend(self.shared.drain(..refill));
        }
        into.extend(stack.drain(stack.len() - count..).rev());
        true
    }

    /// Gives buffers back.
    pub fn give(&mut self, worker: usize, buffers: impl IntoIterator<Item = Buffer>) {
        let stack = &mut self.stacks[worker];
        stack.extend(buffers);
        if stack.len() * 2 >= self.size * 3 {
            self.shared.extend(stack.drain(self.size..));
        }
    }

    /// Buffers that are in the pool.
    pub fn available(&self) -> usize {
        self.shared.len() + self.stacks.iter().map(Vec::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_returned_buffer_is_taken_first() {
        let mut pool = Pool::new(1000, 2, 64);
        let mut taken = VecDeque::new();
        assert!(pool.take(0, 10, &mut taken));
        assert_eq!(pool.available(), 990);
        let last = taken[9];
        pool.give(0, taken.drain(..));
        assert!(pool.take(0, 1, &mut taken));
        assert_eq!(taken[0], last);
    }

    #[test]
    fn without_stacks_the_pool_is_a_queue() {
        let mut pool = Pool::new(100, 1, 0);
        let mut buffers = VecDeque::new();
        for turn in 0..10 {
            assert!(pool.take(0, 10, &mut buffers));
            let mut taken: Vec<Buffer> = buffers.iter().copied().collect();
            taken.sort_unstable();
            assert_eq!(taken, (turn * 10..turn * 10 + 10).collect::<Vec<_>>());
            pool.give(0, buffers.drain(..));
        }
    }

    #[test]
    fn no_buffer_is_lost_or_given_twice() {
        let mut pool = Pool::new(500, 2, 32);
        let mut taken = VecDeque::new();
        assert!(!pool.take(0, 501, &mut taken) && taken.is_empty());
        for turn in 0..200 {
            assert!(pool.take(0, 40, &mut taken));
            if turn % 3 > 0 {
                let back = taken.len() / 2 + 20;
                pool.give(turn % 2, taken.drain(..back));
            }
            let mut sorted: Vec<Buffer> = taken.iter().copied().collect();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), taken.len());
            assert_eq!(pool.available() + taken.len(), 500);
            if taken.len() > 300 {
                pool.give(1, taken.drain(..));
            }
        }
    }
}
