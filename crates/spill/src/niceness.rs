//! How nice a store's background threads are.
//!
//! As long as they keep up nobody waits for them, and callers have the processors wherever they want
//! them. When writers have to be slowed down a lot, others have the processors; then background
//! threads are no nicer than callers, until that is over. So they are while a caller waits for what they
//! do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    threads: Mutex<Threads>,
    are_pressing: AtomicBool,
}

#[derive(Debug, Default)]
struct Threads {
    all: Vec<Thread>,
    /// Callers that wait for them.
    waiting: usize,
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

/// A caller that waits for them until this goes.
#[derive(Debug)]
pub(crate) struct Waiting<'a>(&'a Niceness);

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
            let mut threads = self.lock();
            thread.follow(self.is_waited_for(&threads));
            threads.all.push(thread);
        }
        Member { of: self, thread: id }
    }

    /// Each write has to wait so many nanoseconds now, of at most `longest`.
    pub(crate) fn writers_wait(&self, nanoseconds: u32, longest: u32) {
        let were_pressing = self.are_pressing.load(Ordering::Relaxed);
        let are_pressing = nanoseconds > longest / if were_pressing { RELIEVED } else { PRESSING };
        if are_pressing == were_pressing {
            return;
        }
        let threads = self.lock();
        self.are_pressing.store(are_pressing, Ordering::Relaxed);
        self.tell(&threads);
    }

    /// A caller may have to wait for what one of them does: a merge, a lock.
    pub(crate) fn wait(&self) -> Waiting<'_> {
        self.change_waiting(|waiting| *waiting += 1);
        Waiting(self)
    }

    fn change_waiting(&self, change: impl FnOnce(&mut usize)) {
        let mut threads = self.lock();
        let was = self.is_waited_for(&threads);
        change(&mut threads.waiting);
        if self.is_waited_for(&threads) != was {
            self.tell(&threads);
        }
    }

    #[cfg(test)]
    pub(crate) fn someone_waits(&self) -> bool {
        self.is_waited_for(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_waited_for(&self, threads: &Threads) -> bool {
        threads.waiting > 0 || self.are_pressing.load(Ordering::Relaxed)
    }

    fn tell(&self, threads: &Threads) {
        let is_waited_for = self.is_waited_for(threads);
        threads.all.iter().for_each(|thread| thread.follow(is_waited_for));
    }
}

impl Thread {
    fn follow(&self, is_waited_for: bool) {
        let nice = if is_waited_for { self.nice_at_first } else { self.nice };
        let _ = setpriority_process(Some(self.id), nice);
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        // Its number may be another thread's soon.
        self.of.lock().all.retain(|thread| thread.id != self.thread);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.change_waiting(|waiting| *waiting -= 1);
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
    use std::time::{Duration, Instant};

    use super::*;
    use crate::inner::lock;
    use crate::{Options, Store};

    fn niceness_of_this_thread() -> i32 {
        getpriority_process(None).unwrap_or(i32::MAX)
    }

    /// A merge of nice threads may take as long as others have the processors.
    #[test]
    fn callers_that_wait_for_a_merge_are_known() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path().join("store"), Options::default()).unwrap();
        let (table, inner) = (store.table("t").unwrap(), store.inner());
        let calls: [&(dyn Fn() + Sync); 4] = [
            &|| store.flush().unwrap(),
            &|| assert!(store.settle(Duration::from_secs(60)).unwrap()),
            &|| store.checkpoint(home.path().join("copy")).unwrap(),
            &|| store.drop_table("t").unwrap(),
        ];
        for (number, call) in calls.into_iter().enumerate() {
            if number == 0 {
                // It waits for the merge of that alone.
                table.put(b"key", b"value").unwrap();
            }
            let held = (lock(&inner.collector), lock(&inner.merging));
            assert!(!inner.niceness.someone_waits(), "{number}");
            std::thread::scope(|scope| {
                scope.spawn(call);
                let limit = Instant::now() + Duration::from_secs(60);
                while !inner.niceness.someone_waits() {
                    assert!(Instant::now() < limit, "{number}");
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_millis(20));
                assert!(inner.niceness.someone_waits(), "{number}");
                drop(held);
            });
            assert!(!inner.niceness.someone_waits(), "{number}");
        }
    }

    #[test]
    fn they_are_nicer_than_callers_unless_these_wait_for_them() {
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
            let callers = [niceness.wait(), niceness.wait()];
            assert_eq!(niceness_of_this_thread(), at_first);
            assert_eq!(after(LONGEST), at_first);
            assert_eq!(after(0), at_first, "callers wait still");
            let [one, other] = callers;
            drop(one);
            assert_eq!(niceness_of_this_thread(), at_first);
            drop(other);
            assert_eq!(niceness_of_this_thread(), nicer);
            assert_eq!(after(LONGEST), at_first);
        });
        assert!(niceness.lock().all.is_empty());
        member(&|| {
            let can_be = !niceness.lock().all.is_empty();
            let expected = if can_be { at_first } else { at_first + FOR_GOOD };
            assert_eq!(niceness_of_this_thread(), expected, "they press already");
        });
        assert_eq!(niceness_of_this_thread(), at_first, "callers stay as they are");
    }
}
