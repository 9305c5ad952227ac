//! Memory as a server with a fixed latency and a limited rate.

use super::time::{Picos, of_seconds, of_span};
use crate::cache::LINE;
use crate::describe::machine::Memory;

#[derive(Debug, Clone)]
pub struct Dram {
    latency: Picos,
    /// Picoseconds for one line at full bandwidth.
    line: f64,
    busy_until: f64,
}

impl Dram {
    pub fn new(memory: &Memory) -> Dram {
        let line = of_seconds(LINE as f64 / memory.bandwidth.get_ref().0 * 1e3) as f64 / 1e3;
        Dram { latency: of_span(memory.latency), line, busy_until: 0.0 }
    }

    /// Lines go to or come from memory, from `now` on.
    pub fn carry(&mut self, now: Picos, lines: u64) {
        if lines > 0 {
            self.busy_until = self.busy_until.max(now as f64) + lines as f64 * self.line;
        }
    }

    /// What one who asks now waits until its line is there.
    pub fn latency(&self, now: Picos) -> Picos {
        self.latency + self.backlog(now)
    }

    /// What is queued, in time.
    pub fn backlog(&self, now: Picos) -> Picos {
        (self.busy_until - now as f64).max(0.0) as Picos
    }
}
