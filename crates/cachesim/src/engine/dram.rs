//! Memory as a server with a fixed latency and a limited rate.

use super::time::{Picos, SECOND, of_span};
use crate::cache::LINE;
use crate::describe::machine::Memory;

/// A leaky bucket: what is asked for fills it, time empties it. Agents ask a little out of order,
/// as each turn goes on for a while; a bucket does not mind.
#[derive(Debug, Clone)]
pub struct Dram {
    latency: Picos,
    /// Picoseconds for one line at full bandwidth.
    line: f64,
    /// Work that was waiting at `at`, in picoseconds.
    waiting: f64,
    at: Picos,
}

impl Dram {
    pub fn new(memory: &Memory) -> Dram {
        let line = LINE as f64 / memory.bandwidth.get_ref().0 * SECOND;
        Dram { latency: of_span(memory.latency), line, waiting: 0.0, at: 0 }
    }

    /// Lines go to or come from memory.
    pub fn carry(&mut self, now: Picos, lines: u64) {
        if lines > 0 {
            if now > self.at {
                self.waiting = (self.waiting - (now - self.at) as f64).max(0.0);
                self.at = now;
            }
            self.waiting += lines as f64 * self.line;
        }
    }

    /// What one who asks now waits until its line is there.
    pub fn latency(&self, now: Picos) -> Picos {
        self.latency + self.backlog(now)
    }

    /// What is queued, in time.
    pub fn backlog(&self, now: Picos) -> Picos {
        (self.waiting - now.saturating_sub(self.at) as f64).max(0.0) as Picos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_is_worked_off_at_full_bandwidth() {
        let machine = crate::Machine::open("xeon-gold-6140").unwrap();
        let mut dram = Dram::new(&machine.memory);
        assert_eq!(dram.latency(0), 90_000);
        dram.carry(0, 1000);
        let all = dram.backlog(0);
        assert!(all.abs_diff(627_451) < 10, "1,000 lines at 102 GB/s: {all} ps");
        assert_eq!(dram.backlog(all / 2), all - all / 2);
        // Somebody who is ahead of the others delays nobody by that.
        dram.carry(2 * all, 1);
        assert!(dram.backlog(all) < 1000);
    }
}
