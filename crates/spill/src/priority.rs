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

use crate::time_slice::TIME_SLICE;

/// How much nicer than callers' threads those are that can be late: nice(2).
pub(crate) const DEFERRABLE: i32 = 19;
/// The same of those that callers wait for once they are late.
pub(crate) const PROMPT: i32 = 10;
/// The most where it is for good, since only the privileged take it back (setpriority(2)): beside
/// others that take all processors they have to get something.
const MAX_PERMANENT: i32 = 10;
/// Writers press when each has to wait for more than this part of the longest wait, and until it is
/// less than the other.
const BOOST_DIVISOR: u32 = 2;
const UNBOOST_DIVISOR: u32 = 16;

/// The background threads of a store.
#[derive(Debug, Default)]
pub(crate) struct BackgroundPriority {
    threads: Mutex<AdjustableThreads>,
    writers_are_delayed: AtomicBool,
}

#[derive(Debug, Default)]
struct AdjustableThreads {
    all: Vec<AdjustableThread>,
    /// Callers that wait for them.
    boosts: usize,
}

/// One that can be made less nice.
#[derive(Debug)]
struct AdjustableThread {
    id: Pid,
    base_nice: i32,
    nice: i32,
}

/// A thread that is one of them until this goes.
#[derive(Debug)]
pub(crate) struct Registration<'a> {
    of: &'a BackgroundPriority,
    thread: Pid,
}

/// A caller that waits for them until this goes.
#[derive(Debug)]
pub(crate) struct Boost<'a>(&'a BackgroundPriority);

impl BackgroundPriority {
    /// Makes this thread one of them, and so much nicer. It takes no processor from a thread that
    /// runs when it is woken (`SCHED_BATCH`, sched(7)), and its turns are as short as its stints.
    /// These are only wishes.
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

    /// Each write has to wait so many nanoseconds now, of at most `max_delay`.
    pub(crate) fn set_write_delay(&self, nanoseconds: u32, max_delay: u32) {
        let were_delayed = self.writers_are_delayed.load(Ordering::Relaxed);
        let writers_are_delayed =
            nanoseconds > max_delay / if were_delayed { UNBOOST_DIVISOR } else { BOOST_DIVISOR };
        if writers_are_delayed == were_delayed {
            return;
        }
        let threads = self.lock();
        self.writers_are_delayed.store(writers_are_delayed, Ordering::Relaxed);
        self.apply(&threads);
    }

    /// A caller may have to wait for what one of them does: a merge, a lock.
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
        // Its number may be another thread's soon.
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
        // From Linux 6.12 on: how long it has a processor before another's turn.
        sched_runtime: TIME_SLICE.as_nanos() as u64,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the structure is read, and the thread is this one.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::engine::lock;
    use crate::{Options, Store};

    fn nice_of_this_thread() -> i32 {
        getpriority_process(None).unwrap_or(i32::MAX)
    }

    /// A merge of nice threads may take as long as others have the processors.
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
                // It waits for the merge of that alone.
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
                eprintln!("not privileged: they stay as nice as they are");
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
            assert_eq!(after(MAX_DELAY / UNBOOST_DIVISOR + 1), base, "still");
            assert_eq!(after(MAX_DELAY / UNBOOST_DIVISOR), nice_offset);
            let callers = [priority.boost(), priority.boost()];
            assert_eq!(nice_of_this_thread(), base);
            assert_eq!(after(MAX_DELAY), base);
            assert_eq!(after(0), base, "callers wait still");
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
            assert_eq!(nice_of_this_thread(), expected, "they press already");
        });
        assert_eq!(nice_of_this_thread(), base, "callers stay as they are");
    }
}
