//! What the threads of a phase share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use workload::Workload;
use workload::trace::TraceFeed;

use crate::clock::Ticks;
use crate::frontier::{Frontier, PhaseGate};
use crate::load_share::LoadShare;
use crate::outcome::DriveError;
use crate::target::Target;

/// State shared by the threads of a phase.
pub struct WorkerShared {
    pub(crate) target: Arc<dyn Target>,
    pub(crate) workload: Arc<Workload>,
    pub(crate) clock: Ticks,
    pub(crate) gate: PhaseGate,
    pub(crate) frontier: Frontier,
    /// The loop is open: latency counts from the due instant too.
    pub(crate) open: bool,
    /// It is a load phase.
    pub(crate) loads: bool,
    /// The window ends by a number of operations, not by the clock.
    pub(crate) counted: bool,
    /// This client's share, where several generate the load.
    pub(crate) share: Option<LoadShare>,
    /// The first of this client's operations after the window; set before the window opens.
    pub(crate) end_operation: AtomicU64,
    /// Each thread's part of the trace, until the thread takes it.
    pub(crate) feeds: Mutex<Vec<Option<TraceFeed>>>,
    /// Tick at which the phase began: zero of all arrivals.
    pub(crate) begun_at: AtomicU64,
}

impl WorkerShared {
    /// This thread's part of the trace.
    pub(crate) fn feed(&self, thread: usize) -> Result<TraceFeed, DriveError> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let feed = feeds.get_mut(thread).and_then(Option::take);
        feed.ok_or_else(|| DriveError::Internal(format!("thread {thread} has no trace")))
    }

    /// Tick at which the phase began.
    pub(crate) fn begun(&self) -> u64 {
        self.begun_at.load(Ordering::Acquire)
    }

    /// The block of the stream at this client's `turn`.
    pub(crate) fn block(&self, turn: u64) -> u64 {
        self.share.map_or(turn, |share| share.block(turn))
    }

    /// Number of operations to issue of a block: all of it, except for the last block of a counted
    /// window. Such a window opens only while all threads wait between two blocks, so its first
    /// block is whole and its end is known by then.
    pub(crate) fn length_of(&self, turn: u64) -> u64 {
        if self.gate.stopped() {
            return 0;
        }
        if !(self.counted && self.gate.opened()) {
            return workload::BLOCK;
        }
        let end = self.end_operation.load(Ordering::Acquire);
        end.saturating_sub(turn * workload::BLOCK).min(workload::BLOCK)
    }
}
