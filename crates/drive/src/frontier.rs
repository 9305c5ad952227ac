//! What the threads share: which operations are taken, up to where inserts are acknowledged,
//! and which stage the phase is in. Nothing here is a lock.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The stages of a phase, in their order. Threads look at it before each operation, so it has
/// cache lines of its own: what others write next to it would take it away from them.
#[repr(align(128))]
pub(crate) struct Gate(AtomicU8);

impl Gate {
    const HELD: u8 = 0;
    const WARM: u8 = 1;
    const OPEN: u8 = 2;
    const CLOSED: u8 = 3;
    const STOPPED: u8 = 4;

    pub(crate) fn new() -> Self {
        Gate(AtomicU8::new(Gate::HELD))
    }

    /// Threads that are set up wait here, so that all begin together.
    pub(crate) fn wait_for_the_start(&self) {
        while self.0.load(Ordering::Acquire) == Gate::HELD {
            std::thread::yield_now();
        }
    }

    /// Requests go out but do not count.
    pub(crate) fn warm(&self) {
        self.0.fetch_max(Gate::WARM, Ordering::AcqRel);
    }

    pub(crate) fn open(&self) {
        self.0.fetch_max(Gate::OPEN, Ordering::AcqRel);
    }

    /// Requests that were due before may still go out; no other.
    pub(crate) fn close(&self) {
        self.0.fetch_max(Gate::CLOSED, Ordering::AcqRel);
    }

    /// No request goes out any more.
    pub(crate) fn stop(&self) {
        self.0.fetch_max(Gate::STOPPED, Ordering::AcqRel);
    }

    #[inline(always)]
    pub(crate) fn opened(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Gate::OPEN
    }

    #[inline(always)]
    pub(crate) fn closed(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Gate::CLOSED
    }

    #[inline(always)]
    pub(crate) fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= Gate::STOPPED
    }
}

/// One cache line a thread, so that publishing costs nothing to the others.
#[repr(align(128))]
pub(crate) struct Lane {
    /// Operations that this thread has ended.
    done: AtomicU64,
    /// Every record below this number that was this thread's to insert is in the store.
    floor: AtomicU64,
}

impl Lane {
    pub(crate) fn advance(&self, floor: u64) {
        self.floor.store(floor, Ordering::Release);
    }

    /// This thread inserts no more.
    pub(crate) fn retire(&self) {
        self.floor.store(u64::MAX, Ordering::Release);
    }

    pub(crate) fn count(&self, operations: u64) {
        self.done.store(operations, Ordering::Relaxed);
    }
}

/// A block of operations that a thread took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) block: u64,
    /// Whether the block was taken after the count of measured operations had begun.
    pub(crate) counted: bool,
}

/// Hands out blocks in ascending order and knows the records that every thread may rely on.
#[repr(align(128))]
pub(crate) struct Frontier {
    /// The next block, and in the highest bit whether operations count: one word, so that the
    /// first counted block is exact. All threads write it, once a block.
    next: AtomicU64,
    lanes: Lanes,
}

/// Behind an alignment of its own, for every operation reads where the lanes are.
#[repr(align(128))]
struct Lanes(Vec<Lane>);

const COUNTED: u64 = 1 << 63;

impl Frontier {
    pub(crate) fn new(threads: usize, first_insert: u64) -> Self {
        let lane = || Lane { done: AtomicU64::new(0), floor: AtomicU64::new(first_insert) };
        Frontier { next: AtomicU64::new(0), lanes: Lanes((0..threads).map(|_| lane()).collect()) }
    }

    pub(crate) fn lane(&self, thread: usize) -> &Lane {
        &self.lanes.0[thread]
    }

    pub(crate) fn claim(&self) -> Claim {
        let next = self.next.fetch_add(1, Ordering::AcqRel);
        Claim { block: next & !COUNTED, counted: next & COUNTED != 0 }
    }

    /// From here on operations count; answers the first block that does.
    pub(crate) fn begin_count(&self) -> u64 {
        self.next.fetch_or(COUNTED, Ordering::AcqRel) & !COUNTED
    }

    /// Every record below the answer is in the store: the least floor of all threads. A thread
    /// between two blocks keeps its old floor, which is lower than the truth and so safe.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.lanes.0.iter().map(|lane| lane.floor.load(Ordering::Acquire)).min().unwrap_or(0)
    }

    pub(crate) fn done(&self) -> u64 {
        self.lanes.0.iter().map(|lane| lane.done.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_thread_holds_the_frontier() {
        let frontier = Frontier::new(2, 100);
        assert_eq!(frontier.acknowledged(), 100);
        frontier.lane(0).advance(164);
        assert_eq!(frontier.acknowledged(), 100);
        frontier.lane(1).advance(130);
        assert_eq!(frontier.acknowledged(), 130);
        frontier.lane(1).retire();
        assert_eq!(frontier.acknowledged(), 164);
    }

    #[test]
    fn the_first_counted_block_is_exact() {
        let frontier = Frontier::new(1, 0);
        assert_eq!(frontier.claim(), Claim { block: 0, counted: false });
        assert_eq!(frontier.begin_count(), 1);
        assert_eq!(frontier.claim(), Claim { block: 1, counted: true });
        assert_eq!(frontier.begin_count(), 2);
    }

    #[test]
    fn stages_only_go_forward() {
        let gate = Gate::new();
        gate.close();
        gate.open();
        assert!(gate.closed() && !gate.stopped());
    }
}
