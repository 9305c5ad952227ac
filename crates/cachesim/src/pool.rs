//! Packet buffers: a shared queue and a stack of each worker in front of it.
//!
//! As DPDK's mempool does it: a worker takes from the top of its own stack and gives back to it;
//! an empty stack is filled from the shared queue, and what is above one and a half times its
//! size goes back there. What a worker uses is therefore mostly what it used last, and now and
//! then a buffer that nobody used for long.

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

    /// Takes up to `count` buffers straight from the shared queue: rings are set up one after the
    /// other by a core that does not work on them, so their buffers lie beside each other.
    pub fn fill(&mut self, count: usize, into: &mut VecDeque<Buffer>) {
        let count = count.min(self.shared.len());
        into.extend(self.shared.drain(..count));
    }

    /// Takes `count` buffers, or none if there are not as many.
    pub fn take(&mut self, worker: usize, count: usize, into: &mut VecDeque<Buffer>) -> bool {
        let stack = &mut self.stacks[worker];
        if stack.len() < count {
            let wanted = count - stack.len() + self.size;
            let wanted = if wanted <= self.shared.len() { wanted } else { count - stack.len() };
            if wanted > self.shared.len() {
                return false;
            }
            stack.extend(self.shared.drain(..wanted));
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

    /// Buffers that are nowhere else.
    pub fn left(&self) -> usize {
        self.shared.len() + self.stacks.iter().map(Vec::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_last_is_taken_first() {
        let mut pool = Pool::new(1000, 2, 64);
        let mut held = VecDeque::new();
        assert!(pool.take(0, 10, &mut held));
        assert_eq!(pool.left(), 990);
        let last = held[9];
        pool.give(0, held.drain(..));
        assert!(pool.take(0, 1, &mut held));
        assert_eq!(held[0], last);
    }

    #[test]
    fn without_stacks_the_pool_is_a_queue() {
        let mut pool = Pool::new(100, 1, 0);
        let mut held = VecDeque::new();
        for turn in 0..10 {
            assert!(pool.take(0, 10, &mut held));
            let mut taken: Vec<Buffer> = held.iter().copied().collect();
            taken.sort_unstable();
            assert_eq!(taken, (turn * 10..turn * 10 + 10).collect::<Vec<_>>());
            pool.give(0, held.drain(..));
        }
    }

    #[test]
    fn no_buffer_is_lost_or_given_twice() {
        let mut pool = Pool::new(500, 2, 32);
        let mut held = VecDeque::new();
        assert!(!pool.take(0, 501, &mut held) && held.is_empty());
        for turn in 0..200 {
            assert!(pool.take(0, 40, &mut held));
            if turn % 3 > 0 {
                let back = held.len() / 2 + 20;
                pool.give(turn % 2, held.drain(..back));
            }
            let mut seen: Vec<Buffer> = held.iter().copied().collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), held.len());
            assert_eq!(pool.left() + held.len(), 500);
            if held.len() > 300 {
                pool.give(1, held.drain(..));
            }
        }
    }
}
