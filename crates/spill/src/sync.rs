//! Making the log durable: one sync serves all who wait for it.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::inner::{Inner, lock};
use crate::log::Segment;
use crate::options::Durability;
use crate::schedule::atomic::{AtomicBool, Ordering};
use crate::schedule::{Condvar, Mutex};
use crate::stint;
use crate::stream::{Places, Point};

/// How far the log is on the device.
pub(crate) struct Synced {
    state: Mutex<State>,
    changed: Condvar,
    /// The last sync failed.
    is_late: AtomicBool,
}

struct State {
    places: Places,
    /// Someone is syncing; who comes meanwhile waits.
    is_busy: bool,
    /// The folder of the log was synced with segments below this number in it.
    named: u32,
    last: Instant,
    /// Why the last sync failed.
    failure: Option<Error>,
}

impl Synced {
    pub(crate) fn new(places: Places) -> Synced {
        let last = Instant::now();
        let state = State { places, is_busy: false, named: 0, last, failure: None };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Synced { state, changed, is_late: AtomicBool::new(false) }
    }

    /// How far each stream is on the device.
    pub(crate) fn places(&self) -> Places {
        lock(&self.state).places
    }

    /// Whether the last sync failed.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }

    /// Whether the last sync began longer ago than that.
    fn is_older_than(&self, interval: Duration) -> bool {
        lock(&self.state).last.elapsed() >= interval
    }

    pub(crate) fn copies_synced(&self, copies: Point) {
        let mut state = lock(&self.state);
        state.places.copies = state.places.copies.max(copies);
    }
}

/// The one who syncs; when it ends, however it does, the next may.
struct Busy<'a> {
    inner: &'a Inner,
    has_ended: bool,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            // What it was to sync nobody knows any more.
            self.inner.halt_unsynced(&Error::Halted { why: "a sync panicked".to_owned() });
        }
        lock(&self.inner.synced.state).is_busy = false;
        self.inner.synced.changed.notify_all();
    }
}

impl Inner {
    /// Before a write of a store that is synced at an interval: no more is written than may be lost.
    #[inline]
    pub(crate) fn check_interval(&self) -> Result<()> {
        match self.options.durability {
            Durability::None | Durability::Sync => Ok(()),
            Durability::Interval(interval) => self.check_last_sync(interval),
        }
    }

    fn check_last_sync(&self, interval: Duration) -> Result<()> {
        let is_late = self.synced.is_late();
        if !self.options.background {
            let is_due = is_late || self.synced.is_older_than(interval);
            return if is_due { self.sync_all() } else { Ok(()) };
        }
        if !is_late {
            return Ok(());
        }
        lock(&self.synced.state).failure.as_ref().map_or(Ok(()), |failure| Err(failure.again()))
    }

    /// Everything that was written is in its segment when this returns, though not on the device. Writers
    /// go on meanwhile.
    pub(crate) fn write_out(&self) -> Result<()> {
        let places = lock(&self.writer).push();
        self.flusher.flush_to(places)
    }

    /// A sync of all that was written.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let places = lock(&self.writer).places();
        self.sync_to(places)
    }

    /// Returns when everything that writers wrote before these places is on the device. With `Interval`
    /// writes are refused from a sync that fails to one that succeeds.
    pub(crate) fn sync_to(&self, places: Places) -> Result<()> {
        let mut state = lock(&self.synced.state);
        loop {
            if state.places.have_written(places) {
                return Ok(());
            }
            self.may_write()?;
            if !state.is_busy {
                break;
            }
            // A sync ends, or fails and halts; the limit is for a wake-up that gets lost.
            let waited = self.synced.changed.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_busy = true;
        state.last = Instant::now();
        let named = state.named;
        drop(state);
        let mut busy = Busy { inner: self, has_ended: false };
        let done = self.sync_now(named);
        busy.has_ended = true;
        let mut state = lock(&self.synced.state);
        state.failure = done.as_ref().err().map(Error::again);
        self.synced.is_late.store(done.is_err(), Ordering::Relaxed);
        if let Ok((places, named)) = &done {
            state.places = state.places.max(*places);
            state.named = *named;
        }
        drop((state, busy));
        done.map(|_| ())
    }

    fn sync_now(&self, named: u32) -> Result<(Places, u32)> {
        let (places, segments) = lock(&self.writer).hand_over_unsynced();
        // Writers go on meanwhile.
        if let Err(error) = self.flusher.flush_to(places) {
            lock(&self.writer).take_back_unsynced(segments);
            return Err(error);
        }
        let synced = (|| {
            for segment in segments.iter().flatten() {
                sync(segment)?;
            }
            self.sync_names(named)
        })();
        match synced {
            Ok(named) => {
                lock(&self.writer).synced(places);
                self.staging.note_synced(places);
                Ok((places, named))
            }
            Err(error) => {
                self.halt_unsynced(&error);
                Err(error)
            }
        }
    }

    /// Syncs the folder of the log if it has segments that it had not the last time.
    fn sync_names(&self, named: u32) -> Result<u32> {
        let next = *lock(&self.next_segment);
        if next > named {
            self.log.sync()?;
        }
        Ok(next)
    }
}

pub(crate) fn sync(segment: &Arc<Segment>) -> Result<()> {
    // Sending the pages on their way is most of the work.
    let written = segment.written() as usize;
    stint::ahead_in_pieces(0..written, stint::PIECE, |part| {
        segment.file.start_writeback(part.start as u64..part.end as u64);
    });
    segment.file.sync().map_err(|error| Error::io(segment.path(), error))
}
