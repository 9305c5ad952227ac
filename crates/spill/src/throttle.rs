//! Waiting a little, in a way that suits how busy the processors are.

use std::cell::Cell;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::thread::{Pid, gettid};

use crate::schedule::thread;

/// Waits so long are slept, however free the processors are.
const SLEEP: Duration = Duration::from_micros(100);
/// Where they are not, shorter ones are added up, and a write sleeps them once they come to so much.
const WRITE_SLEEPS: Duration = Duration::from_micros(150);
/// A read of a thread that mostly reads sleeps them before that: such reads are many, and short where
/// nothing is waited for.
const READ_SLEEPS: Duration = Duration::from_micros(60);
/// Such a thread's writes, which are few, leave it to them up to so much.
const MOST_OWED: Duration = Duration::from_micros(300);
/// For a device: that is behind now and then, and with fewer sleeps they are within one in a thousand
/// writes.
const DEVICE_SLEEPS: Duration = Duration::from_micros(300);
/// A sleep is asked for that takes so long at least, for one of nothing may be none.
const SHORTEST: Duration = Duration::from_micros(1);
/// Where processors are free a wait is spun, by the thread's next read: that has the time, and what
/// comes upon a thread meanwhile, as an interrupt, does not come upon a write. Writes without reads
/// between them leave it up to so much.
const MOST_LEFT: Duration = Duration::from_micros(20);
/// Mostly: so many reads for each write that waits, on average of the last ten or so.
const MOSTLY: f32 = 8.0;
const NEW: f32 = 0.1;
/// How often, at most, a thread finds out how scarce processors are.
const LOOK: Duration = Duration::from_millis(100);
/// What lies longer ago says nothing of now.
const STALE: Duration = Duration::from_secs(1);
/// They get scarce where a thread that could have run waited for more than this share of the time,
/// and stay so until it is less than the other: sleeping makes it less.
const SCARCE: f64 = 0.2;
const PLENTY: f64 = 0.08;

/// The threads that were throttled, and when they last looked how scarce processors are.
static THROTTLED: Mutex<Vec<(Pid, Instant)>> = Mutex::new(Vec::new());
/// Processors that background threads may use. A caller may be bound to one of them.
static PROCESSORS: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    static OWN: Cell<Own> = const { Cell::new(Own::NEW) };
    /// Waits of this thread that were not waited yet, of all stores.
    static OWED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// Waits of this thread that its next read spins.
    static LEFT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// How much longer than it was to be a sleep takes, of late.
    static LATE: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// Its reads since it last wrote and had to wait.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// A store's background threads begin, with the affinity of this one.
pub(crate) fn count_processors() {
    let count = std::thread::available_parallelism().map_or(1, |count| count.get());
    PROCESSORS.store(count, Ordering::Relaxed);
}

/// What a thread knows of its own waits.
#[derive(Clone, Copy)]
struct Own {
    /// When it last looked, and how long it had waited for processors by then.
    looked: Option<(Instant, Duration)>,
    scarce: bool,
    /// Its reads between two writes that had to wait.
    reads: f32,
}

/// Waits so long, on average, now or in a [`pay`].
///
/// A thread that has a processor for itself stays on it: it would have it back late. One that
/// competes for it, or keeps it from those that do the work that is waited for, sleeps, so that they
/// get it; without that they would wait for a tick of the scheduler to take it by force, and for as
/// long.
pub(crate) fn pause(wait: Duration) {
    let mut own = OWN.get();
    let begin = Instant::now();
    own.look(begin, waited_for_processors, throttled_lately);
    own.reads += NEW * (READS.take() as f32 - own.reads);
    if own.scarce || wait >= SLEEP {
        owe_up_to(if own.reads < MOSTLY { WRITE_SLEEPS } else { MOST_OWED }, wait);
        return OWN.set(own);
    }
    OWN.set(own);
    let left = LEFT.get() + wait;
    LEFT.set(left.min(MOST_LEFT));
    spin(left.saturating_sub(MOST_LEFT));
}

fn spin(wait: Duration) {
    if wait.is_zero() {
        return;
    }
    let begin = Instant::now();
    while begin.elapsed() < wait {
        std::hint::spin_loop();
    }
}

/// Waits so long, on average, now or in a [`pay`], for a device: that takes no processor, and so
/// neither does the wait.
pub(crate) fn owe(wait: Duration) {
    owe_up_to(DEVICE_SLEEPS, wait);
}

/// Adds to what this thread owes, and sleeps all of it once it is so much.
fn owe_up_to(most: Duration, wait: Duration) {
    OWED.set(OWED.get() + wait);
    if OWED.get() >= most {
        sleep_what_is_owed();
    }
}

fn sleep_what_is_owed() {
    let (owed, late) = (OWED.replace(Duration::ZERO), LATE.get());
    let asked = owed.saturating_sub(late).max(SHORTEST);
    let begin = Instant::now();
    thread::sleep(asked);
    let slept = begin.elapsed();
    let later = slept.saturating_sub(asked).min(owed);
    LATE.set(late.mul_f32(1.0 - NEW) + later.mul_f32(NEW));
    OWED.set(owed.saturating_sub(slept));
}

/// Spins what this thread's writes left, and sleeps what a thread that mostly reads owes for them, if
/// that is long enough for a sleep.
///
/// Reads begin with it. Where that is slept processors are scarce, so that something has to wait, and where most of
/// what a thread asks are reads a sleep is rare among them, and was frequent among its few writes.
#[inline]
pub(crate) fn pay() {
    READS.set(READS.get().saturating_add(1));
    spin(LEFT.take());
    // Others' writes wait by themselves, also for a device.
    if OWED.get() >= READ_SLEEPS && OWN.get().reads >= MOSTLY {
        sleep_what_is_owed();
    }
}

/// Whether this thread has to compete for a processor.
pub(crate) fn are_processors_scarce() -> bool {
    let mut own = OWN.get();
    own.look(Instant::now(), waited_for_processors, throttled_lately);
    OWN.set(own);
    own.scarce
}

impl Own {
    const NEW: Own = Own { looked: None, scarce: false, reads: 0.0 };

    /// Finds out how scarce processors are, if it is time to; `waited` tells how long this thread
    /// has waited for them so far, `throttled` how many threads are throttled.
    fn look(
        &mut self,
        now: Instant,
        waited: impl FnOnce() -> Option<Duration>,
        throttled: impl FnOnce(Instant) -> usize,
    ) {
        let span = self.looked.map(|(at, _)| now.duration_since(at));
        if span.is_some_and(|span| span < LOOK) {
            return;
        }
        let waited = waited();
        let is_waiting = match (self.looked, span, waited) {
            (Some((_, before)), Some(span), Some(waited)) if span < STALE => {
                let share = waited.saturating_sub(before).as_secs_f64() / span.as_secs_f64();
                share > if self.scarce { PLENTY } else { SCARCE }
            }
            // Without an answer it is not known to be.
            _ => false,
        };
        // They would keep all processors from those that do what they wait for, and which are nicer:
        // they themselves hardly ever wait for them.
        self.scarce = is_waiting || throttled(now) >= PROCESSORS.load(Ordering::Relaxed);
        self.looked = Some((now, waited.unwrap_or_default()));
    }
}

/// How long this thread has waited for a processor since it began (the second number of
/// `/proc/PID/task/TID/schedstat`, kernel document `scheduler/sched-stats`); None where the kernel
/// does not say.
fn waited_for_processors() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let waited = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(waited))
}

/// How many threads of this process were throttled lately; this one is.
fn throttled_lately(now: Instant) -> usize {
    count_throttled(gettid(), now)
}

fn count_throttled(thread: Pid, now: Instant) -> usize {
    let mut all = THROTTLED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|&(other, at)| other != thread && now.duration_since(at) < 2 * LOOK);
    all.push((thread, now));
    all.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that has to compete for a processor, and does not look again.
    fn in_scarcity() -> Own {
        let looked = Instant::now() + Duration::from_secs(3600);
        Own { looked: Some((looked, Duration::ZERO)), scarce: true, ..Own::NEW }
    }

    #[test]
    fn short_waits_add_up() {
        let begin = Instant::now();
        for _ in 0..100 {
            pause(Duration::from_micros(10));
        }
        let took = begin.elapsed() + OWED.get() + LEFT.get();
        assert!(took >= Duration::from_millis(1), "{took:?}");
    }

    #[test]
    fn where_processors_are_free_only_long_waits_are_slept() {
        OWN.set(Own { scarce: false, ..in_scarcity() });
        let begin = Instant::now();
        pause(SLEEP * 3 / 4);
        assert!(OWED.get().is_zero() && begin.elapsed() >= SLEEP * 3 / 4 - MOST_LEFT, "spun");
        assert_eq!(LEFT.get(), MOST_LEFT, "but for what a read spins");
        pause(SLEEP);
        assert_eq!(OWED.get(), SLEEP, "left for the next");
    }

    #[test]
    fn a_read_spins_what_writes_left() {
        OWN.set(Own { scarce: false, ..in_scarcity() });
        pause(MOST_LEFT / 2);
        assert_eq!(LEFT.get(), MOST_LEFT / 2);
        pause(MOST_LEFT);
        assert_eq!(LEFT.get(), MOST_LEFT, "what is more is spun by the write");
        let begin = Instant::now();
        pay();
        assert!(begin.elapsed() >= MOST_LEFT && LEFT.get().is_zero());
    }

    #[test]
    fn what_is_owed_for_a_device_is_slept_together() {
        let begin = Instant::now();
        owe(DEVICE_SLEEPS / 2);
        pay();
        assert_eq!(
            OWED.get(),
            DEVICE_SLEEPS / 2,
            "by a write, as this thread does not mostly read"
        );
        owe(DEVICE_SLEEPS / 2);
        assert!(OWED.get().is_zero() && begin.elapsed() >= DEVICE_SLEEPS);
    }

    #[test]
    fn what_a_thread_that_mostly_reads_owes_is_waited_by_its_next_read_or_after_more_writes() {
        OWN.set(Own { reads: 100.0, ..in_scarcity() });
        let took = |operation: fn()| {
            let begin = Instant::now();
            operation();
            begin.elapsed()
        };
        let write = || pause(READ_SLEEPS * 3 / 4);
        pay();
        write();
        pay();
        assert_eq!(OWED.get(), READ_SLEEPS * 3 / 4, "too little for a sleep");
        write();
        assert_eq!(OWED.get(), READ_SLEEPS * 3 / 2, "left for a read");
        assert!(took(pay) >= READ_SLEEPS * 3 / 2);
        assert!(OWED.get().is_zero());
        OWED.set(MOST_OWED - READ_SLEEPS / 2);
        assert!(took(|| pause(READ_SLEEPS * 3 / 4)) >= MOST_OWED / 2, "more than may be owed");
        assert!(OWED.get() < READ_SLEEPS);
    }

    #[test]
    fn what_a_sleep_leaves_stays_owed() {
        LATE.set(2 * WRITE_SLEEPS);
        OWED.set(4 * WRITE_SLEEPS);
        let begin = Instant::now();
        sleep_what_is_owed();
        assert!(begin.elapsed() + OWED.get() >= 4 * WRITE_SLEEPS);
    }

    #[test]
    fn a_thread_that_writes_as_often_as_it_reads_waits_when_it_writes() {
        OWN.set(in_scarcity());
        for _ in 0..100 {
            pay();
            pause(WRITE_SLEEPS / 4);
            assert!(OWED.get() < WRITE_SLEEPS);
        }
        for _ in 0..100 {
            (0..2 * MOSTLY as u32).for_each(|_| pay());
            pause(WRITE_SLEEPS / 4);
        }
        assert!(OWN.get().reads > MOSTLY);
    }

    #[test]
    fn processors_are_scarce_while_a_thread_waits_for_them() {
        let begin = Instant::now();
        let mut own = Own::NEW;
        let (mut at, mut waited) = (begin, Duration::ZERO);
        let mut after = |span: Duration, share: f64| {
            at += span;
            waited += span.mul_f64(share);
            own.look(at, || Some(waited), |_| 0);
            own.scarce
        };
        assert!(!after(LOOK, 0.9), "nothing to compare with");
        assert!(!after(LOOK, 0.1));
        assert!(!after(LOOK / 2, 1.0), "too early to look again");
        assert!(after(LOOK, 0.1), "of both spans together");
        assert!(after(LOOK, 0.1), "it stays so");
        assert!(!after(LOOK, 0.05));
        assert!(after(LOOK, 0.3));
        assert!(!after(STALE, 0.9), "too long ago");
        own.scarce = true;
        own.look(at + LOOK, || None, |_| 0);
        assert!(!own.scarce);
        own.look(at + 2 * LOOK, || None, |_| usize::MAX);
        assert!(own.scarce, "they have them all");
    }

    #[test]
    fn what_the_kernel_says_of_a_thread_is_understood() {
        let says = std::path::Path::new("/proc/thread-self/schedstat").exists();
        assert_eq!(waited_for_processors().is_some(), says);
    }

    #[test]
    fn threads_that_were_throttled_lately_are_counted_once() {
        let (one, other) = (gettid(), Pid::from_raw(i32::MAX).unwrap());
        let now = Instant::now();
        // Other tests throttle as well.
        let before = count_throttled(one, now);
        assert_eq!(count_throttled(one, now), before);
        assert_eq!(count_throttled(other, now), before + 1);
        assert_eq!(count_throttled(one, now + 3 * LOOK), 1);
    }
}
