//! The clock: the processor's counter where it runs at a constant rate, else
//! `clock_gettime`.

#![allow(unsafe_code)]

use crate::layout::ClockKind;
use crate::sys;

/// A clock and how long its ticks are.
#[derive(Clone, Copy)]
pub struct Clock {
    pub kind: ClockKind,
    pub ticks_per_s: u64,
    /// Nanoseconds a tick, times 2^32.
    scale: u64,
}

const NS_PER_S: u64 = 1_000_000_000;

impl Clock {
    /// The best clock of this machine. Calibrating the time stamp counter
    /// takes 5 ms.
    pub fn choose() -> Clock {
        let (kind, ticks_per_s) = counter().unwrap_or((ClockKind::Monotonic, NS_PER_S));
        let scale = (u128::from(NS_PER_S) << 32) / u128::from(ticks_per_s.max(1));
        Clock { kind, ticks_per_s, scale: scale as u64 }
    }

    /// Ticks since some instant.
    #[inline]
    pub fn now(&self) -> u64 {
        if self.kind == ClockKind::Monotonic { monotonic_ns() } else { counter_now() }
    }

    /// Nanoseconds of `ticks`.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64
    }
}

fn monotonic_ns() -> u64 {
    let mut time = sys::Timespec::default();
    // SAFETY: writes one timespec to a valid one.
    unsafe { sys::clock_gettime(sys::CLOCK_MONOTONIC, &mut time) };
    (time.seconds as u64).wrapping_mul(NS_PER_S).wrapping_add(time.nanoseconds as u64)
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter_now() -> u64 {
    // SAFETY: every 64-bit x86 has the instruction; chosen only where it runs.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn counter_now() -> u64 {
    let ticks: u64;
    // SAFETY: reads a register that user space may read on Linux.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter_now() -> u64 {
    monotonic_ns()
}

#[cfg(target_arch = "x86_64")]
fn counter() -> Option<(ClockKind, u64)> {
    (tsc_is_invariant() && kernel_trusts_tsc())
        .then(calibrate)
        .flatten()
        .map(|ticks_per_s| (ClockKind::Tsc, ticks_per_s))
}

#[cfg(target_arch = "aarch64")]
fn counter() -> Option<(ClockKind, u64)> {
    let ticks_per_s: u64;
    // SAFETY: reads a register that user space may read on Linux.
    unsafe {
        core::arch::asm!("mrs {}, cntfrq_el0", out(reg) ticks_per_s, options(nomem, nostack));
    };
    (ticks_per_s > 0).then_some((ClockKind::Cntvct, ticks_per_s))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter() -> Option<(ClockKind, u64)> {
    None
}

#[cfg(target_arch = "x86_64")]
fn tsc_is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    const POWER: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx & (1 << 8) != 0
}

/// The kernel leaves the counter for another clock source when the CPUs' counters differ. Without
/// the kernel's statement the processor's flag decides.
#[cfg(target_arch = "x86_64")]
fn kernel_trusts_tsc() -> bool {
    let path = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let mut name = [0u8; 32];
    // SAFETY: a path that ends in zero; at most the buffer is written. The
    // descriptor is left to `close`, which is looked up like every caller's.
    let length = unsafe {
        let fd = sys::open(path.as_ptr(), sys::O_RDONLY | sys::O_CLOEXEC);
        if fd < 0 {
            return true;
        }
        let length = sys::pread(fd, name.as_mut_ptr().cast(), name.len(), 0);
        crate::real::close(fd);
        length
    };
    let Some(name) = usize::try_from(length).ok().and_then(|length| name.get(..length)) else {
        return true;
    };
    !(name.starts_with(b"hpet") || name.starts_with(b"acpi_pm") || name.starts_with(b"jiffies"))
}

/// Ticks a second against `CLOCK_MONOTONIC` over 5 ms: each end is read several times and the
/// tightest reading used, so it is right to some 10 ppm.
#[cfg(target_arch = "x86_64")]
fn calibrate() -> Option<u64> {
    let (ticks, ns) = both_clocks();
    let pause = sys::Timespec { seconds: 0, nanoseconds: 5_000_000 };
    // SAFETY: reads one timespec; the remaining time is not requested.
    unsafe { sys::nanosleep(&pause, std::ptr::null_mut()) };
    let (later_ticks, later_ns) = both_clocks();
    let ns = later_ns.checked_sub(ns).filter(|ns| *ns > 0)?;
    let ticks = later_ticks.checked_sub(ticks).filter(|ticks| *ticks > 0)?;
    u64::try_from(u128::from(ticks) * u128::from(NS_PER_S) / u128::from(ns)).ok()
}

#[cfg(target_arch = "x86_64")]
fn both_clocks() -> (u64, u64) {
    let mut tightest = (u64::MAX, 0, 0);
    for _ in 0..16 {
        let before = counter_now();
        let ns = monotonic_ns();
        let width = counter_now().wrapping_sub(before);
        if width < tightest.0 {
            tightest = (width, before.wrapping_add(width / 2), ns);
        }
    }
    (tightest.1, tightest.2)
}
