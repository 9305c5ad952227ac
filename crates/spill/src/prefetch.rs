//! Asking the processor for memory ahead of its use.

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
