use std::time::Duration;

use quanta::Clock;

/// The time stamp counter where it is invariant, else the kernel's monotonic clock;
/// calibrated once a process. A reading is a number of ticks; only differences mean anything.
#[derive(Debug, Clone)]
pub struct Ticks {
    clock: Clock,
    ticks_per_ns: f64,
}

impl Ticks {
    pub fn new() -> Self {
        let clock = Clock::new();
        // A second of ticks in nanoseconds gives the scale to well under a part per million.
        const SPAN: u64 = 1 << 40;
        let ticks_per_ns = SPAN as f64 / clock.delta_as_nanos(0, SPAN).max(1) as f64;
        Ticks { clock, ticks_per_ns }
    }

    /// A clock that stands still, for runs under a simulator that counts instructions: calibration
    /// takes a varying number of them.
    pub fn still() -> Self {
        Ticks { clock: Clock::mock().0, ticks_per_ns: 1.0 }
    }

    /// A clock of a frequency that tests choose.
    #[cfg(test)]
    pub(crate) fn of_frequency(ticks_per_ns: f64) -> Self {
        Ticks { ticks_per_ns, ..Ticks::still() }
    }

    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.clock.raw()
    }

    /// Nanoseconds from one reading to a later one; 0 if it is not later.
    #[inline(always)]
    pub fn nanos(&self, from: u64, to: u64) -> u64 {
        self.clock.delta_as_nanos(from, to)
    }

    pub fn seconds(&self, from: u64, to: u64) -> f64 {
        self.nanos(from, to) as f64 / 1e9
    }

    /// Ticks of a second, unrounded: instants that are summed over hours stay exact.
    pub fn per_second(&self) -> f64 {
        self.ticks_per_ns * 1e9
    }

    pub fn ticks(&self, nanos: f64) -> u64 {
        (nanos * self.ticks_per_ns) as u64
    }

    pub fn ticks_of(&self, span: Duration) -> u64 {
        self.ticks(span.as_nanos() as f64)
    }

    /// What one reading costs, in nanoseconds: the best of several batches, so that an
    /// interruption does not count.
    pub fn cost_ns(&self) -> f64 {
        const BATCH: u32 = 2000;
        (0..20)
            .map(|_| {
                let begin = self.now();
                for _ in 0..BATCH {
                    std::hint::black_box(self.now());
                }
                self.nanos(begin, self.now()) as f64 / f64::from(BATCH)
            })
            .fold(f64::INFINITY, f64::min)
    }
}

impl Default for Ticks {
    fn default() -> Self {
        Ticks::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn agrees_with_the_kernels_clock() {
        let clock = Ticks::new();
        let (begin, instant) = (clock.now(), Instant::now());
        std::thread::sleep(Duration::from_millis(50));
        let (ticks, wall) = (clock.seconds(begin, clock.now()), instant.elapsed().as_secs_f64());
        // An interruption between the two readings is the only slack.
        assert!((ticks / wall - 1.0).abs() < 0.05, "{ticks} s by ticks, {wall} s by the kernel");
        assert_eq!(clock.nanos(begin + 10, begin), 0);
        let back = clock.nanos(0, clock.ticks(1e9)) as f64;
        assert!((back / 1e9 - 1.0).abs() < 1e-6, "{back}");
    }

    #[test]
    fn a_still_clock_does_not_advance() {
        let clock = Ticks::still();
        let begin = clock.now();
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(clock.now(), begin);
        assert_eq!(clock.nanos(begin, begin + 5), 5);
    }
}
