//! Slots that are full go to their segments beside the writer, one after the other, and are free
//! then.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::copies::Copies;
use super::past_cache::PastCache;
use super::segment::Segment;
use super::staging::{CHUNK, Staging};
use crate::error::{Error, Result};
use crate::fs::BLOCK;
use crate::inner::{lock, try_lock};
use crate::schedule::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::schedule::{Condvar, Mutex, thread};
use crate::stint;
use crate::stream::{Places, Point, Stream};
use crate::throttle;

/// How long to wait for more, or before trying again what failed.
const PAUSE: Duration = Duration::from_millis(100);

/// The share of a new time in what is known of a write's.
const NEW: f64 = 0.25;

/// Slots that go past the page cache together: a device is fast with large writes.
const AT_ONCE: usize = 16;

/// A writer that writes a slot itself writes so many times what it brought, to the end of a page: the
/// page cache takes 4 us for a page where memory is at hand, and 14 to 230 us for a slot.
const PART: usize = 4;

/// Writes what is on its way.
pub(crate) struct Flusher {
    staging: Arc<Staging>,
    slots: Mutex<Slots>,
    pushed: Condvar,
    written: Condvar,
    /// Enough was pushed for a write, and the thread was not told.
    is_untold: AtomicBool,
    /// Held by the one who writes: slots of a stream arrive in their order.
    turn: Mutex<Turn>,
    /// The last one went past the page cache.
    goes_past: AtomicBool,
    /// How long a writer waits for each KiB, in nanoseconds.
    pace: AtomicU32,
    is_closing: AtomicBool,
}

/// What is known of each stream's segment that is being written.
#[derive(Default)]
struct Turn {
    main: Lane,
    hot: Lane,
}

#[derive(Default)]
struct Lane {
    past_cache: PastCache,
    copies: Copies,
}

impl Turn {
    fn lane(&mut self, full: &Full) -> &mut Lane {
        if full.segment.stream == Stream::Hot { &mut self.hot } else { &mut self.main }
    }
}

impl Lane {
    /// Writes parts that follow one another, from the begin of `oldest` on.
    fn write(&mut self, oldest: &Full, parts: &[&[u8]], goes_past: bool) -> io::Result<()> {
        let Lane { past_cache, copies } = self;
        let mut append = || past_cache.append(&oldest.segment, parts, oldest.offset, goes_past);
        if goes_past {
            return append();
        }
        copies.time(parts.iter().map(|part| part.len()).sum(), append)
    }
}

struct Slots {
    /// On their way, the oldest first.
    full: VecDeque<Full>,
    /// The one that was freed last is taken first: it is in the processor's cache.
    free: Vec<usize>,
    /// Nanoseconds that the writing of a byte takes, of late.
    time: f64,
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
    pub(crate) way: Way,
}

/// How a slot goes to its segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Through the page cache: it is likely to be read.
    Cached,
    /// Past it, where the file system can.
    Past,
    /// Through the page cache unless that is slow.
    Either,
}

impl Full {
    fn begin(&self) -> Point {
        Point { segment: self.segment.id, offset: self.offset }
    }

    /// Its first `most` bytes or some more, to the end of a page; all of it if it has no more.
    fn part(&self, most: usize) -> Full {
        let end = (self.offset as usize + most).next_multiple_of(BLOCK);
        let to = self.to.min(self.from + (end - self.offset as usize));
        Full { to, ..self.clone() }
    }

    /// Where it ends in the segment.
    fn end(&self) -> u32 {
        self.offset + (self.to - self.from) as u32
    }
}

impl Slots {
    /// Whether there is enough for a write, where the last one went past the page cache or not.
    fn is_due(&self, goes_past: bool) -> bool {
        let is_cached =
            |full: &Full| full.way == Way::Cached || full.way == Way::Either && !goes_past;
        self.full.len() >= AT_ONCE || self.full.back().is_some_and(is_cached)
    }

    /// How long a writer is to wait for each KiB, in nanoseconds: nothing while half of the slots are
    /// free, as long as the writing takes while a quarter is, and twice that at the end.
    fn pace(&self, slots: usize) -> u32 {
        let half = slots / 2;
        let behind = self.full.len().saturating_sub(half) as f64 / half as f64;
        (2.0 * behind * self.time * 1024.0) as u32
    }

    /// The oldest ones of the oldest one's segment, as far as they follow one another and go the same
    /// way: what goes past the page cache together.
    fn oldest(&self) -> Vec<Full> {
        let mut run: Vec<Full> = Vec::with_capacity(AT_ONCE);
        let id = self.full.front().map(|oldest| oldest.segment.id);
        for full in self.full.iter().filter(|full| Some(full.segment.id) == id).take(AT_ONCE) {
            let follows = |last: &Full| last.way == full.way && last.end() == full.offset;
            if !run.last().is_none_or(follows) {
                break;
            }
            run.push(full.clone());
        }
        run
    }

    /// They were written. One of which all was is in its segment, and if nothing more will come into
    /// its slot that is free.
    fn remove(&mut self, run: &[Full]) {
        for written in run {
            let is_same = |full: &Full| {
                full.segment.id == written.segment.id && full.offset == written.offset
            };
            let Some(place) = self.full.iter().position(is_same) else { continue };
            let full = &mut self.full[place];
            if written.to < full.to {
                (full.from, full.offset) = (written.to, written.end());
                continue;
            }
            // From now on it is found there.
            full.segment.set_written(written.end());
            // It may have become the last one of its slot meanwhile.
            match self.full.remove(place) {
                Some(full) if full.is_last => self.free.push(full.slot),
                _ => {}
            }
        }
    }
}

impl Flusher {
    /// The first slots are the streams' that begin with them.
    pub(crate) fn new(staging: Arc<Staging>) -> Flusher {
        let free = (Stream::WRITTEN.len()..staging.slots()).rev().collect();
        Flusher {
            staging,
            slots: Mutex::new(Slots { full: VecDeque::new(), free, time: 0.0 }),
            pushed: Condvar::new(),
            written: Condvar::new(),
            is_untold: AtomicBool::new(false),
            turn: Mutex::default(),
            goes_past: AtomicBool::new(false),
            pace: AtomicU32::new(0),
            is_closing: AtomicBool::new(false),
        }
    }

    /// One more; the thread that writes is told [`Flusher::after_write`], or sees it by itself after a
    /// while.
    pub(crate) fn push(&self, full: Full) {
        let mut slots = lock(&self.slots);
        slots.full.push_back(full);
        let is_due = slots.is_due(self.goes_past.load(Ordering::Relaxed));
        self.pace.store(slots.pace(self.staging.slots()), Ordering::Relaxed);
        if is_due {
            self.is_untold.store(true, Ordering::Relaxed);
        }
    }

    /// A slot that is free. If there is none the thread is late, and this one does its work, or
    /// waits for the next slot that whoever does it has written.
    pub(crate) fn free_slot(&self) -> Result<usize> {
        let mut slots = lock(&self.slots);
        loop {
            if let Some(slot) = slots.free.pop() {
                return Ok(slot);
            }
            slots = match try_lock(&self.turn) {
                Some(mut turn) => {
                    drop(slots);
                    self.write_oldest(&mut turn, CHUNK)?;
                    lock(&self.slots)
                }
                None => {
                    let waited = self.written.wait_timeout(slots, PAUSE);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// A writer wrote so many bytes, and holds no lock any more: to wake a thread takes 4 to 16 us.
    ///
    /// Slows it down where slots are written later than they fill: by what their writing takes, so that
    /// nobody has to wait for a whole one at last, or for all that go past the page cache together.
    /// Where processors are scarce the thread that writes through it has none, and the writer writes a
    /// part of a slot itself.
    #[inline]
    pub(crate) fn after_write(&self, bytes: usize) {
        if self.is_untold.load(Ordering::Relaxed) && self.is_untold.swap(false, Ordering::Relaxed) {
            self.pushed.notify_one();
        }
        let pace = self.pace.load(Ordering::Relaxed);
        if pace > 0 {
            self.slow_down(bytes, pace);
        }
    }

    #[cold]
    fn slow_down(&self, bytes: usize, pace: u32) {
        let wait = Duration::from_nanos(u64::from(pace) * bytes as u64 / 1024);
        if self.goes_past.load(Ordering::Relaxed) {
            // The device is waited for, which takes no processor.
            return throttle::owe(wait);
        }
        if !throttle::are_processors_scarce() {
            return throttle::pause(wait);
        }
        // What fails is told to the writer when it needs the slot.
        if let Some(mut turn) = try_lock(&self.turn) {
            let _ = self.write_oldest(&mut turn, PART * bytes);
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
        while self.write_oldest(&mut lock(&self.turn), CHUNK)? {
            stint::end_if_over();
        }
        Ok(())
    }

    /// Writes what was pushed and lies before a place of its stream.
    pub(crate) fn flush_to(&self, places: Places) -> Result<()> {
        let is_before = |full: &Full| full.begin() < places.of(full.segment.stream);
        while lock(&self.slots).full.iter().any(is_before) {
            self.write_oldest(&mut lock(&self.turn), CHUNK)?;
        }
        Ok(())
    }

    /// Writes as long as there is enough for a write.
    fn flush_due(&self) -> Result<()> {
        while lock(&self.slots).is_due(self.goes_past.load(Ordering::Relaxed)) {
            self.write_oldest(&mut lock(&self.turn), CHUNK)?;
            stint::end_if_over();
        }
        Ok(())
    }

    /// Writes the slots that wait longest: some that go past the page cache together, or of one that
    /// goes through it `most` bytes or some more. Answers whether there was something to write.
    fn write_oldest(&self, turn: &mut Turn, most: usize) -> Result<bool> {
        let done = self.write_run(turn, most);
        self.written.notify_one();
        done
    }

    fn write_run(&self, turn: &mut Turn, most: usize) -> Result<bool> {
        let Some(oldest) = lock(&self.slots).full.front().cloned() else { return Ok(false) };
        let goes_past = match oldest.way {
            Way::Cached => false,
            Way::Past => true,
            Way::Either => turn.lane(&oldest).copies.are_slow(oldest.segment.id),
        };
        self.goes_past.store(goes_past, Ordering::Relaxed);
        let run = if goes_past {
            lock(&self.slots).oldest()
        } else {
            // One by itself is free soon, while it is in the processor's cache.
            vec![oldest.part(most)]
        };
        let Some(end) = run.last().map(Full::end) else { return Ok(false) };
        let parts = run.iter().map(|full| self.staging.written(full.slot, full.from..full.to));
        let parts: Vec<&[u8]> = parts.collect();
        let begin = Instant::now();
        turn.lane(&oldest)
            .write(&oldest, &parts, goes_past)
            .map_err(|error| Error::io(oldest.segment.path(), error))?;
        let mut slots = lock(&self.slots);
        slots.remove(&run);
        // A short write that takes long says nothing of a byte.
        let bytes = f64::from(end - oldest.offset);
        let time = begin.elapsed().as_nanos() as f64 / bytes.max(CHUNK as f64);
        slots.time += NEW * (bytes / CHUNK as f64).min(1.0) * (time - slots.time);
        self.pace.store(slots.pace(self.staging.slots()), Ordering::Relaxed);
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
                    !slots.is_due(self.goes_past.load(Ordering::Relaxed))
                        && !self.is_closing.load(Ordering::Acquire)
                })
                .unwrap_or_else(PoisonError::into_inner);
            let (slots, waited) = waited;
            drop(slots);
            // What is too little for a large write has waited long enough then.
            let written = if waited.timed_out() { self.flush() } else { self.flush_due() };
            if written.is_err() {
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

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::folder::Folder;
    use crate::fs::{Fs, Os};
    use crate::log::segment::FILE_HEADER;
    use crate::log::staging::Filling;
    use crate::options::CachedWrites;

    #[test]
    fn a_slot_may_go_in_parts_and_counts_as_written_once_all_of_it_is() {
        let home = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Os::new());
        Staging::create(&fs, home.path()).unwrap();
        let (staging, _) = Staging::open(&fs, home.path(), 9).unwrap();
        let staging = Arc::new(staging);
        let segment =
            Segment::create(&Folder::new(&fs, home.path().to_owned(), 9), 1, Stream::Main, 1 << 20)
                .unwrap();
        let segment = Arc::new(segment);
        let bytes: Vec<u8> = (0..10 * BLOCK).map(|at| (at % 251) as u8).collect();
        let flusher = Flusher::new(Arc::clone(&staging));
        let free = || lock(&flusher.slots).free.len();
        let free_before = free();
        let begin = (segment.id, FILE_HEADER);
        let mut filling = Filling::new(staging, 0, begin, CHUNK, CachedWrites::Always);
        filling.room(bytes.len()).copy_from_slice(&bytes);
        filling.commit(bytes.len());
        flusher.push(filling.hand_over(&segment, true).unwrap());

        let mut offsets = Vec::new();
        while flusher.write_oldest(&mut lock(&flusher.turn), BLOCK + 1).unwrap() {
            if let Some(full) = lock(&flusher.slots).full.front() {
                offsets.push(full.offset as usize);
                assert_eq!(segment.written(), FILE_HEADER);
            }
        }
        assert_eq!(offsets, [2, 4, 6, 8, 10].map(|block| block * BLOCK));
        let end = FILE_HEADER as usize + bytes.len();
        assert_eq!((segment.written() as usize, free()), (end, free_before + 1));
        assert!(std::fs::read(segment.path()).unwrap()[FILE_HEADER as usize..end] == bytes);
    }
}
