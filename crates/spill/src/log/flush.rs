//! Slots that are full go to their segments beside the writer, one after the other, and are free
//! then.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::segment::Segment;
use super::staging::Staging;
use crate::error::{Error, Result};
use crate::fs::write_whole;
use crate::inner::lock;
use crate::schedule::atomic::{AtomicBool, Ordering};
use crate::schedule::{Condvar, Mutex, thread};

/// How long to wait for more, or before trying again what failed.
const PAUSE: Duration = Duration::from_millis(100);

/// Writes what is on its way.
pub(crate) struct Flusher {
    staging: Arc<Staging>,
    slots: Mutex<Slots>,
    pushed: Condvar,
    /// Held by the one who writes: slots arrive in their order.
    turn: Mutex<()>,
    is_closing: AtomicBool,
}

/// The slot that the writer begins with.
pub(super) const FIRST_SLOT: usize = 0;

struct Slots {
    /// On their way, the oldest first.
    full: VecDeque<Full>,
    /// The one that was freed last is taken first: it is in the processor's cache.
    free: Vec<usize>,
}

/// Bytes `from..to` of a slot that belong at `offset` of a segment.
#[derive(Clone)]
pub(crate) struct Full {
    pub(crate) segment: Arc<Segment>,
    pub(crate) slot: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) offset: u32,
    /// Nothing more will come into the slot.
    pub(crate) is_last: bool,
}

impl Flusher {
    pub(crate) fn new(staging: Arc<Staging>) -> Flusher {
        let free = (FIRST_SLOT + 1..staging.slots()).rev().collect();
        Flusher {
            staging,
            slots: Mutex::new(Slots { full: VecDeque::new(), free }),
            pushed: Condvar::new(),
            turn: Mutex::default(),
            is_closing: AtomicBool::new(false),
        }
    }

    pub(crate) fn push(&self, full: Full) {
        lock(&self.slots).full.push_back(full);
        self.pushed.notify_one();
    }

    /// A slot that is free. If there is none the thread is late, and this one does its work.
    pub(crate) fn free_slot(&self) -> Result<usize> {
        loop {
            if let Some(slot) = lock(&self.slots).free.pop() {
                return Ok(slot);
            }
            self.write_oldest()?;
        }
    }

    /// Nothing more will come into a slot, all of which was pushed.
    pub(crate) fn give_back(&self, slot: usize) {
        let mut slots = lock(&self.slots);
        match slots.full.iter_mut().rfind(|full| full.slot == slot) {
            Some(last) => last.is_last = true,
            None => slots.free.push(slot),
        }
    }

    /// Writes all that was pushed. What fails stays, and can be asked for again.
    pub(crate) fn flush(&self) -> Result<()> {
        while self.write_oldest()? {}
        Ok(())
    }

    /// Answers whether there was something to write.
    fn write_oldest(&self) -> Result<bool> {
        let _turn = lock(&self.turn);
        let Some(full) = lock(&self.slots).full.front().cloned() else { return Ok(false) };
        let bytes = self.staging.written(full.slot, full.from..full.to);
        write_whole(&*full.segment.file, bytes, u64::from(full.offset))
            .map_err(|error| Error::io(full.segment.path(), error))?;
        full.segment.set_written(full.offset + bytes.len() as u32);
        let mut slots = lock(&self.slots);
        // It may have become the last one meanwhile.
        if slots.full.pop_front().is_some_and(|full| full.is_last) {
            slots.free.push(full.slot);
        }
        Ok(true)
    }

    /// Writes what is pushed until [`Flusher::close`]. A failure is told to the writer when it
    /// needs the slot.
    pub(crate) fn run(&self) {
        while !self.is_closing.load(Ordering::Acquire) {
            let slots = lock(&self.slots);
            let waited = self
                .pushed
                .wait_timeout_while(slots, PAUSE, |slots| {
                    slots.full.is_empty() && !self.is_closing.load(Ordering::Acquire)
                })
                .unwrap_or_else(PoisonError::into_inner);
            drop(waited);
            if self.flush().is_err() {
                thread::sleep(PAUSE);
            }
        }
    }

    pub(crate) fn close(&self) {
        // Under the lock, so that one who is about to wait sees it or is woken.
        let _slots = lock(&self.slots);
        self.is_closing.store(true, Ordering::Release);
        self.pushed.notify_all();
    }
}
