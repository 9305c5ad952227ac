//! State shared by the threads: claimed blocks, acknowledged inserts and the stage of the phase.
//! No operation takes a lock.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// The stages of a phase, in their order. Threads read it before each operation, so it has cache
/// lines of its own to avoid false sharing.
#[repr(align(128))]
pub struct PhaseGate {
    stage: AtomicU8,
    /// Tick at which the window opened; written before the stage is.
    opened_at: AtomicU64,
    /// Tick at which the window closes; `u64::MAX` while that is not known.
    closes_at: AtomicU64,
    /// Number of threads that wait, before their first operation or between two blocks.
    waiting: Mutex<usize>,
    moved: Condvar,
}

const SET_UP: u8 = 0;
const WARM: u8 = 1;
const GATHER: u8 = 2;
const OPEN: u8 = 3;
const CLOSED: u8 = 4;
const STOPPED: u8 = 5;

impl PhaseGate {
    pub(crate) fn new() -> Self {
        PhaseGate {
            stage: AtomicU8::new(SET_UP),
            opened_at: AtomicU64::new(u64::MAX),
            closes_at: AtomicU64::new(u64::MAX),
            waiting: Mutex::new(0),
            moved: Condvar::new(),
        }
    }

    fn move_to(&self, stage: u8) {
        // Under the lock, so that a thread that is about to wait does not miss it.
        let _guard = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.stage.fetch_max(stage, Ordering::AcqRel);
        self.moved.notify_all();
    }

    /// Requests are sent but do not count.
    pub(crate) fn warm(&self) {
        self.move_to(WARM);
    }

    /// Threads finish their block and wait.
    pub(crate) fn gather(&self) {
        self.move_to(GATHER);
    }

    /// The window is open from this tick on.
    pub(crate) fn open(&self, at: u64, closes_at: u64) {
        // A thread that gave up before the window has closed it already.
        self.closes_at.fetch_min(closes_at, Ordering::AcqRel);
        self.opened_at.store(at, Ordering::Release);
        self.move_to(OPEN);
    }

    /// Requests that were due before this tick, or before an earlier end, may still be sent.
    pub(crate) fn close(&self, at: u64) {
        self.closes_at.fetch_min(at, Ordering::AcqRel);
        self.move_to(CLOSED);
    }

    /// No more requests are sent.
    pub(crate) fn stop(&self) {
        self.move_to(STOPPED);
    }

    /// Waits before the first operation until the phase begins.
    pub(crate) fn wait_for_start(&self) {
        self.wait_until(WARM, |stage| stage != SET_UP);
    }

    /// Whether threads gather between two blocks.
    #[inline]
    pub(crate) fn gathers(&self) -> bool {
        self.stage.load(Ordering::Acquire) == GATHER
    }

    /// Waits between two blocks while the threads gather.
    pub(crate) fn wait_if_gathering(&self) {
        if self.gathers() {
            self.wait_until(OPEN, |stage| stage != GATHER);
        }
    }

    fn wait_until(&self, least: u8, passes: impl Fn(u8) -> bool) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting += 1;
        loop {
            let stage = self.stage.load(Ordering::Acquire);
            if stage >= least || passes(stage) {
                break;
            }
            waiting = self.moved.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        *waiting -= 1;
    }

    /// Number of threads that wait now.
    pub(crate) fn waiting(&self) -> usize {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    pub(crate) fn opened(&self) -> bool {
        // A phase that ends before its window skips this stage.
        self.stage.load(Ordering::Acquire) >= OPEN && self.opened_at() != u64::MAX
    }

    #[inline(always)]
    pub(crate) fn closed(&self) -> bool {
        self.stage.load(Ordering::Acquire) >= CLOSED
    }

    #[inline(always)]
    pub(crate) fn stopped(&self) -> bool {
        self.stage.load(Ordering::Acquire) >= STOPPED
    }

    pub(crate) fn opened_at(&self) -> u64 {
        self.opened_at.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(crate) fn closes_at(&self) -> u64 {
        self.closes_at.load(Ordering::Acquire)
    }
}

/// A value on cache lines that only one thread writes.
#[derive(Default)]
#[repr(align(128))]
struct CachePadded(AtomicU64);

/// Progress that one thread publishes.
pub struct ThreadProgress {
    /// Completed operations; written after each, read for progress only.
    done: CachePadded,
    /// This thread has inserted all of its records below this number.
    floor: CachePadded,
    /// Tick until which this thread has no request due; only where a trace has pauses.
    waits_until: CachePadded,
}

impl ThreadProgress {
    /// The next request is due at that tick: until then idling is no stall.
    #[inline(always)]
    pub(crate) fn wait_until(&self, tick: u64) {
        self.waits_until.0.store(tick, Ordering::Relaxed);
    }

    pub(crate) fn advance(&self, floor: u64) {
        self.floor.0.store(floor, Ordering::Release);
    }

    /// This thread inserts no more.
    pub(crate) fn retire(&self) {
        self.floor.0.store(u64::MAX, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn count(&self, operations: u64) {
        self.done.0.store(operations, Ordering::Relaxed);
    }
}

/// Hands out blocks in ascending order and knows up to which record all inserts are acknowledged.
pub struct Frontier {
    /// The next turn. All threads write it, once a block.
    next: CachePadded,
    progress: Vec<ThreadProgress>,
    /// Every record below it was there before the phase began.
    first_insert: u64,
    /// Other clients insert too, and their progress is not known.
    shared: bool,
    /// An insert failed: a record below the floors may be missing.
    holes: AtomicBool,
}

impl Frontier {
    pub(crate) fn new(threads: usize, first_insert: u64, shared: bool) -> Self {
        let progress = || ThreadProgress {
            done: CachePadded::default(),
            floor: CachePadded(AtomicU64::new(first_insert)),
            waits_until: CachePadded::default(),
        };
        let progress = (0..threads).map(|_| progress()).collect();
        let holes = AtomicBool::new(false);
        Frontier { next: CachePadded::default(), progress, first_insert, shared, holes }
    }

    pub(crate) fn progress(&self, thread: usize) -> &ThreadProgress {
        &self.progress[thread]
    }

    pub(crate) fn claim(&self) -> u64 {
        self.next.0.fetch_add(1, Ordering::AcqRel)
    }

    /// The turn that will be claimed next.
    pub(crate) fn next_turn(&self) -> u64 {
        self.next.0.load(Ordering::Acquire)
    }

    /// All records below this number are in the store: the minimum floor of all threads. A thread
    /// between two blocks keeps its old floor, which is a safe lower bound.
    pub(crate) fn acknowledged(&self) -> u64 {
        if self.shared {
            return self.first_insert;
        }
        self.progress
            .iter()
            .map(|progress| progress.floor.0.load(Ordering::Acquire))
            .min()
            .unwrap_or(0)
    }

    /// Whether no thread has a request due at this tick.
    pub(crate) fn is_idle(&self, now: u64) -> bool {
        self.progress.iter().all(|progress| progress.waits_until.0.load(Ordering::Relaxed) > now)
    }

    /// Notes a failed insert, before the floor passes its record.
    pub(crate) fn leave_hole(&self) {
        self.holes.store(true, Ordering::Release);
    }

    /// Whether records that were to be inserted may be missing.
    pub(crate) fn has_holes(&self) -> bool {
        self.holes.load(Ordering::Acquire)
    }

    pub(crate) fn done(&self) -> u64 {
        self.progress.iter().map(|progress| progress.done.0.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledged_is_the_floor_of_the_slowest_thread() {
        let frontier = Frontier::new(2, 100, false);
        assert_eq!(frontier.acknowledged(), 100);
        frontier.progress(0).advance(164);
        assert_eq!(frontier.acknowledged(), 100);
        frontier.progress(1).advance(130);
        assert_eq!(frontier.acknowledged(), 130);
        frontier.progress(1).retire();
        assert_eq!(frontier.acknowledged(), 164);
    }

    #[test]
    fn own_inserts_are_not_acknowledged_when_other_clients_insert() {
        let frontier = Frontier::new(1, 100, true);
        frontier.progress(0).advance(164);
        assert_eq!(frontier.acknowledged(), 100);
    }

    #[test]
    fn stages_only_go_forward() {
        let gate = PhaseGate::new();
        gate.close(5);
        assert!(!gate.opened(), "there is no window yet");
        gate.open(1, 9);
        assert!(gate.closed() && gate.opened() && !gate.stopped());
        assert_eq!(gate.closes_at(), 5, "the earlier end holds");
    }

    #[test]
    fn threads_gather_between_blocks() {
        let gate = std::sync::Arc::new(PhaseGate::new());
        let thread = {
            let gate = std::sync::Arc::clone(&gate);
            std::thread::spawn(move || {
                gate.wait_for_start();
                while !gate.opened() {
                    gate.wait_if_gathering();
                }
            })
        };
        let until = |waiting| {
            while gate.waiting() != waiting {
                std::thread::yield_now();
            }
        };
        until(1);
        gate.warm();
        until(0);
        gate.gather();
        until(1);
        gate.open(0, u64::MAX);
        thread.join().unwrap();
    }
}
