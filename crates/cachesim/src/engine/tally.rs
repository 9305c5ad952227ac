//! Counters of a window.

use hdrhistogram::Histogram;

use crate::memory::{Hits, Level, MemoryLines};

/// Accesses of cores by the level that served them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Levels {
    pub private: u64,
    pub shared: u64,
    pub peer: u64,
    pub memory: u64,
}

impl Levels {
    #[inline]
    pub fn count(&mut self, level: Level) {
        match level {
            Level::Private => self.private += 1,
            Level::Shared => self.shared += 1,
            Level::Peer => self.peer += 1,
            Level::Memory => self.memory += 1,
        }
    }

    pub fn add(&mut self, other: Levels) {
        self.private += other.private;
        self.shared += other.shared;
        self.peer += other.peer;
        self.memory += other.memory;
    }

    pub fn total(self) -> u64 {
        self.private + self.beyond_private()
    }

    pub fn beyond_private(self) -> u64 {
        self.shared + self.peer + self.memory
    }

    /// Misses of the last-level cache among the accesses that reached it.
    pub fn miss_rate(self) -> Option<f64> {
        let reached = self.beyond_private();
        (reached > 0).then(|| self.memory as f64 / reached as f64)
    }

    pub fn since(self, before: Levels) -> Levels {
        Levels {
            private: self.private - before.private,
            shared: self.shared - before.shared,
            peer: self.peer - before.peer,
            memory: self.memory - before.memory,
        }
    }
}

/// Totals since the last reset.
#[derive(Debug, Clone)]
pub struct Tally {
    pub offered: u64,
    pub received: u64,
    pub received_bytes: u64,
    pub finished: u64,
    pub sent_bytes: u64,
    pub no_descriptor: u64,
    pub card_full: u64,
    pub write: Hits,
    pub read: Hits,
    pub workers: Levels,
    pub busy: u64,
    /// From the arrival at the card to the end of the request, in nanoseconds.
    pub latency: Histogram<u64>,
    pub memory: MemoryLines,
}

impl Tally {
    /// `latency` is empty.
    pub fn new(latency: Histogram<u64>) -> Tally {
        Tally {
            offered: 0,
            received: 0,
            received_bytes: 0,
            finished: 0,
            sent_bytes: 0,
            no_descriptor: 0,
            card_full: 0,
            write: Hits::default(),
            read: Hits::default(),
            workers: Levels::default(),
            busy: 0,
            latency,
            memory: MemoryLines::default(),
        }
    }
}
