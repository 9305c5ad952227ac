//! How nice a store's background threads are.
//!
//! As long as they keep up nobody waits for them, and callers have the processors wherever they want
//! them. When writers have to be slowed down a lot, others have the processors; then background
//! threads are no nicer than callers, until that is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{Pid, gettid};

use crate::stint::STINT;

/// How much nicer than callers' threads those are that can be late: nice(2).
pub(crate) const LATE: i32 = 19;
/// The same of those that callers wait for once they are late.
pub(crate) const IN_TIME: i32 = 10;
/// The most where it is for good, since only the privileged take it back (setpriority(2)): beside
/// others that take all processors they have to get something.
const FOR_GOOD: i32 = 10;
/// Writers press when each has to wait for more than this part of the longest wait, and until it is
/// less than the other.
const PRESSING: u32 = 2;
const RELIEVED: u32 = 16;

/// The background threads of a store.
#[derive(Debug, Default)]
pub(crate) struct Niceness {
    threads: Mutex<Vec<Thread>>,
    are_pressing: AtomicBool,
}

/// One that can be made less nice.
#[derive(Debug)]
struct Thread {
    id: Pid,
    nice_at_first: i32,
    nice: i32,
}

/// A thread that is one of them until this goes.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    of: &'a Niceness,
    thread: Pid,
}

impl Niceness {
    /// Makes this thread one of them, and so much nicer. It takes no processor from a thread that
    /// runs when it is woken (`SCHED_BATCH`, sched(7)), and its turns are as short as its stints.
    /// These are only wishes.
    pub(crate) fn join(&self, nicer: i32) -> Member<'_> {
        let id = gettid();
        let nice_at_first = getpriority_process(None).unwrap_or(0);
        let may_take_back = setpriority_process(None, nice_at_first - 1).is_ok();
        let nicer = if may_take_back { nicer } else { nicer.min(FOR_GOOD) };
        let nice = (nice_at_first + nicer).min(19);
        be_a_batch(nice);
        if may_take_back {
            let thread = Thread { id, nice_at_first, nice };
            let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
            thread.follow(self.are_pressing.load(Ordering::Relaxed));
            threads.push(thread);
        }
        Member { of: self, thread: id }
    }

    #[cfg(test)]
    pub(crate) fn are_pressing(&self) -> bool {
        self.are_pressing.load(Ordering::Relaxed)
    }

    /// Each write has to wait so many nanoseconds now, of at most `longest`.
    pub(crate) fn writers_wait(&self, nanoseconds: u32, longest: u32) {
        let were_pressing = self.are_pressing.load(Ordering::Relaxed);
        let are_pressing = nanoseconds > longest / if were_pressing { RELIEVED } else { PRESSING };
        if are_pressing == were_pressing {
            return;
        }
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        self.are_pressing.store(are_pressing, Ordering::Relaxed);
        threads.iter().for_each(|thread| thread.follow(are_pressing));
    }
}

impl Thread {
    fn follow(&self, are_pressing: bool) {
        let nice = if are_pressing { self.nice_at_first } else { self.nice };
        let _ = setpriority_process(Some(self.id), nice);
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        // Its number may be another thread's soon.
        let mut threads = self.of.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| thread.id != self.thread);
    }
}

fn be_a_batch(nice: i32) {
    let wish = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_BATCH as u32,
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        // From Linux 6.12 on: how long it has a processor before another's turn.
        sched_runtime: STINT.as_nanos() as u64,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the structure is read, and the thread is this one.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wish, 0) };
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn niceness_of_this_thread() -> i32 {
        getpriority_process(None).unwrap_or(i32::MAX)
    }

    #[test]
    fn they_are_nicer_than_callers_unless_writers_press() {
        const LONGEST: u32 = 1 << 20;
        let niceness = Niceness::default();
        let at_first = niceness_of_this_thread();
        let nicer = (at_first + LATE).min(19);
        let member = |does: &(dyn Fn() + Sync)| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let _member = niceness.join(LATE);
                    does();
                });
            });
        };
        member(&|| {
            if niceness_of_this_thread() == at_first + FOR_GOOD {
                eprintln!("not privileged: they stay as nice as they are");
                niceness.writers_wait(LONGEST, LONGEST);
                assert_eq!(niceness_of_this_thread(), at_first + FOR_GOOD);
                return;
            }
            let after = |wait| {
                niceness.writers_wait(wait, LONGEST);
                niceness_of_this_thread()
            };
            assert_eq!(niceness_of_this_thread(), nicer);
            assert_eq!(after(LONGEST / PRESSING), nicer);
            assert_eq!(after(LONGEST / PRESSING + 1), at_first);
            assert_eq!(after(LONGEST / RELIEVED + 1), at_first, "still");
            assert_eq!(after(LONGEST / RELIEVED), nicer);
            assert_eq!(after(LONGEST), at_first);
        });
        assert!(niceness.threads.lock().unwrap().is_empty());
        member(&|| {
            let can_be = !niceness.threads.lock().unwrap().is_empty();
            let expected = if can_be { at_first } else { at_first + FOR_GOOD };
            assert_eq!(niceness_of_this_thread(), expected, "they press already");
        });
        assert_eq!(niceness_of_this_thread(), at_first, "callers stay as they are");
    }
}
