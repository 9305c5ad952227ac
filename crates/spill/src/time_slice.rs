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
pub(crate) const TIME_SLICE: Duration = Duration::from_micros(100);
/// What the kernel does in one call for so many bytes takes about as long.
pub(crate) const SYSCALL_CHUNK: usize = 128 << 10;

/// So many bytes that it copies to memory of its own, which may have to be found first (16 us for a page
/// where a hypervisor does that), take no longer.
pub(crate) const COPY_CHUNK: usize = 32 << 10;

thread_local! {
    /// When the stint of this thread began; None: it works as long as it likes.
    static SLICE_START: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// This thread works in stints from now on.
pub(crate) fn enable() {
    // Where a scheduler tries orders of threads, the clock has no say in them.
    if cfg!(not(feature = "shuttle")) {
        SLICE_START.set(Some(Instant::now()));
    }
}

/// Lets others have the processor if the stint is over.
#[inline]
pub(crate) fn yield_if_expired() {
    let Some(start) = SLICE_START.get() else { return };
    if start.elapsed() >= TIME_SLICE {
        thread::yield_now();
        SLICE_START.set(Some(Instant::now()));
    }
}

/// Does in pieces, with ends of stints between, what one call after this would have to do for all of
/// a range. In a thread that works as long as it likes nothing is done ahead.
pub(crate) fn for_each_chunk_ahead(
    range: Range<usize>,
    chunk_len: usize,
    run: impl FnMut(Range<usize>),
) {
    if SLICE_START.get().is_some() {
        for_each_chunk(range, chunk_len, run);
    }
}

/// Does a range in pieces, with ends of stints between.
pub(crate) fn for_each_chunk(
    range: Range<usize>,
    chunk_len: usize,
    mut run: impl FnMut(Range<usize>),
) {
    let mut from = range.start;
    while from < range.end {
        let to = range.end.min(from + chunk_len);
        run(from..to);
        yield_if_expired();
        from = to;
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn chunks(range: Range<usize>) -> Vec<Range<usize>> {
        let mut chunks = Vec::new();
        for_each_chunk_ahead(range, SYSCALL_CHUNK, |chunk_len| chunks.push(chunk_len));
        chunks
    }

    #[test]
    fn nothing_is_done_ahead_without_time_slices() {
        assert!(chunks(0..SYSCALL_CHUNK).is_empty());
    }

    #[test]
    fn chunks_cover_the_range_in_order() {
        std::thread::spawn(|| {
            enable();
            let all = chunks(5..5 + 2 * SYSCALL_CHUNK + 1);
            assert_eq!(
                all,
                [
                    5..5 + SYSCALL_CHUNK,
                    5 + SYSCALL_CHUNK..5 + 2 * SYSCALL_CHUNK,
                    5 + 2 * SYSCALL_CHUNK..6 + 2 * SYSCALL_CHUNK
                ]
            );
            assert!(chunks(7..7).is_empty());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn slice_ends_only_when_expired() {
        std::thread::spawn(|| {
            enable();
            let first = SLICE_START.get();
            yield_if_expired();
            assert!(SLICE_START.get() == first || first.unwrap().elapsed() >= TIME_SLICE);
            std::thread::sleep(TIME_SLICE);
            yield_if_expired();
            assert!(SLICE_START.get() > first);
        })
        .join()
        .unwrap();
    }
}
