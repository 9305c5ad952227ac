//! Writes staging slots to their segments beside the writer, in order, and frees them.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::cache_timing::CacheWriteTimer;
use super::direct_io::DirectWriter;
use super::slot_write::{SlotWrite, WritePath};
use super::staging::{SLOT_LEN, Staging};
use crate::error::{Error, Result};
use crate::locks::{lock, try_lock};
use crate::schedule::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::schedule::{Condvar, Mutex, thread};
use crate::stream::{Stream, StreamPositions};
use crate::throttle;
use crate::time_slice;

/// How long to wait for work, or after a failure.
const MAX_IDLE: Duration = Duration::from_millis(100);

/// Weight of a new sample in the moving average.
const EWMA_WEIGHT: f64 = 0.25;

/// Slots per direct write: devices are fast with large writes.
const SLOTS_PER_DIRECT_WRITE: usize = 16;

/// A writer that writes a slot itself writes this multiple of its own bytes, rounded up to a page,
/// since a whole slot would take it up to 230 us.
const PARTIAL_WRITE_FACTOR: usize = 4;

/// Writes staged slots.
pub(crate) struct Flusher {
    staging: Arc<Staging>,
    queue: Mutex<SlotQueue>,
    has_work: Condvar,
    slot_freed: Condvar,
    /// There is enough for a write, and the thread was not woken.
    needs_wakeup: AtomicBool,
    /// Held while writing, so that the slots of a stream arrive in order.
    lanes: Mutex<StreamLanes>,
    /// The last write was direct.
    is_direct: AtomicBool,
    /// Delay of a writer per KiB, in nanoseconds.
    ns_per_kib: AtomicU32,
    is_closing: AtomicBool,
}

/// Write state of each stream.
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
    /// Writes consecutive parts from the start of `oldest` on.
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
    /// Waiting writes, oldest first.
    pending: VecDeque<SlotWrite>,
    /// The slot freed last is reused first, since it is in the CPU cache.
    free: Vec<usize>,
    /// Moving average of the write time per byte, in nanoseconds.
    ns_per_byte: f64,
}

impl SlotQueue {
    /// Whether there is enough for a write, given whether the last one was direct.
    fn is_due(&self, is_direct: bool) -> bool {
        let is_cached = |write: &SlotWrite| {
            write.write_path == WritePath::Cached
                || write.write_path == WritePath::Adaptive && !is_direct
        };
        self.pending.len() >= SLOTS_PER_DIRECT_WRITE || self.pending.back().is_some_and(is_cached)
    }

    /// Delay of a writer per KiB, in nanoseconds: zero while half of the slots are free, the write
    /// time while a quarter is, and twice that when none is.
    fn ns_per_kib(&self, slots: usize) -> u32 {
        let half = slots / 2;
        let behind = self.pending.len().saturating_sub(half) as f64 / half as f64;
        (2.0 * behind * self.ns_per_byte * 1024.0) as u32
    }

    /// The oldest writes that are contiguous in one segment and take the same path; they go into
    /// one direct write.
    fn oldest(&self) -> Vec<SlotWrite> {
        let mut run: Vec<SlotWrite> = Vec::with_capacity(SLOTS_PER_DIRECT_WRITE);
        let id = self.pending.front().map(|oldest| oldest.segment.id);
        for write in self
            .pending
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

    /// Removes finished writes; a slot is freed after its last one.
    fn remove(&mut self, run: &[SlotWrite]) {
        for done in run {
            let is_same = |write: &SlotWrite| {
                write.segment.id == done.segment.id && write.offset == done.offset
            };
            let Some(index) = self.pending.iter().position(is_same) else { continue };
            let write = &mut self.pending[index];
            if done.to < write.to {
                (write.from, write.offset) = (done.to, done.end());
                continue;
            }
            // From now on readers find it in the segment.
            write.segment.set_written(done.end());
            // It may have become the slot's last write meanwhile.
            match self.pending.remove(index) {
                Some(write) if write.is_last => self.free.push(write.slot),
                _ => {}
            }
        }
    }
}

impl Flusher {
    /// The streams start with the first slots.
    pub(crate) fn new(staging: Arc<Staging>) -> Flusher {
        let free = (Stream::WRITTEN.len()..staging.slots()).rev().collect();
        Flusher {
            staging,
            queue: Mutex::new(SlotQueue { pending: VecDeque::new(), free, ns_per_byte: 0.0 }),
            has_work: Condvar::new(),
            slot_freed: Condvar::new(),
            needs_wakeup: AtomicBool::new(false),
            lanes: Mutex::default(),
            is_direct: AtomicBool::new(false),
            ns_per_kib: AtomicU32::new(0),
            is_closing: AtomicBool::new(false),
        }
    }

    /// Queues a write. The thread is woken by [`Flusher::after_write`], or notices by itself after
    /// a while.
    pub(crate) fn push(&self, write: SlotWrite) {
        let mut queue = lock(&self.queue);
        queue.pending.push_back(write);
        let is_due = queue.is_due(self.is_direct.load(Ordering::Relaxed));
        self.ns_per_kib.store(queue.ns_per_kib(self.staging.slots()), Ordering::Relaxed);
        if is_due {
            self.needs_wakeup.store(true, Ordering::Relaxed);
        }
    }

    /// Takes a free slot. If there is none, this thread writes one, or waits for whoever is
    /// writing.
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

    /// Called after each write, without locks held, since waking a thread takes microseconds.
    ///
    /// Delays the writer by the write time of its bytes when slots fill faster than they are
    /// written, so that nobody has to wait for a whole slot at once. On contended CPUs the flushing
    /// thread gets no CPU, so the writer writes a part of a slot itself.
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
            // Waiting for the device takes no CPU.
            return throttle::delay_for_device(wait);
        }
        if !throttle::is_cpu_contended() {
            return throttle::delay(wait);
        }
        // A failure is reported to the writer that needs the slot.
        if let Some(mut lanes) = try_lock(&self.lanes) {
            let _ = self.write_oldest(&mut lanes, PARTIAL_WRITE_FACTOR * bytes);
        }
    }

    /// Frees a slot without pending data, or after its last queued write.
    pub(crate) fn release_slot(&self, slot: usize) {
        let mut queue = lock(&self.queue);
        match queue.pending.iter_mut().rfind(|write| write.slot == slot) {
            Some(last) => last.is_last = true,
            None => queue.free.push(slot),
        }
    }

    /// Writes everything queued. What fails stays queued and can be retried.
    pub(crate) fn flush(&self) -> Result<()> {
        while self.write_oldest(&mut lock(&self.lanes), SLOT_LEN)? {
            time_slice::yield_if_expired();
        }
        Ok(())
    }

    /// Writes what is queued before these positions.
    pub(crate) fn flush_to(&self, positions: StreamPositions) -> Result<()> {
        let is_before = |write: &SlotWrite| write.begin() < positions.of(write.segment.stream);
        while lock(&self.queue).pending.iter().any(is_before) {
            self.write_oldest(&mut lock(&self.lanes), SLOT_LEN)?;
        }
        Ok(())
    }

    /// Writes while there is enough for a write.
    fn flush_due(&self) -> Result<()> {
        while lock(&self.queue).is_due(self.is_direct.load(Ordering::Relaxed)) {
            self.write_oldest(&mut lock(&self.lanes), SLOT_LEN)?;
            time_slice::yield_if_expired();
        }
        Ok(())
    }

    /// Writes the oldest slots: several by one direct write, or of a single slot about `max_bytes`
    /// bytes through the page cache. Returns whether there was something to write.
    fn write_oldest(&self, lanes: &mut StreamLanes, max_bytes: usize) -> Result<bool> {
        let result = self.write_run(lanes, max_bytes);
        self.slot_freed.notify_one();
        result
    }

    fn write_run(&self, lanes: &mut StreamLanes, max_bytes: usize) -> Result<bool> {
        let Some(oldest) = lock(&self.queue).pending.front().cloned() else { return Ok(false) };
        let is_direct = match oldest.write_path {
            WritePath::Cached => false,
            WritePath::Direct => true,
            WritePath::Adaptive => lanes.lane(&oldest).cache_timer.is_cache_slow(oldest.segment.id),
        };
        self.is_direct.store(is_direct, Ordering::Relaxed);
        let run = if is_direct {
            lock(&self.queue).oldest()
        } else {
            // A single slot is free soon, while it is in the CPU cache.
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
        // The duration of a short write says little about a byte.
        let bytes = f64::from(end - oldest.offset);
        let ns_per_byte = begin.elapsed().as_nanos() as f64 / bytes.max(SLOT_LEN as f64);
        queue.ns_per_byte +=
            EWMA_WEIGHT * (bytes / SLOT_LEN as f64).min(1.0) * (ns_per_byte - queue.ns_per_byte);
        self.ns_per_kib.store(queue.ns_per_kib(self.staging.slots()), Ordering::Relaxed);
        Ok(true)
    }

    /// Writes what is queued until [`Flusher::close`]. A failure is reported to the writer that
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
            // Data too small for a large write has waited long enough.
            let result = if waited.timed_out() { self.flush() } else { self.flush_due() };
            if result.is_err() {
                thread::sleep(MAX_IDLE);
            }
        }
    }

    pub(crate) fn close(&self) {
        // Under the lock, so that a thread about to wait sees it or is woken.
        let _queue = lock(&self.queue);
        self.is_closing.store(true, Ordering::Release);
        self.has_work.notify_all();
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use crate::fs::BLOCK_SIZE;
    use crate::fs::{Fs, Os};
    use crate::options::CachedWrites;
    use crate::value_log::Segment;
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
            if let Some(write) = lock(&flusher.queue).pending.front() {
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
