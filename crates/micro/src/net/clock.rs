//! The clock that both ends on one machine share, and the CPU time of a thread.

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock, which all processes of a machine share (but for those
/// in a time namespace of their own).
pub fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| {
        (time.tv_sec() as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec() as u64)
    })
}

/// Identifies a boot of a machine: two ends with the same one share a clock.
pub fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// CPU time of the calling thread since it was made.
#[derive(Debug, Clone, Copy)]
pub struct CpuTime(Option<Usage>);

impl CpuTime {
    pub fn now() -> CpuTime {
        CpuTime(getrusage(UsageWho::RUSAGE_THREAD).ok())
    }

    /// User and system nanoseconds since [`CpuTime::now`].
    pub fn gained(self) -> Option<(u64, u64)> {
        let (before, after) = (self.0?, CpuTime::now().0?);
        let user = after.user_time().num_microseconds() - before.user_time().num_microseconds();
        let system =
            after.system_time().num_microseconds() - before.system_time().num_microseconds();
        Some((user.max(0) as u64 * 1000, system.max(0) as u64 * 1000))
    }
}
