//! Cache prefetches.

use std::cell::Cell;

/// The most cache lines prefetched per record; beyond that the hardware prefetcher takes over.
const MAX_LINES: usize = 64;

thread_local! {
    /// Cache lines of the last record that this thread read.
    static RECORD_LINES: Cell<usize> = const { Cell::new(1) };
}

/// Cache lines to prefetch of a record: as many as this thread's last record had.
#[inline]
pub(crate) fn record_lines() -> usize {
    RECORD_LINES.get()
}

/// Records the length of the record just read.
#[inline]
pub(crate) fn note_record(len: usize) {
    let lines = (len.div_ceil(64) + 1).min(MAX_LINES);
    if lines != RECORD_LINES.get() {
        RECORD_LINES.set(lines);
    }
}

/// Prefetches `lines` cache lines from `start`; only a hint, at any address.
#[inline]
pub(crate) fn lines(start: *const u8, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..lines {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch affects only the cache and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line * 64).cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    for line in 0..lines {
        // SAFETY: a prefetch affects only the cache and never faults.
        unsafe {
            std::arch::asm!(
                "prfm pldl1keep, [{}]",
                in(reg) start.wrapping_add(line * 64),
                options(nostack, readonly, preserves_flags)
            );
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = (start, lines);
}
