//! Asking the processor for memory ahead of its use.

use std::cell::Cell;

/// The most cache lines of a record that are asked for; then the processor knows what comes.
const MAX_LINES: usize = 64;

thread_local! {
    /// So many the last record had that this thread read.
    static RECORD_LINES: Cell<usize> = const { Cell::new(1) };
}

/// Cache lines to ask for of a record that is read: as many as the last one had that this thread read.
#[inline]
pub(crate) fn record_lines() -> usize {
    RECORD_LINES.get()
}

/// The thread has read a record of so many bytes.
#[inline]
pub(crate) fn note_record(len: usize) {
    let lines = (len.div_ceil(64) + 1).min(MAX_LINES);
    if lines != RECORD_LINES.get() {
        RECORD_LINES.set(lines);
    }
}

/// Asks for `lines` cache lines from `start` on. Only a hint, whatever the address.
#[inline]
pub(crate) fn lines(start: *const u8, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..lines {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect but on the cache, and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line * 64).cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    for line in 0..lines {
        // SAFETY: a prefetch has no effect but on the cache, and never faults.
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
