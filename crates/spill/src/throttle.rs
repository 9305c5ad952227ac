//! Short delays of writers, by spinning or sleeping, depending on how contended the CPUs are.

use std::cell::Cell;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::thread::{Pid, gettid};

use crate::schedule::thread;

/// A delay of this length is always slept.
const MIN_SLEPT_DELAY: Duration = Duration::from_micros(100);
/// On contended CPUs shorter delays accumulate, and a write sleeps them at this sum.
const WRITE_SLEEP_THRESHOLD: Duration = Duration::from_micros(150);
/// A read of a read-mostly thread sleeps them earlier: its reads are many, and short otherwise.
const READ_SLEEP_THRESHOLD: Duration = Duration::from_micros(60);
/// The writes of such a thread, which are few, leave it up to this sum.
const MAX_OWED: Duration = Duration::from_micros(300);
/// Delays for a device accumulate further, since it lags only now and then: sleeps stay rarer than
/// one in a thousand writes.
const DEVICE_SLEEP_THRESHOLD: Duration = Duration::from_micros(300);
/// The shortest sleep to request; a zero sleep may not sleep at all.
const MIN_SLEEP: Duration = Duration::from_micros(1);
/// Reads per delayed write that make a thread read-mostly, as a moving average over some ten
/// writes.
const READ_MOSTLY_RATIO: f32 = 8.0;
const EWMA_WEIGHT: f32 = 0.1;
/// How often a thread measures contention, at most.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// An older sample says nothing about now.
const MAX_SAMPLE_AGE: Duration = Duration::from_secs(1);
/// CPUs are contended when a runnable thread waited more than this share of the time.
const CONTENDED_ABOVE: f64 = 0.2;

/// The throttled threads, and when they last measured contention.
static THROTTLED: Mutex<Vec<(Pid, Instant)>> = Mutex::new(Vec::new());
/// CPUs that background threads may use. A caller may be pinned to one of them.
static CPUS: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    static THREAD: Cell<ThreadThrottle> = const { Cell::new(ThreadThrottle::NEW) };
    /// Delay that this thread still has to sleep, for all stores.
    static SLEEP_OWED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// Moving average of how much longer a sleep takes than requested.
    static OVERSLEEP: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// Reads of the thread since its last delayed write.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// Called when a store's background threads start, with the affinity of this thread.
pub(crate) fn count_cpus() {
    let count = std::thread::available_parallelism().map_or(1, |count| count.get());
    CPUS.store(count, Ordering::Relaxed);
}

/// State of a thread.
#[derive(Clone, Copy)]
struct ThreadThrottle {
    /// Time of the last sample, and the accumulated run-queue wait then.
    sampled: Option<(Instant, Duration)>,
    contended: bool,
    /// Moving average of reads between two delayed writes.
    reads_per_write: f32,
}

/// Delays this thread on average by `wait`, now or in a [`settle_before_read`].
///
/// A thread with a CPU of its own spins, since it would get the CPU back late. A thread that
/// competes for CPUs, or keeps one from those that do the awaited work, sleeps. Otherwise they
/// would wait for a scheduler tick.
pub(crate) fn delay(wait: Duration) {
    let mut thread = THREAD.get();
    let begin = Instant::now();
    thread.update(begin, run_queue_wait, recently_throttled);
    thread.reads_per_write += EWMA_WEIGHT * (READS.take() as f32 - thread.reads_per_write);
    if thread.contended || wait >= MIN_SLEPT_DELAY {
        accumulate(
            if thread.reads_per_write < READ_MOSTLY_RATIO {
                WRITE_SLEEP_THRESHOLD
            } else {
                MAX_OWED
            },
            wait,
        );
        return THREAD.set(thread);
    }
    THREAD.set(thread);
    while begin.elapsed() < wait {
        std::hint::spin_loop();
    }
}

/// Delays this thread on average by `wait` for a device, now or in a [`settle_before_read`]. A
/// device needs no CPU, so the thread sleeps.
pub(crate) fn delay_for_device(wait: Duration) {
    accumulate(DEVICE_SLEEP_THRESHOLD, wait);
}

/// Adds to what this thread owes, and sleeps it at the threshold.
fn accumulate(threshold: Duration, wait: Duration) {
    SLEEP_OWED.set(SLEEP_OWED.get() + wait);
    if SLEEP_OWED.get() >= threshold {
        sleep_owed();
    }
}

fn sleep_owed() {
    let (owed, overslept) = (SLEEP_OWED.replace(Duration::ZERO), OVERSLEEP.get());
    let requested = owed.saturating_sub(overslept).max(MIN_SLEEP);
    let begin = Instant::now();
    thread::sleep(requested);
    let slept = begin.elapsed();
    let overslept_now = slept.saturating_sub(requested).min(owed);
    OVERSLEEP.set(overslept.mul_f32(1.0 - EWMA_WEIGHT) + overslept_now.mul_f32(EWMA_WEIGHT));
    SLEEP_OWED.set(owed.saturating_sub(slept));
}

/// A read-mostly thread sleeps what its writes owe, if that is long enough.
///
/// Every read begins with this. Sleeps are rare among the many reads of such a thread, but would be
/// frequent among its few writes.
#[inline]
pub(crate) fn settle_before_read() {
    READS.set(READS.get().saturating_add(1));
    // The writes of other threads sleep by themselves, also for a device.
    if SLEEP_OWED.get() >= READ_SLEEP_THRESHOLD && THREAD.get().reads_per_write >= READ_MOSTLY_RATIO
    {
        sleep_owed();
    }
}

/// Whether this thread competes for a CPU.
pub(crate) fn is_cpu_contended() -> bool {
    let mut thread = THREAD.get();
    thread.update(Instant::now(), run_queue_wait, recently_throttled);
    THREAD.set(thread);
    thread.contended
}

impl ThreadThrottle {
    const NEW: ThreadThrottle =
        ThreadThrottle { sampled: None, contended: false, reads_per_write: 0.0 };

    /// Measures contention if it is time to. `waited` returns the thread's accumulated run-queue
    /// wait, `throttled` the number of throttled threads.
    fn update(
        &mut self,
        now: Instant,
        waited: impl FnOnce() -> Option<Duration>,
        throttled: impl FnOnce(Instant) -> usize,
    ) {
        let span = self.sampled.map(|(at, _)| now.duration_since(at));
        if span.is_some_and(|span| span < SAMPLE_INTERVAL) {
            return;
        }
        let waited = waited();
        let is_waiting = match (self.sampled, span, waited) {
            (Some((_, before)), Some(span), Some(waited)) if span < MAX_SAMPLE_AGE => {
                let share = waited.saturating_sub(before).as_secs_f64() / span.as_secs_f64();
                share > CONTENDED_ABOVE
            }
            // Without a measurement the CPUs count as free.
            _ => false,
        };
        // Spinning threads would keep all CPUs from the lower-priority threads that they wait for,
        // and would themselves hardly wait.
        self.contended = is_waiting || throttled(now) >= CPUS.load(Ordering::Relaxed);
        self.sampled = Some((now, waited.unwrap_or_default()));
    }
}

/// Accumulated run-queue wait of this thread: the second number of `/proc/PID/task/TID/schedstat`
/// (kernel document `scheduler/sched-stats`). `None` if the kernel does not report it.
fn run_queue_wait() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let waited = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(waited))
}

/// Number of recently throttled threads of this process, including this one.
fn recently_throttled(now: Instant) -> usize {
    count_throttled(gettid(), now)
}

fn count_throttled(thread: Pid, now: Instant) -> usize {
    let mut all = THROTTLED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|&(other, at)| other != thread && now.duration_since(at) < 2 * SAMPLE_INTERVAL);
    all.push((thread, now));
    all.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A contended thread that does not measure again.
    fn contended_thread() -> ThreadThrottle {
        let sampled = Instant::now() + Duration::from_secs(3600);
        ThreadThrottle {
            sampled: Some((sampled, Duration::ZERO)),
            contended: true,
            ..ThreadThrottle::NEW
        }
    }

    #[test]
    fn short_delays_accumulate() {
        let begin = Instant::now();
        for _ in 0..100 {
            delay(Duration::from_micros(10));
        }
        let took = begin.elapsed() + SLEEP_OWED.get();
        assert!(took >= Duration::from_millis(1), "{took:?}");
    }

    #[test]
    fn uncontended_threads_sleep_only_long_delays() {
        THREAD.set(ThreadThrottle { contended: false, ..contended_thread() });
        let begin = Instant::now();
        delay(MIN_SLEPT_DELAY * 3 / 4);
        assert!(SLEEP_OWED.get().is_zero() && begin.elapsed() >= MIN_SLEPT_DELAY * 3 / 4, "spun");
        delay(MIN_SLEPT_DELAY);
        assert_eq!(SLEEP_OWED.get(), MIN_SLEPT_DELAY, "left for the next call");
    }

    #[test]
    fn device_delays_are_slept_together() {
        let begin = Instant::now();
        delay_for_device(DEVICE_SLEEP_THRESHOLD / 2);
        settle_before_read();
        assert_eq!(
            SLEEP_OWED.get(),
            DEVICE_SLEEP_THRESHOLD / 2,
            "slept by a write, since this thread is not read-mostly"
        );
        delay_for_device(DEVICE_SLEEP_THRESHOLD / 2);
        assert!(SLEEP_OWED.get().is_zero() && begin.elapsed() >= DEVICE_SLEEP_THRESHOLD);
    }

    #[test]
    fn read_mostly_thread_sleeps_owed_delay_in_reads() {
        THREAD.set(ThreadThrottle { reads_per_write: 100.0, ..contended_thread() });
        let took = |operation: fn()| {
            let begin = Instant::now();
            operation();
            begin.elapsed()
        };
        let write = || delay(READ_SLEEP_THRESHOLD * 3 / 4);
        settle_before_read();
        write();
        settle_before_read();
        assert_eq!(SLEEP_OWED.get(), READ_SLEEP_THRESHOLD * 3 / 4, "below the sleep threshold");
        write();
        assert_eq!(SLEEP_OWED.get(), READ_SLEEP_THRESHOLD * 3 / 2, "left for a read");
        assert!(took(settle_before_read) >= READ_SLEEP_THRESHOLD * 3 / 2);
        assert!(SLEEP_OWED.get().is_zero());
        SLEEP_OWED.set(MAX_OWED - READ_SLEEP_THRESHOLD / 2);
        assert!(took(|| delay(READ_SLEEP_THRESHOLD * 3 / 4)) >= MAX_OWED / 2, "over the limit");
        assert!(SLEEP_OWED.get() < READ_SLEEP_THRESHOLD);
    }

    #[test]
    fn unslept_delay_stays_owed() {
        OVERSLEEP.set(2 * WRITE_SLEEP_THRESHOLD);
        SLEEP_OWED.set(4 * WRITE_SLEEP_THRESHOLD);
        let begin = Instant::now();
        sleep_owed();
        assert!(begin.elapsed() + SLEEP_OWED.get() >= 4 * WRITE_SLEEP_THRESHOLD);
    }

    #[test]
    fn balanced_thread_sleeps_in_writes() {
        THREAD.set(contended_thread());
        for _ in 0..100 {
            settle_before_read();
            delay(WRITE_SLEEP_THRESHOLD / 4);
            assert!(SLEEP_OWED.get() < WRITE_SLEEP_THRESHOLD);
        }
        for _ in 0..100 {
            (0..2 * READ_MOSTLY_RATIO as u32).for_each(|_| settle_before_read());
            delay(WRITE_SLEEP_THRESHOLD / 4);
        }
        assert!(THREAD.get().reads_per_write > READ_MOSTLY_RATIO);
    }

    #[test]
    fn contention_follows_run_queue_wait() {
        let begin = Instant::now();
        let mut thread = ThreadThrottle::NEW;
        let (mut at, mut waited) = (begin, Duration::ZERO);
        let mut after = |span: Duration, share: f64| {
            at += span;
            waited += span.mul_f64(share);
            thread.update(at, || Some(waited), |_| 0);
            thread.contended
        };
        assert!(!after(SAMPLE_INTERVAL, 0.9), "no earlier sample");
        assert!(!after(SAMPLE_INTERVAL, 0.1));
        assert!(!after(SAMPLE_INTERVAL / 2, 1.0), "too early for a sample");
        assert!(after(SAMPLE_INTERVAL, 0.1), "over both spans");
        assert!(!after(SAMPLE_INTERVAL, 0.1));
        assert!(after(SAMPLE_INTERVAL, 0.3));
        assert!(!after(MAX_SAMPLE_AGE, 0.9), "too long ago");
        thread.contended = true;
        thread.update(at + SAMPLE_INTERVAL, || None, |_| 0);
        assert!(!thread.contended);
        thread.update(at + 2 * SAMPLE_INTERVAL, || None, |_| usize::MAX);
        assert!(thread.contended, "all CPUs are in use");
    }

    #[test]
    fn schedstat_is_parsed() {
        let says = std::path::Path::new("/proc/thread-self/schedstat").exists();
        assert_eq!(run_queue_wait().is_some(), says);
    }

    #[test]
    fn throttled_threads_are_counted_once() {
        let (one, other) = (gettid(), Pid::from_raw(i32::MAX).unwrap());
        let now = Instant::now();
        // Other tests throttle as well.
        let before = count_throttled(one, now);
        assert_eq!(count_throttled(one, now), before);
        assert_eq!(count_throttled(other, now), before + 1);
        assert_eq!(count_throttled(one, now + 3 * SAMPLE_INTERVAL), 1);
    }
}
