//! Chooses between page cache and direct I/O for segments that nobody reads.
//!
//! The page cache costs a copy and memory. Recently used pages fill at copy speed; pages that a
//! hypervisor has to find first take ten times longer, more than the device. No interface tells
//! which it will be, so the CPU time of the copies is measured.

use std::time::Duration;

use super::staging::SLOT_LEN;

/// Slots that go through the page cache at the start of a segment, to measure it.
const TRIAL_SLOTS: u32 = 4;
/// The most segments without a trial. At 4 ns a byte a trial takes a tenth of a segment's time.
const MAX_SKIPPED_SEGMENTS: u32 = 15;
/// Shorter writes measure the call rather than the copy.
const MIN_TIMED_LEN: usize = SLOT_LEN / 2;
/// Nanoseconds per byte from which the page cache is slow; a fast copy takes 0.2.
const SLOW_NS_PER_BYTE: f64 = 0.3;
/// Weight of a new sample in the moving average.
const EWMA_WEIGHT: f64 = 0.5;

/// How fast writes to the page cache are.
#[derive(Default)]
pub(super) struct CacheWriteTimer {
    /// Moving average of nanoseconds per byte.
    ns_per_byte: f64,
    /// Its value before the trial.
    ns_before_trial: f64,
    /// Slots left to try in this segment.
    slots_to_try: u32,
    segment: u32,
    /// Segments to skip after the last trial, and those still left to skip.
    skipped: u32,
    to_skip: u32,
}

impl CacheWriteTimer {
    /// Whether the next write should be direct.
    pub(super) fn is_cache_slow(&mut self, segment: u32) -> bool {
        if self.segment != segment {
            self.segment = segment;
            match self.to_skip.checked_sub(1) {
                Some(left) => self.to_skip = left,
                None => (self.slots_to_try, self.ns_before_trial) = (TRIAL_SLOTS, self.ns_per_byte),
            }
        }
        self.slots_to_try == 0 && self.ns_per_byte > SLOW_NS_PER_BYTE
    }

    /// Measures a write to the page cache.
    pub(super) fn time<R>(&mut self, bytes: usize, write: impl FnOnce() -> R) -> R {
        if bytes < MIN_TIMED_LEN {
            return write();
        }
        let begin = thread_cpu_time();
        let written = write();
        let ns_per_byte = thread_cpu_time().saturating_sub(begin);
        self.record(ns_per_byte.as_nanos() as f64 / bytes as f64);
        written
    }

    fn record(&mut self, ns_per_byte: f64) {
        self.ns_per_byte += EWMA_WEIGHT * (ns_per_byte - self.ns_per_byte);
        if self.slots_to_try == 0 {
            return;
        }
        self.slots_to_try -= 1;
        if self.slots_to_try == 0 {
            // Trials become rarer while they confirm each other.
            let is_confirmed = self.ns_per_byte > SLOW_NS_PER_BYTE
                && self.ns_per_byte > self.ns_before_trial / 2.0;
            self.skipped = if is_confirmed { 2 * self.skipped + 1 } else { 0 };
            self.skipped = self.skipped.min(MAX_SKIPPED_SEGMENTS);
            self.to_skip = self.skipped;
        }
    }
}

/// CPU time of this thread (clock_gettime(2)). Through libc: rustix uses the vDSO, which is missing
/// under valgrind.
fn thread_cpu_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is written and is ours. Every system with threads has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots of a segment that go through the cache, at this cost per byte.
    fn cached(timer: &mut CacheWriteTimer, segment: u32, ns_per_byte: f64) -> usize {
        let go_through = |_: &usize| {
            let is_direct = timer.is_cache_slow(segment);
            if !is_direct {
                timer.record(ns_per_byte);
            }
            !is_direct
        };
        (0..1024).filter(go_through).count()
    }

    #[test]
    fn slow_page_cache_is_retried_less_and_less_often() {
        let mut timer = CacheWriteTimer::default();
        assert_eq!(cached(&mut timer, 1, 0.2), 1024);
        assert_eq!(cached(&mut timer, 2, 4.0), TRIAL_SLOTS as usize, "the page cache became slow");
        let tried: Vec<u32> =
            (3..60).filter(|&segment| cached(&mut timer, segment, 4.0) > 0).collect();
        assert_eq!(tried, [4, 8, 16, 32, 48]);
        assert!((60..64).all(|segment| cached(&mut timer, segment, 0.15) == 0));
        assert_eq!(cached(&mut timer, 64, 0.15), TRIAL_SLOTS as usize, "one trial may be chance");
        assert_eq!(cached(&mut timer, 65, 0.15), 1024, "it is fast again");
    }
}
