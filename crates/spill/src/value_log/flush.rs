//! Slots that are full go to their segments beside the writer, one after the other, and are free
//! then.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::cache_timing::CacheWriteTimer;
use super::direct_io::DirectWriter;
use super::segment::Segment;
use super::staging::{SLOT_LEN, Staging};
use crate::engine::{lock, try_lock};
use crate::error::{Error, Result};
use crate::fs::BLOCK_SIZE;
use crate::schedule::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::schedule::{Condvar, Mutex, thread};
use crate::stream::{LogPosition, Stream, StreamPositions};
use crate::throttle;
use crate::time_slice;

/// How long to wait for more, or before trying again what failed.
const MAX_IDLE: Duration = Duration::from_millis(100);

/// The share of a new time in what is known of a write's.
const EWMA_WEIGHT: f64 = 0.25;

/// Slots that go past the page cache together: a device is fast with large writes.
const SLOTS_PER_DIRECT_WRITE: usize = 16;

/// A writer that writes a slot itself writes so many times what it brought, to the end of a page: the
/// page cache takes 4 us for a page where memory is at hand, and 14 to 230 us for a slot.
const PARTIAL_WRITE_FACTOR: usize = 4;

/// Writes what is on its way.
pub(crate) struct Flusher {
    staging: Arc<Staging>,
    queue: Mutex<SlotQueue>,
    has_work: Condvar,
    slot_freed: Condvar,
    /// Enough was pushed for a write, and the thread was not told.
    needs_wakeup: AtomicBool,
    /// Held by the one who writes: slots of a stream arrive in their order.
    lanes: Mutex<StreamLanes>,
    /// The last one went past the page cache.
    is_direct: AtomicBool,
    /// How long a writer waits for each KiB, in nanoseconds.
    ns_per_kib: AtomicU32,
    is_closing: AtomicBool,
}

/// What is known of each stream's segment that is being written.
#[derive(Default)]
struct StreamLanes {
    main: Lane,
    hot: Lane,
}

#[derive(Default)]
struct Lane {
    direct_writer: DirectWriter,
    cache_timer: CacheWriteTimer,
}

impl StreamLanes {
    fn lane(&mut self, write: &SlotWrite) -> &mut Lane {
        if write.segment.stream == Stream::Hot { &mut self.hot } else { &mut self.main }
    }
}

impl Lane {
    /// Writes parts that follow one another, from the begin of `oldest` on.
    fn write(&mut self, oldest: &SlotWrite, parts: &[&[u8]], is_direct: bool) -> io::Result<()> {
        let Lane { direct_writer, cache_timer } = self;
        let mut append = || direct_writer.append(&oldest.segment, parts, oldest.offset, is_direct);
        if is_direct {
            return append();
        }
        cache_timer.time(parts.iter().map(|part| part.len()).sum(), append)
    }
}

struct SlotQueue {
    /// On their way, the oldest first.
    write: VecDeque<SlotWrite>,
    /// The one that was freed last is taken first: it is in the processor's cache.
    free: Vec<usize>,
    /// Nanoseconds that the writing of a byte takes, of late.
    ns_per_byte: f64,
}

/// Bytes `from..to` of a slot that belong at `offset` of a segment.
#[derive(Clone)]
pub(crate) struct SlotWrite {
    pub(crate) segment: Arc<Segment>,
    pub(crate) slot: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) offset: u32,
    /// Nothing more will come into the slot.
    pub(crate) is_last: bool,
    pub(crate) write_path: WritePath,
}

/// How a slot goes to its segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WritePath {
    /// Through the page cache: it is likely to be read.
    Cached,
    /// Past it, where the file system can.
    Direct,
    /// Through the page cache unless that is slow.
    Adaptive,
}

impl SlotWrite {
    fn begin(&self) -> LogPosition {
        LogPosition { segment: self.segment.id, offset: self.offset }
    }

    /// Its first `max_bytes` bytes or some more, to the end of a page; all of it if it has no more.
    fn part(&self, max_bytes: usize) -> SlotWrite {
        let end = (self.offset as usize + max_bytes).next_multiple_of(BLOCK_SIZE);
        let to = self.to.min(self.from + (end - self.offset as usize));
        SlotWrite { to, ..self.clone() }
    }

    /// Where it ends in the segment.
    fn end(&self) -> u32 {
        self.offset + (self.to - self.from) as u32
    }
}

impl SlotQueue {
    /// Whether there is enough for a write, where the last one went past the page cache or not.
    fn is_due(&self, is_direct: bool) -> bool {
        let is_cached = |write: &SlotWrite| {
            write.write_path == WritePath::Cached
                || write.write_path == WritePath::Adaptive && !is_direct
        };
        self.write.len() >= SLOTS_PER_DIRECT_WRITE || self.write.back().is_some_and(is_cached)
    }

    /// How long a writer is to wait for each KiB, in nanoseconds: nothing while half of the slots are
    /// free, as long as the writing takes while a quarter is, and twice that at the end.
    fn ns_per_kib(&self, queue: usize) -> u32 {
        let half = queue / 2;
        let behind = self.write.len().saturating_sub(half) as f64 / half as f64;
        (2.0 * behind * self.ns_per_byte * 1024.0) as u32
    }

    /// The oldest ones of the oldest one's segment, as far as they follow one another and go the same
    /// way: what goes past the page cache together.
    fn oldest(&self) -> Vec<SlotWrite> {
        let mut run: Vec<SlotWrite> = Vec::with_capacity(SLOTS_PER_DIRECT_WRITE);
        let id = self.write.front().map(|oldest| oldest.segment.id);
        for write in self
            .write
            .iter()
            .filter(|write| Some(write.segment.id) == id)
            .take(SLOTS_PER_DIRECT_WRITE)
        {
            let follows = |last: &SlotWrite| {
                last.write_path == write.write_path && last.end() == write.offset
            };
            if !run.last().is_none_or(follows) {
                break;
            }
            run.push(write.clone());
        }
        run
    }

    /// They were written. One of which all was is in its segment, and if nothing more will come into
    /// its slot that is free.
    fn remove(&mut self, run: &[SlotWrite]) {
        for slot_freed in run {
            let is_same = |write: &SlotWrite| {
                write.segment.id == slot_freed.segment.id && write.offset == slot_freed.offset
            };
            let Some(index) = self.write.iter().position(is_same) else { continue };
            let write = &mut self.write[index];
            if slot_freed.to < write.to {
                (write.from, write.offset) = (slot_freed.to, slot_freed.end());
                continue;
            }
            // From now on it is found there.
            write.segment.set_written(slot_freed.end());
            // It may have become the last one of its slot meanwhile.
            match self.write.remove(index) {
                Some(write) if write.is_last => self.free.push(write.slot),
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
            queue: Mutex::new(SlotQueue { write: VecDeque::new(), free, ns_per_byte: 0.0 }),
            has_work: Condvar::new(),
            slot_freed: Condvar::new(),
            needs_wakeup: AtomicBool::new(false),
            lanes: Mutex::default(),
            is_direct: AtomicBool::new(false),
            ns_per_kib: AtomicU32::new(0),
            is_closing: AtomicBool::new(false),
        }
    }

    /// One more; the thread that writes is told [`Flusher::after_write`], or sees it by itself after a
    /// while.
    pub(crate) fn push(&self, write: SlotWrite) {
        let mut queue = lock(&self.queue);
        queue.write.push_back(write);
        let is_due = queue.is_due(self.is_direct.load(Ordering::Relaxed));
        self.ns_per_kib.store(queue.ns_per_kib(self.staging.slots()), Ordering::Relaxed);
        if is_due {
            self.needs_wakeup.store(true, Ordering::Relaxed);
        }
    }

    /// A slot that is free. If there is none the thread is late, and this one does its work, or
    /// waits for the next slot that whoever does it has written.
    pub(crate) fn free_slot(&self) -> Result<usize> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(slot) = queue.free.pop() {
                return Ok(slot);
            }
            queue = match try_lock(&self.lanes) {
                Some(mut lanes) => {
                    drop(queue);
                    self.write_oldest(&mut lanes, SLOT_LEN)?;
                    lock(&self.queue)
                }
                None => {
                    let waited = self.slot_freed.wait_timeout(queue, MAX_IDLE);
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
        if self.needs_wakeup.load(Ordering::Relaxed)
            && self.needs_wakeup.swap(false, Ordering::Relaxed)
        {
            self.has_work.notify_one();
        }
        let ns_per_kib = self.ns_per_kib.load(Ordering::Relaxed);
        if ns_per_kib > 0 {
            self.delay_write(bytes, ns_per_kib);
        }
    }

    #[cold]
    fn delay_write(&self, bytes: usize, ns_per_kib: u32) {
        let wait = Duration::from_nanos(u64::from(ns_per_kib) * bytes as u64 / 1024);
        if self.is_direct.load(Ordering::Relaxed) {
            // The device is waited for, which takes no processor.
            return throttle::delay_for_device(wait);
        }
        if !throttle::is_cpu_contended() {
            return throttle::delay(wait);
        }
        // What fails is told to the writer when it needs the slot.
        if let Some(mut lanes) = try_lock(&self.lanes) {
            let _ = self.write_oldest(&mut lanes, PARTIAL_WRITE_FACTOR * bytes);
        }
    }

    /// Nothing more will come into a slot, all of which was pushed.
    pub(crate) fn release_slot(&self, slot: usize) {
        let mut queue = lock(&self.queue);
        match queue.write.iter_mut().rfind(|write| write.slot == slot) {
            Some(last) => last.is_last = true,
            None => queue.free.push(slot),
        }
    }

    /// Writes all that was pushed. What fails stays, and can be asked for again.
    pub(crate) fn flush(&self) -> Result<()> {
        while self.write_oldest(&mut lock(&self.lanes), SLOT_LEN)? {
            time_slice::yield_if_expired();
        }
        Ok(())
    }

    /// Writes what was pushed and lies before a place of its stream.
    pub(crate) fn flush_to(&self, positions: StreamPositions) -> Result<()> {
        let is_before = |write: &SlotWrite| write.begin() < positions.of(write.segment.stream);
        while lock(&self.queue).write.iter().any(is_before) {
            self.write_oldest(&mut lock(&self.lanes), SLOT_LEN)?;
        }
        Ok(())
    }

    /// Writes as long as there is enough for a write.
    fn flush_due(&self) -> Result<()> {
        while lock(&self.queue).is_due(self.is_direct.load(Ordering::Relaxed)) {
            self.write_oldest(&mut lock(&self.lanes), SLOT_LEN)?;
            time_slice::yield_if_expired();
        }
        Ok(())
    }

    /// Writes the slots that wait longest: some that go past the page cache together, or of one that
    /// goes through it `max_bytes` bytes or some more. Answers whether there was something to write.
    fn write_oldest(&self, lanes: &mut StreamLanes, max_bytes: usize) -> Result<bool> {
        let done = self.write_run(lanes, max_bytes);
        self.slot_freed.notify_one();
        done
    }

    fn write_run(&self, lanes: &mut StreamLanes, max_bytes: usize) -> Result<bool> {
        let Some(oldest) = lock(&self.queue).write.front().cloned() else { return Ok(false) };
        let is_direct = match oldest.write_path {
            WritePath::Cached => false,
            WritePath::Direct => true,
            WritePath::Adaptive => lanes.lane(&oldest).cache_timer.is_cache_slow(oldest.segment.id),
        };
        self.is_direct.store(is_direct, Ordering::Relaxed);
        let run = if is_direct {
            lock(&self.queue).oldest()
        } else {
            // One by itself is free soon, while it is in the processor's cache.
            vec![oldest.part(max_bytes)]
        };
        let Some(end) = run.last().map(SlotWrite::end) else { return Ok(false) };
        let parts = run.iter().map(|write| self.staging.written(write.slot, write.from..write.to));
        let parts: Vec<&[u8]> = parts.collect();
        let begin = Instant::now();
        lanes
            .lane(&oldest)
            .write(&oldest, &parts, is_direct)
            .map_err(|error| Error::io(oldest.segment.path(), error))?;
        let mut queue = lock(&self.queue);
        queue.remove(&run);
        // A short write that takes long says nothing of a byte.
        let bytes = f64::from(end - oldest.offset);
        let ns_per_byte = begin.elapsed().as_nanos() as f64 / bytes.max(SLOT_LEN as f64);
        queue.ns_per_byte +=
            EWMA_WEIGHT * (bytes / SLOT_LEN as f64).min(1.0) * (ns_per_byte - queue.ns_per_byte);
        self.ns_per_kib.store(queue.ns_per_kib(self.staging.slots()), Ordering::Relaxed);
        Ok(true)
    }

    /// Writes what is pushed until [`Flusher::close`]. A failure is told to the writer when it
    /// needs the slot.
    pub(crate) fn run(&self) {
        while !self.is_closing.load(Ordering::Acquire) {
            let queue = lock(&self.queue);
            let waited = self
                .has_work
                .wait_timeout_while(queue, MAX_IDLE, |queue| {
                    !queue.is_due(self.is_direct.load(Ordering::Relaxed))
                        && !self.is_closing.load(Ordering::Acquire)
                })
                .unwrap_or_else(PoisonError::into_inner);
            let (queue, waited) = waited;
            drop(queue);
            // What is too little for a large write has waited long enough then.
            let slot_freed = if waited.timed_out() { self.flush() } else { self.flush_due() };
            if slot_freed.is_err() {
                thread::sleep(MAX_IDLE);
            }
        }
    }

    pub(crate) fn close(&self) {
        // Under the lock, so that one who is about to wait sees it or is woken.
        let _slots = lock(&self.queue);
        self.is_closing.store(true, Ordering::Release);
        self.has_work.notify_all();
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use crate::fs::{Fs, Os};
    use crate::options::CachedWrites;
    use crate::value_log::segment::FILE_HEADER_LEN;
    use crate::value_log::staging::SlotWriter;

    #[test]
    fn partially_written_slot_counts_once_complete() {
        let home = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Os::new());
        Staging::create(&fs, home.path()).unwrap();
        let (staging, _) = Staging::open(&fs, home.path(), 9).unwrap();
        let staging = Arc::new(staging);
        let segment = Segment::create(
            &Directory::new(&fs, home.path().to_owned(), 9),
            1,
            Stream::Main,
            1 << 20,
        )
        .unwrap();
        let segment = Arc::new(segment);
        let bytes: Vec<u8> = (0..10 * BLOCK_SIZE).map(|at| (at % 251) as u8).collect();
        let flusher = Flusher::new(Arc::clone(&staging));
        let free = || lock(&flusher.queue).free.len();
        let free_before = free();
        let begin = (segment.id, FILE_HEADER_LEN);
        let mut slot_writer = SlotWriter::new(staging, 0, begin, SLOT_LEN, CachedWrites::Always);
        slot_writer.free_space(bytes.len()).copy_from_slice(&bytes);
        slot_writer.commit(bytes.len());
        flusher.push(slot_writer.take_write(&segment, true).unwrap());

        let mut offsets = Vec::new();
        while flusher.write_oldest(&mut lock(&flusher.lanes), BLOCK_SIZE + 1).unwrap() {
            if let Some(write) = lock(&flusher.queue).write.front() {
                offsets.push(write.offset as usize);
                assert_eq!(segment.written(), FILE_HEADER_LEN);
            }
        }
        assert_eq!(offsets, [2, 4, 6, 8, 10].map(|block| block * BLOCK_SIZE));
        let end = FILE_HEADER_LEN as usize + bytes.len();
        assert_eq!((segment.written() as usize, free()), (end, free_before + 1));
        assert!(std::fs::read(segment.path()).unwrap()[FILE_HEADER_LEN as usize..end] == bytes);
    }
}
