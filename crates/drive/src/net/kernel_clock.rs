//! Converts the kernel's receive timestamps to spans before a tick of the harness's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clock::Ticks;

/// Validity of one comparison of the two clocks, which drift by less than 50 ns in it.
const VALID: Duration = Duration::from_millis(250);

/// Turns instants of the kernel's wall clock into spans before a tick.
pub(super) struct KernelClock {
    wall_ns: u64,
    tick: u64,
    valid: u64,
}

impl KernelClock {
    pub(super) fn new(clock: &Ticks) -> Self {
        let mut new = KernelClock { wall_ns: 0, tick: 0, valid: clock.ticks_of(VALID) };
        new.compare(clock);
        new
    }

    /// Reads both clocks; of several tries the one in which least time passed between.
    fn compare(&mut self, clock: &Ticks) {
        let mut best = u64::MAX;
        for _ in 0..3 {
            let before = clock.now();
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let after = clock.now();
            if after - before < best {
                best = after - before;
                self.tick = before + (after - before) / 2;
                self.wall_ns = wall.as_nanos() as u64;
            }
        }
    }

    /// Nanoseconds from the instant `wall_ns`, CLOCK_REALTIME, to `tick`; 0 if that is not later.
    pub(super) fn nanos_since(&mut self, wall_ns: u64, tick: u64, clock: &Ticks) -> u64 {
        if tick.saturating_sub(self.tick) > self.valid {
            self.compare(clock);
        }
        let now = match tick >= self.tick {
            true => self.wall_ns + clock.nanos(self.tick, tick),
            false => self.wall_ns.saturating_sub(clock.nanos(tick, self.tick)),
        };
        now.saturating_sub(wall_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_those_of_the_kernels_clock() {
        let clock = Ticks::new();
        let mut kernel = KernelClock::new(&clock);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let tick = clock.now() + clock.ticks(3e6);
        let nanos = kernel.nanos_since(wall, tick, &clock);
        // Between the two readings little time passes, unless this thread is interrupted.
        assert!((3_000_000..20_000_000).contains(&nanos), "{nanos}");
        assert_eq!(kernel.nanos_since(wall + 1_000_000_000, tick, &clock), 0);
    }
}
