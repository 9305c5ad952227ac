//! Stints of background threads.
//!
//! The kernel takes a processor from a thread at a tick of its clock, so whoever is woken meanwhile
//! may wait for milliseconds. A background thread that yields by itself makes others wait for the
//! rest of a stint instead. With a slice that is as short (sched_setattr(2)) that costs it little.

use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::schedule::thread;

/// How long a stint is, at least: nothing between two looks at the clock should take much longer.
pub(crate) const STINT: Duration = Duration::from_micros(100);
/// What the kernel does in one call for so many bytes takes about as long.
pub(crate) const PIECE: usize = 128 << 10;

/// So many bytes that it copies to memory of its own, which may have to be found first (16 us for a page
/// where a hypervisor does that), take no longer.
pub(crate) const COPY: usize = 32 << 10;

thread_local! {
    /// When the stint of this thread began; None: it works as long as it likes.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// This thread works in stints from now on.
pub(crate) fn begin() {
    // Where a scheduler tries orders of threads, the clock has no say in them.
    if cfg!(not(feature = "shuttle")) {
        BEGAN.set(Some(Instant::now()));
    }
}

/// Lets others have the processor if the stint is over.
#[inline]
pub(crate) fn end_if_over() {
    let Some(began) = BEGAN.get() else { return };
    if began.elapsed() >= STINT {
        thread::yield_now();
        BEGAN.set(Some(Instant::now()));
    }
}

/// Does in pieces, with ends of stints between, what one call after this would have to do for all of
/// a range. In a thread that works as long as it likes nothing is done ahead.
pub(crate) fn ahead_in_pieces(range: Range<usize>, piece: usize, does: impl FnMut(Range<usize>)) {
    if BEGAN.get().is_some() {
        in_pieces(range, piece, does);
    }
}

/// Does a range in pieces, with ends of stints between.
pub(crate) fn in_pieces(range: Range<usize>, piece: usize, mut does: impl FnMut(Range<usize>)) {
    let mut from = range.start;
    while from < range.end {
        let to = range.end.min(from + piece);
        does(from..to);
        end_if_over();
        from = to;
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn pieces(range: Range<usize>) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        ahead_in_pieces(range, PIECE, |piece| pieces.push(piece));
        pieces
    }

    #[test]
    fn nothing_is_done_ahead_in_a_thread_that_works_as_long_as_it_likes() {
        assert!(pieces(0..PIECE).is_empty());
    }

    #[test]
    fn pieces_follow_one_another_to_the_end() {
        std::thread::spawn(|| {
            begin();
            let whole = pieces(5..5 + 2 * PIECE + 1);
            assert_eq!(
                whole,
                [5..5 + PIECE, 5 + PIECE..5 + 2 * PIECE, 5 + 2 * PIECE..6 + 2 * PIECE]
            );
            assert!(pieces(7..7).is_empty());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_stint_ends_when_it_is_over_and_not_before() {
        std::thread::spawn(|| {
            begin();
            let first = BEGAN.get();
            end_if_over();
            assert!(BEGAN.get() == first || first.unwrap().elapsed() >= STINT);
            std::thread::sleep(STINT);
            end_if_over();
            assert!(BEGAN.get() > first);
        })
        .join()
        .unwrap();
    }
}
