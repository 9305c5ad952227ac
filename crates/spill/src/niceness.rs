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

/// How much nicer than callers' threads they are: nice(2).
const NICER: i32 = 19;
/// The same where it is for good, since only the privileged take it back (setpriority(2)): beside
/// others that take all processors they have to get something.
const NICER_FOR_GOOD: i32 = 10;
/// Writers press when each has to wait for more than this part of the longest wait, and until it is
/// less than the other.
const PRESSING: u32 = 8;
const RELIEVED: u32 = 64;

/// The background threads of a store.
#[derive(Debug, Default)]
pub(crate) struct Niceness {
    /// Those that can be made less nice, and how nice they were at first.
    threads: Mutex<Vec<(Pid, i32)>>,
    are_pressing: AtomicBool,
}

/// A thread that is one of them until this goes.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    of: &'a Niceness,
    thread: Pid,
}

impl Niceness {
    /// Makes this thread one of them. It takes no processor from a thread that runs when it is woken
    /// (`SCHED_BATCH`, sched(7)), and its turns are as short as its stints. These are only wishes.
    pub(crate) fn join(&self) -> Member<'_> {
        let thread = gettid();
        let at_first = getpriority_process(None).unwrap_or(0);
        let may_take_back = setpriority_process(None, at_first - 1).is_ok();
        let nicer = if may_take_back { NICER } else { NICER_FOR_GOOD };
        be_a_batch((at_first + nicer).min(19));
        if may_take_back {
            let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
            threads.push((thread, at_first));
            if self.are_pressing.load(Ordering::Relaxed) {
                let _ = setpriority_process(Some(thread), at_first);
            }
        }
        Member { of: self, thread }
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
        for &(thread, at_first) in &*threads {
            let nice = if are_pressing { at_first } else { (at_first + NICER).min(19) };
            let _ = setpriority_process(Some(thread), nice);
        }
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        // Its number may be another thread's soon.
        let mut threads = self.of.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|&(thread, _)| thread != self.thread);
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
        let nicer = (at_first + NICER).min(19);
        let member = |does: &(dyn Fn() + Sync)| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let _member = niceness.join();
                    does();
                });
            });
        };
        member(&|| {
            if niceness_of_this_thread() == at_first + NICER_FOR_GOOD {
                eprintln!("not privileged: they stay as nice as they are");
                niceness.writers_wait(LONGEST, LONGEST);
                assert_eq!(niceness_of_this_thread(), at_first + NICER_FOR_GOOD);
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
            let expected = if can_be { at_first } else { at_first + NICER_FOR_GOOD };
            assert_eq!(niceness_of_this_thread(), expected, "they press already");
        });
        assert_eq!(niceness_of_this_thread(), at_first, "callers stay as they are");
    }
}
