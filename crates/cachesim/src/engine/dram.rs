//! Memory with a latency that grows with its load.

use super::time::{Picos, SECOND, of_span};
use crate::cache::LINE;
use crate::describe::machine::MemorySpec;

/// Time is divided into slots of this length; the load is that of the last few.
const SLOT: Picos = 1_000_000;
const RECENT_SLOTS: u64 = 8;
/// Slots that are stored: more than any turn of an actor takes.
const STORED_SLOTS: usize = 4096;
/// Load at which memory is saturated.
const FULL: f64 = 0.98;
/// Latency doubles at a load of four fifths, as loaded latencies of DDR4 do.
const GROWTH: f64 = 0.25;

/// Memory traffic by slot. Actors access it out of order, as turns take a while: each access counts
/// in the slot in which it happens.
#[derive(Debug, Clone)]
pub struct Dram {
    latency: Picos,
    /// Lines that one slot can carry.
    lines: f64,
    /// Slot number and lines.
    slots: Vec<(u64, u64)>,
}

impl Dram {
    pub fn new(memory: &MemorySpec) -> Dram {
        let lines = memory.bandwidth.get_ref().0 / LINE as f64 * SLOT as f64 / SECOND;
        Dram { latency: of_span(memory.latency), lines, slots: vec![(0, 0); STORED_SLOTS] }
    }

    /// Accounts lines that move to or from memory.
    #[inline]
    pub fn carry(&mut self, now: Picos, lines: u64) {
        if lines == 0 {
            return;
        }
        let number = now / SLOT;
        let slot = &mut self.slots[number as usize % STORED_SLOTS];
        if slot.0 != number {
            *slot = (number, 0);
        }
        slot.1 += lines;
    }

    /// Recent demand as a share of the bandwidth; above 1 if it exceeds it.
    pub fn load(&self, now: Picos) -> f64 {
        let last = now / SLOT;
        let lines: u64 = (0..RECENT_SLOTS)
            .filter_map(|back| {
                let number = last.checked_sub(back)?;
                let (held, lines) = self.slots[number as usize % STORED_SLOTS];
                (held == number).then_some(lines)
            })
            .sum();
        lines as f64 / (self.lines * RECENT_SLOTS as f64)
    }

    /// The latency of a line requested now.
    #[inline]
    pub fn latency(&self, now: Picos) -> Picos {
        let load = self.load(now).min(FULL);
        self.latency + (self.latency as f64 * GROWTH * load / (1.0 - load)) as Picos
    }

    /// Slowdown of a device that does not wait for answers: 1 until memory is saturated.
    pub fn stretch(&self, now: Picos) -> f64 {
        (self.load(now) / FULL).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_grows_with_the_load_and_recovers() {
        let machine = crate::SimulatedMachine::open("xeon-gold-6140").unwrap();
        let mut dram = Dram::new(&machine.memory);
        assert_eq!(dram.latency(0), 90_000);
        let most = 102e9 / 64.0 / 1e6;
        for slot in 0..20 {
            dram.carry(slot * SLOT, (most * 0.8) as u64);
        }
        let now = 19 * SLOT;
        assert!((dram.load(now) - 0.8).abs() < 0.01);
        assert!(dram.latency(now).abs_diff(180_000) < 3000, "{}", dram.latency(now));
        assert_eq!(dram.stretch(now), 1.0);
        // An actor that is ahead of the others does not delay them.
        dram.carry(now + 50 * SLOT, 10_000);
        assert!((dram.load(now) - 0.8).abs() < 0.01);
        assert!(dram.stretch(now + 50 * SLOT) > 0.7);
        assert_eq!(dram.latency(now + 100 * SLOT), 90_000);
    }
}
