//! Time slices of background threads.
//!
//! The kernel preempts a thread only at a clock tick, so a thread that wakes up may wait for
//! milliseconds. Background threads yield by themselves, so others wait only for the rest of a
//! slice. With an equally short kernel slice (sched_setattr(2)) that costs them little.

use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::schedule::thread;

/// Minimum length of a slice; nothing between two clock checks should take much longer.
pub(crate) const TIME_SLICE: Duration = Duration::from_micros(100);
/// Bytes that one system call handles in about a slice.
pub(crate) const SYSCALL_CHUNK: usize = 128 << 10;

/// Bytes that a system call copies to new page-cache memory in about a slice. On a virtual machine
/// the hypervisor may have to find each page first.
pub(crate) const COPY_CHUNK: usize = 32 << 10;

thread_local! {
    /// Start of this thread's slice; `None`: it does not use slices.
    static SLICE_START: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Makes this thread work in slices.
pub(crate) fn enable() {
    // Under a scheduler that tries interleavings, the clock must not decide.
    if cfg!(not(feature = "shuttle")) {
        SLICE_START.set(Some(Instant::now()));
    }
}

/// Yields the CPU if the slice is over.
#[inline]
pub(crate) fn yield_if_expired() {
    let Some(start) = SLICE_START.get() else { return };
    if start.elapsed() >= TIME_SLICE {
        thread::yield_now();
        SLICE_START.set(Some(Instant::now()));
    }
}

/// Runs on chunks, with yields between them, what a following call would do for the whole range.
/// Does nothing in a thread without slices.
pub(crate) fn for_each_chunk_ahead(
    range: Range<usize>,
    chunk_len: usize,
    run: impl FnMut(Range<usize>),
) {
    if SLICE_START.get().is_some() {
        for_each_chunk(range, chunk_len, run);
    }
}

/// Runs on the chunks of a range, with yields between them.
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
