//! Scheduling priority of a store's background threads.
//!
//! While they keep up, nobody waits for them, and callers get the CPUs. They get the callers'
//! priority when writers are delayed a lot, since then others have the CPUs, and while a caller
//! waits for their work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{Pid, gettid};

use crate::time_slice::TIME_SLICE;

/// Nice offset (nice(2)) of threads whose work can be deferred.
pub(crate) const DEFERRABLE: i32 = 19;
/// Nice offset of threads that callers wait for once they lag.
pub(crate) const PROMPT: i32 = 10;
/// The largest offset where it cannot be reverted: lowering a nice value takes a privilege
/// (setpriority(2)). They must still progress on a fully loaded machine.
const MAX_PERMANENT: i32 = 10;
/// Threads are boosted while a write is delayed longer than the maximum divided by this.
const BOOST_DIVISOR: u32 = 2;

/// The background threads of a store.
#[derive(Debug, Default)]
pub(crate) struct BackgroundPriority {
    threads: Mutex<AdjustableThreads>,
    writers_are_delayed: AtomicBool,
}

#[derive(Debug, Default)]
struct AdjustableThreads {
    all: Vec<AdjustableThread>,
    /// Callers that wait for the threads.
    boosts: usize,
}

/// A thread whose nice value can be reverted.
#[derive(Debug)]
struct AdjustableThread {
    id: Pid,
    base_nice: i32,
    nice: i32,
}

/// Membership of a thread, until dropped.
#[derive(Debug)]
pub(crate) struct Registration<'a> {
    of: &'a BackgroundPriority,
    thread: Pid,
}

/// A caller that waits, until dropped.
#[derive(Debug)]
pub(crate) struct Boost<'a>(&'a BackgroundPriority);

impl BackgroundPriority {
    /// Registers this thread and lowers its priority. With `SCHED_BATCH` (sched(7)) it does not
    /// preempt running threads when it wakes, and its kernel slice is as short as its own. The
    /// kernel may refuse all of it.
    pub(crate) fn register(&self, nice_offset: i32) -> Registration<'_> {
        let id = gettid();
        let base_nice = getpriority_process(None).unwrap_or(0);
        let is_reversible = setpriority_process(None, base_nice - 1).is_ok();
        let nice_offset = if is_reversible { nice_offset } else { nice_offset.min(MAX_PERMANENT) };
        let nice = (base_nice + nice_offset).min(19);
        set_batch_policy(nice);
        if is_reversible {
            let thread = AdjustableThread { id, base_nice, nice };
            let mut threads = self.lock();
            thread.set_boosted(self.should_boost(&threads));
            threads.all.push(thread);
        }
        Registration { of: self, thread: id }
    }

    /// Sets the current delay of each write, out of `max_delay`, in nanoseconds.
    pub(crate) fn set_write_delay(&self, nanoseconds: u32, max_delay: u32) {
        let were_delayed = self.writers_are_delayed.load(Ordering::Relaxed);
        let writers_are_delayed = nanoseconds > max_delay / BOOST_DIVISOR;
        if writers_are_delayed == were_delayed {
            return;
        }
        let threads = self.lock();
        self.writers_are_delayed.store(writers_are_delayed, Ordering::Relaxed);
        self.apply(&threads);
    }

    /// Announces a caller that may wait for a background thread, for a compaction or a lock.
    pub(crate) fn boost(&self) -> Boost<'_> {
        self.change_boosts(|boosts| *boosts += 1);
        Boost(self)
    }

    fn change_boosts(&self, change: impl FnOnce(&mut usize)) {
        let mut threads = self.lock();
        let was_boosted = self.should_boost(&threads);
        change(&mut threads.boosts);
        if self.should_boost(&threads) != was_boosted {
            self.apply(&threads);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_boosted(&self) -> bool {
        self.should_boost(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, AdjustableThreads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn should_boost(&self, threads: &AdjustableThreads) -> bool {
        threads.boosts > 0 || self.writers_are_delayed.load(Ordering::Relaxed)
    }

    fn apply(&self, threads: &AdjustableThreads) {
        let is_boosted = self.should_boost(threads);
        threads.all.iter().for_each(|thread| thread.set_boosted(is_boosted));
    }
}

impl AdjustableThread {
    fn set_boosted(&self, is_boosted: bool) {
        let nice = if is_boosted { self.base_nice } else { self.nice };
        let _ = setpriority_process(Some(self.id), nice);
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        // The kernel may reuse the thread id.
        self.of.lock().all.retain(|thread| thread.id != self.thread);
    }
}

impl Drop for Boost<'_> {
    fn drop(&mut self) {
        self.0.change_boosts(|boosts| *boosts -= 1);
    }
}

fn set_batch_policy(nice: i32) {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_BATCH as u32,
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        // From Linux 6.12 on: the length of its scheduler slice.
        sched_runtime: TIME_SLICE.as_nanos() as u64,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the structure is only read, and the thread is this one.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::locks::lock;
    use crate::{Options, Store};

    fn nice_of_this_thread() -> i32 {
        getpriority_process(None).unwrap_or(i32::MAX)
    }

    /// On a busy machine a low-priority compaction could take forever.
    #[test]
    fn waiting_callers_boost_background_threads() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path().join("store"), Options::default()).unwrap();
        let (table, engine) = (store.table("t").unwrap(), store.engine());
        let calls: [&(dyn Fn() + Sync); 4] = [
            &|| store.flush().unwrap(),
            &|| assert!(store.settle(Duration::from_secs(60)).unwrap()),
            &|| store.checkpoint(home.path().join("copy")).unwrap(),
            &|| store.drop_table("t").unwrap(),
        ];
        for (number, call) in calls.into_iter().enumerate() {
            if number == 0 {
                // It only waits if there is something to compact.
                table.put(b"key", b"value").unwrap();
            }
            let held = (lock(&engine.collector), lock(&engine.compaction));
            assert!(!engine.priority.is_boosted(), "{number}");
            std::thread::scope(|scope| {
                scope.spawn(call);
                let limit = Instant::now() + Duration::from_secs(60);
                while !engine.priority.is_boosted() {
                    assert!(Instant::now() < limit, "{number}");
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_millis(20));
                assert!(engine.priority.is_boosted(), "{number}");
                drop(held);
            });
            assert!(!engine.priority.is_boosted(), "{number}");
        }
    }

    #[test]
    fn background_threads_are_nicer_unless_boosted() {
        const MAX_DELAY: u32 = 1 << 20;
        let priority = BackgroundPriority::default();
        let base = nice_of_this_thread();
        let nice_offset = (base + DEFERRABLE).min(19);
        let run_registered = |run: &(dyn Fn() + Sync)| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let _member = priority.register(DEFERRABLE);
                    run();
                });
            });
        };
        run_registered(&|| {
            if nice_of_this_thread() == base + MAX_PERMANENT {
                eprintln!("not privileged: nice values stay");
                priority.set_write_delay(MAX_DELAY, MAX_DELAY);
                assert_eq!(nice_of_this_thread(), base + MAX_PERMANENT);
                return;
            }
            let after = |boost| {
                priority.set_write_delay(boost, MAX_DELAY);
                nice_of_this_thread()
            };
            assert_eq!(nice_of_this_thread(), nice_offset);
            assert_eq!(after(MAX_DELAY / BOOST_DIVISOR), nice_offset);
            assert_eq!(after(MAX_DELAY / BOOST_DIVISOR + 1), base);
            assert_eq!(after(MAX_DELAY / BOOST_DIVISOR), nice_offset);
            let callers = [priority.boost(), priority.boost()];
            assert_eq!(nice_of_this_thread(), base);
            assert_eq!(after(MAX_DELAY), base);
            assert_eq!(after(0), base, "callers still wait");
            let [one, other] = callers;
            drop(one);
            assert_eq!(nice_of_this_thread(), base);
            drop(other);
            assert_eq!(nice_of_this_thread(), nice_offset);
            assert_eq!(after(MAX_DELAY), base);
        });
        assert!(priority.lock().all.is_empty());
        run_registered(&|| {
            let can_be = !priority.lock().all.is_empty();
            let expected = if can_be { base } else { base + MAX_PERMANENT };
            assert_eq!(nice_of_this_thread(), expected, "already boosted");
        });
        assert_eq!(nice_of_this_thread(), base, "callers are unaffected");
    }
}
