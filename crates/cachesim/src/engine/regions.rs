//! Allocation of simulated memory.

use crate::cache::{LINE, LineNumber};

/// Allocates memory from the bottom up.
#[derive(Debug, Clone, Default)]
pub struct Regions {
    next: LineNumber,
}

/// Consecutive lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub first: LineNumber,
    pub lines: u32,
}

impl Regions {
    /// Allocates page-aligned memory.
    pub fn take(&mut self, bytes: u64) -> Region {
        let lines = bytes.div_ceil(LINE) as u32;
        let first = self.next;
        self.next += lines.next_multiple_of(64);
        Region { first, lines }
    }
}

impl Region {
    /// The line at a position modulo the region's length.
    #[inline]
    pub fn round(self, position: u64) -> LineNumber {
        self.first + (position % u64::from(self.lines)) as u32
    }

    /// The line at a share of the region: `random` is uniform over all 64-bit numbers.
    #[inline]
    pub fn drawn(self, random: u64) -> LineNumber {
        self.first + model::random::below(random, u64::from(self.lines)) as u32
    }
}
