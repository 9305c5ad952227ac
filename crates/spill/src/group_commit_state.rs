//! How far the log is durable, and who syncs it.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::locks::lock;
use crate::schedule::atomic::{AtomicBool, Ordering};
use crate::schedule::{Condvar, Mutex};
use crate::stream::{LogPosition, StreamPositions};

/// How far the log is durable.
pub(crate) struct GroupCommit {
    pub(crate) state: Mutex<GroupCommitState>,
    pub(crate) changed: Condvar,
    /// The last sync failed.
    pub(crate) has_failed: AtomicBool,
}

pub(crate) struct GroupCommitState {
    pub(crate) positions: StreamPositions,
    /// A leader is syncing; others wait for it.
    pub(crate) has_leader: bool,
    /// The log directory was synced with all segments below this number.
    pub(crate) names_synced_below: u32,
    pub(crate) last: Instant,
    /// Why the last sync failed.
    pub(crate) failure: Option<Error>,
}

impl GroupCommit {
    pub(crate) fn new(positions: StreamPositions) -> GroupCommit {
        let last = Instant::now();
        let state = GroupCommitState {
            positions,
            has_leader: false,
            names_synced_below: 0,
            last,
            failure: None,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        GroupCommit { state, changed, has_failed: AtomicBool::new(false) }
    }

    /// How far each stream is durable.
    pub(crate) fn positions(&self) -> StreamPositions {
        lock(&self.state).positions
    }

    /// Whether the last sync failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Whether the last sync began longer ago than this.
    pub(crate) fn is_older_than(&self, interval: Duration) -> bool {
        lock(&self.state).last.elapsed() >= interval
    }

    pub(crate) fn note_copies_synced(&self, copies: LogPosition) {
        let mut state = lock(&self.state);
        state.positions.copies = state.positions.copies.max(copies);
    }
}
