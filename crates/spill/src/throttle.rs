//! Waiting a little, in a way that suits how busy the processors are.

use std::cell::Cell;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::thread::{Pid, gettid, sched_getcpu};

use crate::schedule::thread;

/// Waits that are longer are slept, however free the processors are. A sleep takes some 50 us more
/// than was asked for.
const SHORT: Duration = Duration::from_micros(20);
/// Where processors are scarce, short waits are added up to a sleep of so much.
const SLEEP: Duration = Duration::from_micros(100);
/// How often, at most, a thread finds out how scarce processors are.
const LOOK: Duration = Duration::from_millis(100);
/// What lies longer ago says nothing of now.
const STALE: Duration = Duration::from_secs(1);
/// They get scarce where a thread that could have run waited for more than this share of the time,
/// and stay so until it is less than the other: sleeping makes it less.
const SCARCE: f64 = 0.2;
const PLENTY: f64 = 0.08;

/// The threads of this process whose work a throttled writer waits for, and which give way to it.
static PATIENT: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: Cell<Own> = const { Cell::new(Own::NEW) };
}

/// A thread whose work throttled writers wait for, as long as it has this.
pub(crate) struct Patient(Pid);

impl Patient {
    /// This thread is one from now on.
    pub(crate) fn begin() -> Patient {
        let patient = Patient(gettid());
        patient_threads(|threads| threads.push(patient.0));
        patient
    }
}

impl Drop for Patient {
    fn drop(&mut self) {
        patient_threads(|threads| threads.retain(|&thread| thread != self.0));
    }
}

fn patient_threads<T>(of: impl FnOnce(&mut Vec<Pid>) -> T) -> T {
    of(&mut PATIENT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What a thread knows of its own waits.
#[derive(Clone, Copy)]
struct Own {
    /// When it last looked, and how long it had waited for processors by then.
    looked: Option<(Instant, Duration)>,
    scarce: bool,
    /// It had, then, a processor that others needed for its sake.
    in_the_way: bool,
    /// Short waits that were not waited yet.
    owed: Duration,
}

/// Waits so long, on average.
///
/// A thread that has a processor for itself stays on it: it would have it back late. One that
/// competes for it, or keeps it from those that do the work that is waited for, sleeps, so that they
/// get it; without that they would wait for a tick of the scheduler to take it by force, and for as
/// long.
pub(crate) fn pause(wait: Duration) {
    let mut own = OWN.get();
    let begin = Instant::now();
    own.look(begin, waited_for_processors, is_in_the_way);
    if own.scarce || wait > SHORT {
        own.owed += wait;
        if own.owed >= SLEEP || wait > SHORT {
            thread::sleep(std::mem::take(&mut own.owed));
        }
        return OWN.set(own);
    }
    OWN.set(own);
    while begin.elapsed() < wait {
        std::hint::spin_loop();
    }
}

/// Whether this thread has to compete for a processor.
pub(crate) fn are_processors_scarce() -> bool {
    let mut own = OWN.get();
    own.look(Instant::now(), waited_for_processors, is_in_the_way);
    OWN.set(own);
    own.scarce
}

impl Own {
    const NEW: Own = Own { looked: None, scarce: false, in_the_way: false, owed: Duration::ZERO };

    /// Finds out how scarce processors are, if it is time to; `waited` tells how long this thread
    /// has waited for them so far, `is_in_the_way` whether it has one that others need for its sake.
    fn look(
        &mut self,
        now: Instant,
        waited: impl FnOnce() -> Option<Duration>,
        is_in_the_way: impl FnOnce() -> bool,
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
        let was_in_the_way = std::mem::replace(&mut self.in_the_way, is_in_the_way());
        // Once may be chance: the system moves threads to where a processor is free.
        self.scarce = is_waiting || was_in_the_way && self.in_the_way;
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

/// Whether one of those whose work is waited for could run if this thread did not have its processor.
/// They are nicer, so this one hardly ever waits for them.
fn is_in_the_way() -> bool {
    let here = sched_getcpu();
    let threads = patient_threads(|threads| threads.clone());
    threads.iter().any(|thread| {
        let stat = fs::read_to_string(format!("/proc/self/task/{}/stat", thread.as_raw_nonzero()));
        stat.is_ok_and(|stat| is_ready_at(&stat, here))
    })
}

/// Whether a thread is ready to run, at that processor (the third and the 39th field of
/// `/proc/PID/task/TID/stat`: proc_pid_stat(5)).
fn is_ready_at(stat: &str, processor: usize) -> bool {
    // Its name may have spaces and parentheses.
    let fields = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    let mut fields = fields.split_ascii_whitespace();
    fields.next() == Some("R")
        && fields.nth(35).and_then(|field| field.parse().ok()) == Some(processor)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    #[test]
    fn short_waits_add_up() {
        let begin = Instant::now();
        for _ in 0..100 {
            pause(Duration::from_micros(10));
        }
        let took = begin.elapsed();
        assert!(took >= Duration::from_micros(900), "{took:?}");
    }

    #[test]
    fn processors_are_scarce_while_a_thread_waits_for_them() {
        let begin = Instant::now();
        let mut own = Own::NEW;
        let (mut at, mut waited) = (begin, Duration::ZERO);
        let mut after = |span: Duration, share: f64| {
            at += span;
            waited += span.mul_f64(share);
            own.look(at, || Some(waited), || false);
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
        own.look(at + LOOK, || None, || false);
        assert!(!own.scarce);
        own.look(at + 2 * LOOK, || None, || true);
        assert!(!own.scarce, "once");
        own.look(at + 3 * LOOK, || None, || true);
        assert!(own.scarce);
    }

    #[test]
    fn what_the_kernel_says_of_a_thread_is_understood() {
        let says = std::path::Path::new("/proc/thread-self/schedstat").exists();
        assert_eq!(waited_for_processors().is_some(), says);
    }

    #[test]
    fn who_needs_this_processor_for_the_work_that_is_waited_for_is_seen() {
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        let before = sched_getaffinity(None).unwrap();
        sched_setaffinity(None, &here).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // It has this thread's affinity.
            scope.spawn(|| {
                let _patient = Patient::begin();
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let begin = Instant::now();
            let mut seen = false;
            while !seen && begin.elapsed() < Duration::from_secs(5) {
                seen = is_in_the_way();
            }
            is_over.store(true, Ordering::Relaxed);
            assert!(seen);
        });
        sched_setaffinity(None, &before).unwrap();
    }

    #[test]
    fn where_a_thread_is_ready_is_read_behind_its_name() {
        let fields =
            "1 1 1 0 -1 64 5 0 0 0 9 3 0 0 30 10 4 0 77 4096 20 1 2 3 4 5 0 0 0 0 0 0 0 0 -1 1 0 0";
        let ready = format!("12 (a R) b) R {fields}");
        assert!(is_ready_at(&ready, 1) && !is_ready_at(&ready, 0));
        assert!(!is_ready_at(&format!("12 (a R) b) S {fields}"), 1));
        assert!(!is_ready_at("12 (a", 1));
    }
}
