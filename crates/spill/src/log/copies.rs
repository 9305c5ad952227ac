//! Whether a segment is written through the page cache, where nobody reads it.
//!
//! That costs a copy, and memory. Pages that were in use a moment ago are filled at the speed of a
//! copy; those that a hypervisor has to find first take ten times as long, and more than the device.
//! Nobody can be asked which they will be, so the copies are timed, by the time that they take of a
//! processor.

use std::time::Duration;

use super::staging::CHUNK;

/// Slots that go through the page cache at the begin of a segment, to see how fast that is now.
const TRIAL: u32 = 4;
/// So many segments are written without a trial at most: at 4 ns a byte one takes as long as a tenth of
/// a segment.
const MOST_LEFT_OUT: u32 = 15;
/// Of a shorter write the time says more of the call than of the copy.
const LEAST: usize = CHUNK / 2;
/// Nanoseconds a byte that are too many: a copy takes 0.2.
const SLOW: f64 = 0.3;
/// The share of a new time in what is known.
const NEW: f64 = 0.5;

/// How fast the page cache is.
#[derive(Default)]
pub(super) struct Copies {
    /// Nanoseconds a byte, of late.
    time: f64,
    /// What that was before the trial.
    before: f64,
    /// Slots that are left to try in this segment.
    trial: u32,
    segment: u32,
    /// Segments that were to be left out after the last trial, and those still to be.
    left_out: u32,
    to_leave_out: u32,
}

impl Copies {
    /// Whether the next write is better done past the page cache.
    pub(super) fn are_slow(&mut self, segment: u32) -> bool {
        if self.segment != segment {
            self.segment = segment;
            match self.to_leave_out.checked_sub(1) {
                Some(left) => self.to_leave_out = left,
                None => (self.trial, self.before) = (TRIAL, self.time),
            }
        }
        self.trial == 0 && self.time > SLOW
    }

    /// Notes how long a write of so many bytes to the page cache takes.
    pub(super) fn time<R>(&mut self, bytes: usize, write: impl FnOnce() -> R) -> R {
        if bytes < LEAST {
            return write();
        }
        let begin = processor_time();
        let written = write();
        let time = processor_time().saturating_sub(begin);
        self.took(time.as_nanos() as f64 / bytes as f64);
        written
    }

    fn took(&mut self, time: f64) {
        self.time += NEW * (time - self.time);
        if self.trial == 0 {
            return;
        }
        self.trial -= 1;
        if self.trial == 0 {
            // The more trials say the same, the fewer there are.
            let says_the_same = self.time > SLOW && self.time > self.before / 2.0;
            self.left_out = if says_the_same { 2 * self.left_out + 1 } else { 0 };
            self.left_out = self.left_out.min(MOST_LEFT_OUT);
            self.to_leave_out = self.left_out;
        }
    }
}

/// What this thread has had of processors (clock_gettime(2)). By libc: rustix looks for the clock in
/// a page of the kernel's that is not there under valgrind.
fn processor_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is written, and is ours. There is such a clock wherever there are threads.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of a segment's slots go through the cache, at so many nanoseconds a byte.
    fn cached(copies: &mut Copies, segment: u32, time: f64) -> usize {
        let go_through = |_: &usize| {
            let goes_past = copies.are_slow(segment);
            if !goes_past {
                copies.took(time);
            }
            !goes_past
        };
        (0..1024).filter(go_through).count()
    }

    #[test]
    fn slow_copies_are_tried_less_and_less_often() {
        let mut copies = Copies::default();
        assert_eq!(cached(&mut copies, 1, 0.2), 1024);
        assert_eq!(cached(&mut copies, 2, 4.0), TRIAL as usize, "memory is not at hand any more");
        let tried: Vec<u32> =
            (3..60).filter(|&segment| cached(&mut copies, segment, 4.0) > 0).collect();
        assert_eq!(tried, [4, 8, 16, 32, 48]);
        assert!((60..64).all(|segment| cached(&mut copies, segment, 0.15) == 0));
        assert_eq!(cached(&mut copies, 64, 0.15), TRIAL as usize, "it may be chance");
        assert_eq!(cached(&mut copies, 65, 0.15), 1024, "it is again");
    }
}
