//! Slots that are full go to their segments beside the writer, one after the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::segment::Segment;
use super::staging::Staging;
use crate::error::{Error, Result};
use crate::fs::write_whole;
use crate::inner::lock;

/// How long to wait for more, or before trying again what failed.
const PAUSE: Duration = Duration::from_millis(100);

/// Slots on their way, the oldest first.
pub(crate) struct Flusher {
    staging: Arc<Staging>,
    full: Mutex<VecDeque<Full>>,
    pushed: Condvar,
    /// Held by the one who writes: slots arrive in their order.
    turn: Mutex<()>,
    is_closing: AtomicBool,
}

/// Bytes `from..to` of a slot that belong at `offset` of a segment.
#[derive(Clone)]
pub(crate) struct Full {
    pub(crate) segment: Arc<Segment>,
    pub(crate) slot: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) offset: u32,
}

impl Flusher {
    pub(crate) fn new(staging: Arc<Staging>) -> Flusher {
        Flusher {
            staging,
            full: Mutex::default(),
            pushed: Condvar::new(),
            turn: Mutex::default(),
            is_closing: AtomicBool::new(false),
        }
    }

    pub(crate) fn push(&self, full: Full) {
        lock(&self.full).push_back(full);
        self.pushed.notify_one();
    }

    /// Whether a slot is on its way.
    pub(crate) fn has(&self, slot: usize) -> bool {
        lock(&self.full).iter().any(|full| full.slot == slot)
    }

    /// Writes all that was pushed. What fails stays, and can be asked for again.
    pub(crate) fn flush(&self) -> Result<()> {
        let _turn = lock(&self.turn);
        loop {
            let Some(full) = lock(&self.full).front().cloned() else { return Ok(()) };
            let bytes = self.staging.written(full.slot, full.from..full.to);
            write_whole(&*full.segment.file, bytes, u64::from(full.offset))
                .map_err(|error| Error::io(full.segment.path(), error))?;
            full.segment.set_written(full.offset + bytes.len() as u32);
            lock(&self.full).pop_front();
        }
    }

    /// Writes what is pushed until [`Flusher::close`]. A failure is told to the writer when it
    /// needs the slot.
    pub(crate) fn run(&self) {
        while !self.is_closing.load(Ordering::Acquire) {
            let full = lock(&self.full);
            let waited = self
                .pushed
                .wait_timeout_while(full, PAUSE, |full| {
                    full.is_empty() && !self.is_closing.load(Ordering::Acquire)
                })
                .unwrap_or_else(PoisonError::into_inner);
            drop(waited);
            if self.flush().is_err() {
                std::thread::sleep(PAUSE);
            }
        }
    }

    pub(crate) fn close(&self) {
        // Under the lock, so that one who is about to wait sees it or is woken.
        let _full = lock(&self.full);
        self.is_closing.store(true, Ordering::Release);
        self.pushed.notify_all();
    }
}
