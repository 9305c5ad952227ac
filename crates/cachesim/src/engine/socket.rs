//! State that all actors share: the caches, memory and the tally.

use super::dram::Dram;
use super::tally::Tally;
use super::time::{Picos, of_span};
use crate::cache::LineNumber;
use crate::describe::machine::SimulatedMachine;
use crate::memory::{Caches, Hits, Level};
use crate::policy::WayMask;
use crate::pool::Buffer;

/// A packet on its way through the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    pub buffer: Buffer,
    pub bytes: u32,
    /// When it arrived at the card.
    pub arrived: Picos,
    /// From when on its worker can see it.
    pub visible: Picos,
    /// The last packet whose descriptor the card fetches with others.
    pub ends_fetch: bool,
}

/// Misses that a core waits for at the same time.
#[derive(Debug, Clone, Copy)]
pub struct Overlap {
    /// Of accesses that do not depend on each other.
    pub usual: f64,
    /// Along lines in order.
    pub stream: f64,
}

/// How an access depends on those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// It does not.
    Free,
    /// The next line of a row, which prefetchers foresee.
    Stream,
    /// It waits for the one before.
    Chained,
}

#[derive(Debug)]
pub struct Socket {
    pub caches: Caches,
    pub dram: Dram,
    pub tally: Tally,
    pub setting: WayMask,
    shared_latency: Picos,
    overlap: Overlap,
    completions_per_line: u64,
}

impl Socket {
    pub fn new(
        caches: Caches,
        machine: &SimulatedMachine,
        tally: Tally,
        setting: WayMask,
    ) -> Socket {
        let stream = machine.private.stream_overlap.as_ref().unwrap_or(&machine.private.overlap);
        Socket {
            caches,
            dram: Dram::new(&machine.memory),
            tally,
            setting,
            shared_latency: of_span(machine.shared.latency),
            overlap: Overlap {
                usual: *machine.private.overlap.get_ref(),
                stream: *stream.get_ref(),
            },
            completions_per_line: u64::from(*machine.card.completions_per_line.get_ref()),
        }
    }

    /// The completion line that the `n`-th packet begins, if it begins one.
    pub fn completion_line(&self, n: u64) -> Option<u64> {
        n.is_multiple_of(self.completions_per_line).then_some(n)
    }

    /// A core's access; returns the wait, given overlapping misses.
    #[inline]
    pub fn access(
        &mut self,
        core: usize,
        line: LineNumber,
        write: bool,
        ways: u32,
        now: Picos,
        dependence: Dependence,
    ) -> (Level, Picos) {
        let before = self.caches.memory;
        let level = self.caches.core_access(core, line, write, ways);
        let latency = match level {
            Level::Private => return (level, 0),
            Level::Shared => self.shared_latency,
            // A snoop goes to the other core and back.
            Level::Peer => 2 * self.shared_latency,
            Level::Memory => self.shared_latency + self.dram.latency(now),
        };
        self.carry(before.reads() + before.writes(), now);
        let overlap = match dependence {
            Dependence::Free => self.overlap.usual,
            Dependence::Stream => self.overlap.stream,
            Dependence::Chained => 1.0,
        };
        (level, (latency as f64 / overlap) as Picos)
    }

    /// A worker's access.
    #[inline]
    pub fn worker_access(
        &mut self,
        core: usize,
        line: LineNumber,
        write: bool,
        now: Picos,
        dependence: Dependence,
    ) -> Picos {
        let ways = self.setting.workers;
        let (level, waited) = self.access(core, line, write, ways, now, dependence);
        self.tally.workers.count(level);
        waited
    }

    /// A prefetch of a core: no wait, and not counted as an access.
    #[inline]
    pub fn prefetch(&mut self, core: usize, line: LineNumber, now: Picos) {
        let before = self.caches.memory;
        self.caches.prefetch(core, line, self.setting.workers);
        self.carry(before.reads() + before.writes(), now);
    }

    /// The card writes; counted.
    pub fn card_writes(&mut self, first: LineNumber, lines: u32, part: bool, now: Picos) -> Hits {
        let before = self.caches.memory;
        let hits = self.caches.device_write(first, lines, part, self.setting.device());
        self.tally.write += hits;
        self.carry(before.reads() + before.writes(), now);
        hits
    }

    /// The card reads; counted.
    pub fn card_reads(&mut self, first: LineNumber, lines: u32, now: Picos) -> Hits {
        let before = self.caches.memory;
        let hits = self.caches.device_read(first, lines);
        self.tally.read += hits;
        self.carry(before.reads() + before.writes(), now);
        hits
    }

    fn carry(&mut self, before: u64, now: Picos) {
        let after = self.caches.memory;
        self.dram.carry(now, after.reads() + after.writes() - before);
    }

    /// Records a finished packet and its latency.
    pub fn finish(&mut self, took: Picos, sent_bytes: u32) {
        self.tally.finished += 1;
        self.tally.sent_bytes += u64::from(sent_bytes);
        // The histogram resizes itself, so recording cannot fail.
        let _grown = self.tally.latency.record((took / 1000).max(1));
    }
}
