//! One schedule for all threads of a hog: when the next piece of traffic is due.
//!
//! The first free thread claims the next piece and moves it when it is due, so that the others make
//! up for a thread that the kernel delays. Traffic overdue by more than [`MAX_LAG_NS`] is dropped,
//! so that no burst follows a stall.

use std::sync::atomic::{AtomicU64, Ordering};

/// Traffic that is overdue by more than this is dropped.
pub(super) const MAX_LAG_NS: u64 = 5_000_000;

/// Nanoseconds count from the hog's start.
pub(super) struct Schedule {
    /// When the next piece is due.
    due_ns: AtomicU64,
    /// From one piece to the next; zero for as fast as it goes.
    step_ns: AtomicU64,
    /// Bytes of a piece.
    piece: u64,
}

impl Schedule {
    /// Pieces of `piece` bytes at `bytes_s` bytes a second; `None` for as fast as possible.
    pub(super) fn new(piece: u64, bytes_s: Option<f64>) -> Schedule {
        let step_ns = AtomicU64::new(step(piece, bytes_s));
        Schedule { due_ns: AtomicU64::new(0), step_ns, piece }
    }

    /// Sets the rate from the next piece on.
    pub(super) fn set_rate(&self, bytes_s: Option<f64>) {
        self.step_ns.store(step(self.piece, bytes_s), Ordering::Relaxed);
    }

    /// Claims the next piece and says when it is due: at `now_ns` or earlier for at once. A piece
    /// that is due later than `latest_ns` is not claimed.
    pub(super) fn claim(&self, now_ns: u64, latest_ns: u64) -> Option<u64> {
        let step = self.step_ns.load(Ordering::Relaxed);
        if step == 0 {
            return Some(now_ns);
        }
        let from = |due: u64| due.max(now_ns.saturating_sub(MAX_LAG_NS));
        let claim = |due: u64| (from(due) <= latest_ns).then(|| from(due).saturating_add(step));
        let claimed = self.due_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim);
        claimed.ok().map(from)
    }
}

fn step(piece: u64, bytes_s: Option<f64>) -> u64 {
    bytes_s.map_or(0, |rate| (piece as f64 / rate * 1e9).round().max(1.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: u64 = 64 << 10;
    const FOREVER: u64 = u64::MAX;

    /// Threads that each take `busy_ns` for a piece, over `span_ns` of a clock of our own; bytes
    /// a second.
    fn simulated_rate(schedule: &Schedule, threads: usize, busy_ns: u64, span_ns: u64) -> f64 {
        let mut free = vec![0_u64; threads];
        let mut pieces = 0;
        loop {
            let Some(first) = free.iter_mut().min() else { return 0.0 };
            if *first >= span_ns {
                return (pieces * PIECE) as f64 / (span_ns as f64 / 1e9);
            }
            let due = schedule.claim(*first, FOREVER).unwrap();
            *first = due.max(*first) + busy_ns;
            pieces += 1;
        }
    }

    fn assert_near(value: f64, expected: f64, share: f64) {
        assert!((value / expected - 1.0).abs() < share, "{value:e} is not {expected:e}");
    }

    #[test]
    fn the_rate_is_shared_by_all_threads() {
        for threads in [1, 2, 7] {
            for rate in [1e8, 1e9, 5e9] {
                let schedule = Schedule::new(PIECE, Some(rate));
                // A piece of 64 KiB takes 5 us: 13 GB/s a thread.
                let achieved = simulated_rate(&schedule, threads, 5_000, 1_000_000_000);
                // At the end each thread may be in a piece, and steps are whole nanoseconds.
                let pieces = ((threads as u64 + 1) * PIECE) as f64;
                assert!(
                    (achieved - rate).abs() <= pieces + rate * 1e-4,
                    "{achieved:e} is not {rate:e}"
                );
            }
        }
    }

    #[test]
    fn an_unreachable_rate_runs_at_full_speed() {
        let schedule = Schedule::new(PIECE, Some(100e9));
        assert_near(
            simulated_rate(&schedule, 2, 10_000, 1_000_000_000),
            2.0 * PIECE as f64 / 10e-6,
            0.01,
        );
        let free = Schedule::new(PIECE, None);
        assert_near(
            simulated_rate(&free, 3, 10_000, 1_000_000_000),
            3.0 * PIECE as f64 / 10e-6,
            0.01,
        );
    }

    #[test]
    fn no_burst_follows_a_stall() {
        let schedule = Schedule::new(PIECE, Some(PIECE as f64 * 1000.0)); // One a millisecond.
        assert_eq!(schedule.claim(0, FOREVER), Some(0));
        assert_eq!(schedule.claim(0, FOREVER), Some(1_000_000));
        // After a stall of ten seconds, five milliseconds' worth is made up for.
        let now = 10_000_000_000;
        let at_once = std::iter::repeat_with(|| schedule.claim(now, FOREVER).unwrap())
            .take_while(|due| *due <= now)
            .count();
        assert_eq!(at_once as u64, MAX_LAG_NS / 1_000_000 + 1);
    }

    #[test]
    fn other_threads_make_up_for_a_slow_one() {
        let schedule = Schedule::new(PIECE, Some(PIECE as f64 * 1000.0));
        let (mut quick, mut slow, mut pieces) = (0, 0, 0);
        while quick < 1_000_000_000 {
            let first = if quick <= slow { &mut quick } else { &mut slow };
            let due = schedule.claim(*first, FOREVER).unwrap();
            pieces += 1;
            *first = due.max(*first) + if pieces % 2 == 0 { 4_000_000 } else { 1000 };
        }
        assert!((pieces as i64 - 1000).abs() <= 10, "{pieces}");
    }

    #[test]
    fn a_piece_too_far_ahead_is_not_claimed() {
        let schedule = Schedule::new(PIECE, Some(PIECE as f64)); // One a second.
        assert_eq!(schedule.claim(0, 1000), Some(0));
        assert_eq!(schedule.claim(0, 1000), None);
        assert_eq!(schedule.claim(999_999_999, 1_000_001_000), Some(1_000_000_000));
        // A new rate holds from the next piece on.
        schedule.set_rate(Some(PIECE as f64 * 10.0));
        assert_eq!(schedule.claim(2_000_000_000, FOREVER), Some(2_000_000_000));
        assert_eq!(schedule.claim(2_000_000_000, FOREVER), Some(2_100_000_000));
    }
}
