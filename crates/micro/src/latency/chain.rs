//! A ring of pointers in random order: each load's address is the value of the load before.
#![allow(unsafe_code, reason = "following pointers")]

use model::random::{Draws, below};

use crate::region::Region;

/// Loads in one pass of the unrolled loop.
pub(super) const UNROLLED: u64 = 32;

/// A random permutation of `0..n` that is one single cycle (S. Sattolo, "An algorithm to generate
/// a random cyclic permutation", Information Processing Letters 22, 1986): the successor of each.
pub(super) fn cycle(n: u32, seed: u64) -> Vec<u32> {
    let mut next: Vec<u32> = (0..n).collect();
    let mut draws = Draws::from(seed);
    for i in (1..n).rev() {
        // Strictly below `i`, so that no element becomes a cycle of its own.
        let j = below(draws.next(), u64::from(i)) as u32;
        next.swap(i as usize, j as usize);
    }
    next
}

/// A ring in memory, one pointer each `stride` bytes.
pub(super) struct Chain<'a> {
    at: *const usize,
    /// Borrowed, so that nothing else writes the memory.
    _region: &'a mut Region,
}

impl<'a> Chain<'a> {
    /// Builds the ring in the first `count * stride` bytes of a region.
    ///
    /// # Panics
    /// The region is smaller than that.
    pub(super) fn build(region: &'a mut Region, count: u32, stride: usize, seed: u64) -> Chain<'a> {
        let step = stride / size_of::<usize>();
        let start = region.start().cast::<usize>();
        let words = region.as_mut_slice::<usize>();
        for (from, to) in cycle(count, seed).into_iter().enumerate() {
            words[from * step] = start.wrapping_add(to as usize * step) as usize;
        }
        Chain { at: start, _region: region }
    }

    /// Follows at least `loads` pointers, in whole steps of [`UNROLLED`]; returns how many.
    pub(super) fn follow(&mut self, loads: u64) -> u64 {
        let rounds = loads.div_ceil(UNROLLED);
        let mut at = self.at;
        for _ in 0..rounds {
            for _ in 0..UNROLLED {
                // SAFETY: the ring was laid whole by `build`, each word of it points at a word of
                // it, and the region is borrowed for as long as the chain is.
                at = unsafe { *at } as *const usize;
            }
        }
        self.at = std::hint::black_box(at);
        rounds * UNROLLED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{LINE, PageSize, Placement};

    #[test]
    fn a_permutation_is_one_cycle() {
        for (n, seed) in [(1, 0), (2, 1), (3, 2), (7, 3), (64, 4), (1000, 5), (4096, 6)] {
            let next = cycle(n, seed);
            let mut visited = vec![false; n as usize];
            let mut at = 0;
            for _ in 0..n {
                assert!(!std::mem::replace(&mut visited[at as usize], true), "{n} closes early");
                at = next[at as usize];
            }
            assert_eq!(at, 0, "{n}");
        }
        assert_ne!(cycle(1000, 1), cycle(1000, 2));
        assert_eq!(cycle(1000, 1), cycle(1000, 1));
    }

    #[test]
    fn a_chain_visits_every_slot_and_returns() {
        let mut region = Region::map(1 << 16, PageSize::System, Placement::FirstTouch).unwrap();
        let start = region.start() as usize;
        let mut chain = Chain::build(&mut region, 256, LINE, 9);
        let mut visited = std::collections::BTreeSet::new();
        // 256 is a multiple of 32, so eight steps go once around; each lands elsewhere.
        for _ in 0..8 {
            assert_eq!(chain.follow(1), UNROLLED);
            let offset = chain.at as usize - start;
            assert!(offset.is_multiple_of(LINE) && offset < 256 * LINE);
            assert!(visited.insert(offset));
        }
        assert_eq!(chain.at as usize, start);
        assert_eq!(chain.follow(256), 256);
        assert_eq!(chain.at as usize, start);
    }
}
