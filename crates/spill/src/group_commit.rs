//! Group commit: one sync makes the log durable for all who wait for it.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::locks::lock;
use crate::options::Durability;
use crate::schedule::atomic::Ordering;
use crate::stream::StreamPositions;
use crate::time_slice;
use crate::value_log::Segment;

/// The thread that syncs; its drop lets the next leader in.
struct SyncLeader<'a> {
    engine: &'a Engine,
    is_finished: bool,
}

impl Drop for SyncLeader<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            // It is unknown what the sync covered.
            self.engine
                .halt_after_failed_sync(&Error::Halted { why: "a sync panicked".to_owned() });
        }
        lock(&self.engine.group_commit.state).has_leader = false;
        self.engine.group_commit.changed.notify_all();
    }
}

impl Engine {
    /// Called before a write with interval syncs: no more is written than may be lost.
    #[inline]
    pub(crate) fn check_interval(&self) -> Result<()> {
        match self.options.durability {
            Durability::None | Durability::Sync => Ok(()),
            Durability::Interval(interval) => self.check_last_sync(interval),
        }
    }

    fn check_last_sync(&self, interval: Duration) -> Result<()> {
        let has_failed = self.group_commit.has_failed();
        if !self.options.background {
            let is_due = has_failed || self.group_commit.is_older_than(interval);
            return if is_due { self.sync_all() } else { Ok(()) };
        }
        if !has_failed {
            return Ok(());
        }
        lock(&self.group_commit.state)
            .failure
            .as_ref()
            .map_or(Ok(()), |failure| Err(failure.duplicate()))
    }

    /// Writes all staged records to their segments, without a sync. Writers continue meanwhile.
    pub(crate) fn flush_staging(&self) -> Result<()> {
        let positions = lock(&self.writer).push_staged();
        self.flusher.flush_to(positions)
    }

    /// Syncs all that was written.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let positions = lock(&self.writer).positions();
        self.sync_to(positions)
    }

    /// Returns when all writes before these positions are durable. With `Interval`, a failed sync
    /// refuses writes until one succeeds.
    pub(crate) fn sync_to(&self, positions: StreamPositions) -> Result<()> {
        let mut state = lock(&self.group_commit.state);
        loop {
            if state.positions.include_writes(positions) {
                return Ok(());
            }
            self.check_writable()?;
            if !state.has_leader {
                break;
            }
            // The leader finishes, or fails and halts; the timeout covers a lost wake-up.
            let waited = self.group_commit.changed.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.has_leader = true;
        state.last = Instant::now();
        let names_synced_below = state.names_synced_below;
        drop(state);
        let mut leader = SyncLeader { engine: self, is_finished: false };
        let result = self.sync_now(names_synced_below);
        leader.is_finished = true;
        let mut state = lock(&self.group_commit.state);
        state.failure = result.as_ref().err().map(Error::duplicate);
        self.group_commit.has_failed.store(result.is_err(), Ordering::Relaxed);
        if let Ok((positions, names_synced_below)) = &result {
            state.positions = state.positions.max(*positions);
            state.names_synced_below = *names_synced_below;
        }
        drop((state, leader));
        result.map(|_| ())
    }

    fn sync_now(&self, names_synced_below: u32) -> Result<(StreamPositions, u32)> {
        let (positions, segments) = lock(&self.writer).take_unsynced();
        // Writers continue meanwhile.
        if let Err(error) = self.flusher.flush_to(positions) {
            lock(&self.writer).restore_unsynced(segments);
            return Err(error);
        }
        let synced = (|| {
            for segment in segments.iter().flatten() {
                sync(segment)?;
            }
            self.sync_log_directory(names_synced_below)
        })();
        match synced {
            Ok(names_synced_below) => {
                lock(&self.writer).note_synced(positions);
                self.staging.note_synced(positions);
                Ok((positions, names_synced_below))
            }
            Err(error) => {
                self.halt_after_failed_sync(&error);
                Err(error)
            }
        }
    }

    /// Syncs the log directory if it has new segments since the last time.
    fn sync_log_directory(&self, names_synced_below: u32) -> Result<u32> {
        let next = *lock(&self.next_segment);
        if next > names_synced_below {
            self.log.sync()?;
        }
        Ok(next)
    }
}

pub(crate) fn sync(segment: &Arc<Segment>) -> Result<()> {
    // Starting writeback is most of the work.
    let written = segment.written() as usize;
    time_slice::for_each_chunk_ahead(0..written, time_slice::SYSCALL_CHUNK, |part| {
        segment.file.start_writeback(part.start as u64..part.end as u64);
    });
    segment.file.sync().map_err(|error| Error::io(segment.path(), error))
}
