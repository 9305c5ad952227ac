//! Counts up to an instant.

use crate::histogram::Histogram;
use crate::layout::{BLOCK, SYSCALLS, tally};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a process since the start of tracing, or between two snapshots.
///
/// Taken while the process runs: a request under way may show in one figure and
/// not yet in another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// From a read that brought bytes to the first write after it, per socket.
    pub latency: Histogram,
    /// Reads that brought bytes from a client's socket.
    pub reads: u64,
    /// Of these, the ones after another read with no write between: a request
    /// that arrived in pieces, or one that was not answered. The time counts
    /// from the last of them.
    pub joined_reads: u64,
    /// Writes to a client's socket with no read since the write before: a long answer in pieces, or
    /// the further answers of a pipelined batch. Where there are many, there were more requests
    /// than [`Snapshot::requests`].
    pub further_writes: u64,
    /// Returns from epoll_wait and its like with something ready.
    pub wakeups: u64,
    /// Descriptors that were ready at these wake-ups, in all.
    pub ready: u64,
    /// Reads and writes on descriptors too high to be followed (from 262,144 on).
    pub untracked: u64,
    calls: Box<[u64]>,
}

impl Snapshot {
    /// Sums the blocks of all CPUs.
    pub(crate) fn read(words: &[AtomicU64]) -> Snapshot {
        let mut latency = Histogram::empty();
        let mut calls = vec![0; SYSCALLS].into_boxed_slice();
        let mut counters = [0; 8];
        for block in words.chunks_exact(BLOCK / 8) {
            add(&mut counters, block);
            add(&mut calls, &block[tally::SYSCALLS as usize / 8..]);
            add(&mut latency.counts, &block[tally::HISTOGRAM as usize / 8..]);
        }
        let counter = |offset: i16| counters[offset as usize / 8];
        latency.sum_ns = counter(tally::SUM_NS);
        Snapshot {
            latency,
            reads: counter(tally::READS),
            joined_reads: counter(tally::JOINED_READS),
            further_writes: counter(tally::FURTHER_WRITES),
            wakeups: counter(tally::WAKEUPS),
            ready: counter(tally::READY),
            untracked: counter(tally::UNTRACKED),
            calls,
        }
    }

    /// The difference to an earlier snapshot of the same tracer.
    pub fn since(&self, earlier: &Snapshot) -> Snapshot {
        let calls = self.calls.iter().zip(&earlier.calls);
        Snapshot {
            latency: self.latency.since(&earlier.latency),
            reads: self.reads.saturating_sub(earlier.reads),
            joined_reads: self.joined_reads.saturating_sub(earlier.joined_reads),
            further_writes: self.further_writes.saturating_sub(earlier.further_writes),
            wakeups: self.wakeups.saturating_sub(earlier.wakeups),
            ready: self.ready.saturating_sub(earlier.ready),
            untracked: self.untracked.saturating_sub(earlier.untracked),
            calls: calls.map(|(now, then)| now.saturating_sub(*then)).collect(),
        }
    }

    /// Requests that were answered; a pipelined batch counts as one.
    pub fn requests(&self) -> u64 {
        self.latency.count()
    }

    /// All system calls of the process, also those that serve no request.
    pub fn total_calls(&self) -> u64 {
        self.calls.iter().sum()
    }

    /// System calls by their number on this architecture, those that occurred;
    /// numbers from 511 on are counted together as 511.
    pub fn calls(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.calls.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }
}

fn add(sums: &mut [u64], words: &[AtomicU64]) {
    for (sum, word) in sums.iter_mut().zip(words) {
        *sum += word.load(Ordering::Relaxed);
    }
}
