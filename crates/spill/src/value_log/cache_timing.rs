//! Whether a segment is written through the page cache, where nobody reads it.
//!
//! That costs a copy, and memory. Pages that were in use a moment ago are filled at the speed of a
//! copy; those that a hypervisor has to find first take ten times as long, and more than the device.
//! Nobody can be asked which they will be, so the copies are timed, by the time that they take of a
//! processor.

use std::time::Duration;

use super::staging::SLOT_LEN;

/// Slots that go through the page cache at the begin of a segment, to see how fast that is now.
const TRIAL_SLOTS: u32 = 4;
/// So many segments are written without a trial at most: at 4 ns a byte one takes as long as a tenth of
/// a segment.
const MAX_SKIPPED_SEGMENTS: u32 = 15;
/// Of a shorter write the time says more of the call than of the copy.
const MIN_TIMED_LEN: usize = SLOT_LEN / 2;
/// Nanoseconds a byte that are too many: a copy takes 0.2.
const SLOW_NS_PER_BYTE: f64 = 0.3;
/// The share of a new time in what is known.
const EWMA_WEIGHT: f64 = 0.5;

/// How fast the page cache is.
#[derive(Default)]
pub(super) struct CacheWriteTimer {
    /// Nanoseconds a byte, of late.
    ns_per_byte: f64,
    /// What that was before the trial.
    ns_before_trial: f64,
    /// Slots that are left to try in this segment.
    slots_to_try: u32,
    segment: u32,
    /// Segments that were to be left out after the last trial, and those still to be.
    skipped: u32,
    to_skip: u32,
}

impl CacheWriteTimer {
    /// Whether the next write is better done past the page cache.
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

    /// Notes how long a write of so many bytes to the page cache takes.
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
            // The more trials say the same, the fewer there are.
            let is_confirmed = self.ns_per_byte > SLOW_NS_PER_BYTE
                && self.ns_per_byte > self.ns_before_trial / 2.0;
            self.skipped = if is_confirmed { 2 * self.skipped + 1 } else { 0 };
            self.skipped = self.skipped.min(MAX_SKIPPED_SEGMENTS);
            self.to_skip = self.skipped;
        }
    }
}

/// What this thread has had of processors (clock_gettime(2)). By libc: rustix looks for the clock in
/// a page of the kernel's that is not there under valgrind.
fn thread_cpu_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is written, and is ours. There is such a clock wherever there are threads.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of a segment's slots go through the cache, at so many nanoseconds a byte.
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
        assert_eq!(
            cached(&mut timer, 2, 4.0),
            TRIAL_SLOTS as usize,
            "memory is not at hand any more"
        );
        let tried: Vec<u32> =
            (3..60).filter(|&segment| cached(&mut timer, segment, 4.0) > 0).collect();
        assert_eq!(tried, [4, 8, 16, 32, 48]);
        assert!((60..64).all(|segment| cached(&mut timer, segment, 0.15) == 0));
        assert_eq!(cached(&mut timer, 64, 0.15), TRIAL_SLOTS as usize, "it may be chance");
        assert_eq!(cached(&mut timer, 65, 0.15), 1024, "it is again");
    }
}
