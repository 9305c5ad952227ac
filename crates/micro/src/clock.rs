//! The cost of reading a clock, and its resolution.
#![allow(unsafe_code, reason = "clocks that the standard library does not read")]

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::batches::{self, BatchSpread};
use crate::error::MicroError;

/// Readings from which the smallest step of a clock is found.
const STEP_SAMPLES: usize = 2000;
/// A clock that does not move is given up after this time.
const MAX_STEP: Duration = Duration::from_millis(200);
/// How long the processor's counter is compared with the kernel's clock.
const CALIBRATION_TIME: Duration = Duration::from_millis(50);

/// One clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Clock {
    pub name: &'static str,
    pub read: BatchSpread,
    /// The smallest difference between two readings that differ, in nanoseconds; `None` where the
    /// clock did not move.
    pub step_ns: Option<f64>,
    /// The resolution that the kernel states, in nanoseconds.
    pub stated_ns: Option<f64>,
    /// Whether no reading was smaller than the one before it.
    pub monotonic: bool,
}

/// The kernel's clocks that are measured.
const KERNEL: [(&str, libc::clockid_t); 7] = [
    ("monotonic", libc::CLOCK_MONOTONIC),
    ("monotonic-raw", libc::CLOCK_MONOTONIC_RAW),
    ("monotonic-coarse", libc::CLOCK_MONOTONIC_COARSE),
    ("boottime", libc::CLOCK_BOOTTIME),
    ("realtime", libc::CLOCK_REALTIME),
    ("thread-cpu", libc::CLOCK_THREAD_CPUTIME_ID),
    ("process-cpu", libc::CLOCK_PROCESS_CPUTIME_ID),
];

/// Measures every clock for `time` each, on the calling thread, and calls `each` with every
/// result. When `stop` returns true, the results until then count.
///
/// # Errors
/// It was stopped before the first clock was measured.
pub fn run(
    time: Duration,
    stop: &dyn Fn() -> bool,
    each: &mut dyn FnMut(&Clock),
) -> Result<Vec<Clock>, MicroError> {
    let mut clocks = Vec::new();
    let mut keep = |clock: Option<Clock>| {
        if let Some(clock) = clock {
            each(&clock);
            clocks.push(clock);
        }
    };
    if !stop()
        && let Some(tick_ns) = counter_tick_ns()
    {
        let read = || counter().unwrap_or_default();
        keep(measure(COUNTER, time, stop, read, tick_ns, None));
    }
    for (name, id) in KERNEL {
        if stop() || now(id).is_none() {
            continue;
        }
        let read = || now(id).unwrap_or_default();
        keep(measure(name, time, stop, read, 1.0, stated(id)));
    }
    if clocks.is_empty() { Err(MicroError::Stopped) } else { Ok(clocks) }
}

/// `tick_ns`: nanoseconds of one unit of `read`.
fn measure(
    name: &'static str,
    time: Duration,
    stop: &dyn Fn() -> bool,
    read: impl Fn() -> u64,
    tick_ns: f64,
    stated_ns: Option<f64>,
) -> Option<Clock> {
    let calls = |calls: u64| {
        for _ in 0..calls {
            std::hint::black_box(read());
        }
        Ok::<(), MicroError>(())
    };
    let spread = batches::measure(time, stop, calls).ok().flatten()?;
    let (step, monotonic) = steps(&read);
    let step_ns = step.map(|step| step as f64 * tick_ns);
    Some(Clock { name, read: spread, step_ns, stated_ns, monotonic })
}

/// The smallest step that is not zero, and whether none went back.
fn steps(read: &impl Fn() -> u64) -> (Option<u64>, bool) {
    let begun = Instant::now();
    let (mut last, mut seen) = (read(), 0);
    let (mut least, mut monotonic) = (None::<u64>, true);
    while seen < STEP_SAMPLES && begun.elapsed() < MAX_STEP {
        let next = read();
        monotonic &= next >= last;
        if next > last {
            seen += 1;
            let step = next - last;
            least = Some(least.map_or(step, |least| least.min(step)));
        }
        last = next;
    }
    (least, monotonic)
}

/// CPU time of this process, its ended threads included.
pub fn process_cpu_ns() -> Option<u64> {
    now(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Nanoseconds of a clock of the kernel; `None` where it has none of that number.
fn now(id: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives through the call, which fills it.
    match unsafe { libc::clock_gettime(id, &raw mut time) } {
        0 => Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
        _ => None,
    }
}

/// The resolution that the kernel states.
fn stated(id: libc::clockid_t) -> Option<f64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives through the call, which fills it.
    match unsafe { libc::clock_getres(id, &raw mut time) } {
        0 => Some(time.tv_sec as f64 * 1e9 + time.tv_nsec as f64),
        _ => None,
    }
}

/// Nanoseconds of one tick of the processor's counter, against the kernel's clock; `None` where
/// there is no counter.
pub fn counter_tick_ns() -> Option<f64> {
    let (begun, before) = (Instant::now(), counter()?);
    std::thread::sleep(CALIBRATION_TIME);
    let (after, elapsed) = (counter()?, begun.elapsed());
    let ticks = after.checked_sub(before).filter(|ticks| *ticks > 0)?;
    Some(elapsed.as_nanos() as f64 / ticks as f64)
}

#[cfg(target_arch = "x86_64")]
const COUNTER: &str = "tsc";
#[cfg(target_arch = "x86_64")]
fn counter() -> Option<u64> {
    // SAFETY: part of the architecture; Linux lets every program read it unless it forbids that
    // for itself.
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

#[cfg(target_arch = "aarch64")]
const COUNTER: &str = "cntvct";
#[cfg(target_arch = "aarch64")]
fn counter() -> Option<u64> {
    let ticks: u64;
    // SAFETY: Linux lets every program read this register, and reading it changes nothing.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    Some(ticks)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const COUNTER: &str = "counter";
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn every_clock_is_measured() {
        let mut reported = 0;
        let clocks = run(Duration::ZERO, &|| false, &mut |_| reported += 1).unwrap();
        assert_eq!(clocks.len(), reported);
        let of = |name: &str| clocks.iter().find(|clock| clock.name == name).unwrap();
        for name in ["monotonic", "monotonic-raw", "thread-cpu"] {
            let clock = of(name);
            assert!(clock.read.min_ns > 0.0);
            assert!(clock.step_ns.unwrap() > 0.0 && clock.monotonic, "{clock:?}");
            assert!(clock.stated_ns.unwrap() > 0.0);
        }
        assert_eq!(run(Duration::ZERO, &|| true, &mut |_| {}), Err(MicroError::Stopped));
    }

    #[test]
    fn finds_the_smallest_step_and_a_clock_that_goes_back() {
        let script = |row: Vec<u64>| {
            let (row, at) = (row, Cell::new(0));
            move || {
                at.set(at.get() + 1);
                row[(at.get() - 1).min(row.len() - 1)]
            }
        };
        assert_eq!(steps(&script(vec![0, 0, 10, 14, 14, 20])), (Some(4), true));
        assert_eq!(steps(&script(vec![5, 9, 8, 10])), (Some(2), false));
        assert_eq!(steps(&script(vec![7])), (None, true));
    }
}
