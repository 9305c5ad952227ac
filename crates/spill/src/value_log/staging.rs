//! The staging file: records wait in its slots until there are enough for one large write. It is
//! small, mapped and reused. Its content survives the process, so a write can be acknowledged
//! before it is in its segment.

use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::segment::Segment;
use super::slot_write::{SlotWrite, WritePath};
use crate::backoff::Backoff;
use crate::error::{Error, Result};
use crate::fs::{
    Access, BLOCK_SIZE, File, Fs, Map, Mode, read_exact_at, retry_interrupted, write_all_at,
};
use crate::locks::lock;
use crate::options::CachedWrites;
use crate::record::{HEADER_LEN, Header};
use crate::schedule::Mutex;
use crate::schedule::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::stream::{LogPosition, Stream, StreamPositions};

/// Slots of a new file: how far the flushing thread may fall behind while it waits for a CPU, at a
/// few hundred MB/s.
const DEFAULT_SLOTS: usize = 64;
/// The most bytes in a slot.
pub(crate) const SLOT_LEN: usize = 64 << 10;
/// Slots written through the page cache after a read: 1 MiB.
const CACHED_AFTER_READ: usize = 16;
/// One header for each slot, behind the notes: where the slot begins.
const SLOT_HEADER_LEN: usize = 64;
/// Slots have the alignment that their data has in the segment, so that blocks can be written in
/// place.
const SLOT_STRIDE: usize = BLOCK_SIZE + SLOT_LEN;
/// One for each stream, and a free one.
const MIN_SLOTS: usize = Stream::WRITTEN.len() + 1;
/// Notes precede the slots: numbers with checksums, about what is durable.
const NOTES_LEN: usize = BLOCK_SIZE;
const NOTE_LEN: usize = 16;
/// Index of the note of a failed sync, behind those of the synced positions.
const FAILURE_NOTE: usize = Stream::WRITTEN.len();
/// Index of the note of the manifest state.
const STATE_NOTE: usize = FAILURE_NOTE + 1;
const FILE_LEN: usize = len_of(DEFAULT_SLOTS);
/// Marks an empty slot: segment numbers have only 28 bits.
const EMPTY_SLOT: u64 = u64::MAX;

/// Offset of the first slot.
const fn slots_at(slots: usize) -> usize {
    NOTES_LEN + (slots * SLOT_HEADER_LEN).next_multiple_of(BLOCK_SIZE)
}

const fn len_of(slots: usize) -> usize {
    slots_at(slots) + slots * SLOT_STRIDE
}

/// File offset of a slot's bytes, given where it begins in its segment.
const fn slot_offset(slots: usize, slot: usize, begin: u32) -> usize {
    slots_at(slots) + slot * SLOT_STRIDE + begin as usize % BLOCK_SIZE
}

/// Slots of records that are not, or until recently were not, in their segment.
pub(crate) struct Staging {
    path: PathBuf,
    file: Arc<dyn File>,
    /// Number of the store, part of all checksums.
    store: u64,
    map: Map,
    slots: Box<[Slot]>,
    note_lock: Mutex<()>,
    /// A record was read since a slot was last handed over.
    was_read: AtomicBool,
}

/// What an earlier process left.
pub(crate) struct StagingLeftovers {
    /// Records that may not be in their segments.
    pub(crate) slots: Vec<LeftoverSlot>,
    /// How far the writers' streams are known to be durable.
    pub(crate) synced: StreamPositions,
    /// A sync failed, so the page cache may show unwritten data as written.
    pub(crate) sync_failed: bool,
    /// Number of the last manifest state known to be durable.
    pub(crate) state: u64,
}

/// What readers see of a slot.
struct Slot {
    /// Segment (upper half) and offset (lower half) where it begins.
    begin: AtomicU64,
    used: AtomicU32,
    /// Number of readers copying from it.
    readers: AtomicU32,
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join("staging")
}

impl Staging {
    /// Creates the file durably, with all its space.
    pub(crate) fn create(fs: &Arc<dyn Fs>, dir: &Path) -> Result<()> {
        let path = path(dir);
        let failed = |error| Error::io(&path, error);
        let file = match fs.open(&path, Mode::New) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                fs.open(&path, Mode::Write)
            }
            other => other,
        }
        .map_err(failed)?;
        file.set_len(FILE_LEN as u64).map_err(failed)?;
        retry_interrupted(|| file.allocate(FILE_LEN as u64)).map_err(failed)?;
        // Writes it all, so that no store into the mapping can find the device full.
        write_all_at(&*file, &vec![0; FILE_LEN], 0).map_err(failed)?;
        file.sync().map_err(failed)
    }

    /// Whether the file is missing or was left by an attempt to create it.
    pub(crate) fn is_new(fs: &Arc<dyn Fs>, dir: &Path) -> Result<bool> {
        let path = path(dir);
        let failed = |error| Error::io(&path, error);
        let file = match fs.open(&path, Mode::Read) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
            other => other.map_err(failed)?,
        };
        let len = file.len().map_err(failed)?;
        if len > FILE_LEN as u64 {
            return Ok(false);
        }
        let mut bytes = vec![0; len as usize];
        read_exact_at(&*file, &mut bytes, 0).map_err(failed)?;
        Ok(bytes.iter().all(|&byte| byte == 0))
    }

    /// Opens the file and returns what an earlier process left in it.
    pub(crate) fn open(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        store: u64,
    ) -> Result<(Staging, StagingLeftovers)> {
        let path = path(dir);
        let failed = |error| Error::io(&path, error);
        let file =
            fs.open(&path, Mode::Write).map_err(|error| Error::missing_file(&path, error))?;
        let len = file.len().map_err(failed)?;
        let slots = usize::try_from(len).unwrap_or(0).saturating_sub(NOTES_LEN)
            / (SLOT_HEADER_LEN + SLOT_STRIDE);
        if slots < MIN_SLOTS || len != len_of(slots) as u64 {
            let why = format!("the length is not a whole number of slots, as {FILE_LEN} would be");
            return Err(Error::damaged(&path, len, why));
        }
        // A copied file may have holes; a store into one would raise a signal on a full device.
        retry_interrupted(|| file.allocate(len)).map_err(failed)?;
        let leftovers = read_leftovers(&*file, store, slots).map_err(failed)?;
        let map = file.map(len_of(slots), Access::ReadWrite).map_err(failed)?;
        let slots = (0..slots).map(|_| Slot {
            begin: AtomicU64::new(EMPTY_SLOT),
            used: AtomicU32::new(0),
            readers: AtomicU32::new(0),
        });
        let slots = slots.collect();
        let (note_lock, was_read) = (Mutex::default(), AtomicBool::new(false));
        Ok((Staging { path, file, store, map, slots, note_lock, was_read }, leftovers))
    }

    /// Durably clears the slots, whose records are in their segments by now. A slot may name a
    /// segment whose number is reused, since a power failure took all other traces of it; its
    /// records would look valid behind the new ones. After a failed sync everything is written,
    /// since zeros in the page cache may not be on the device.
    pub(crate) fn clear(&self, sync_failed: bool) -> Result<()> {
        let failed = |error| Error::io(&self.path, error);
        let mut piece = vec![0; SLOT_LEN];
        for at in (NOTES_LEN..self.map.len()).step_by(SLOT_LEN) {
            let len = SLOT_LEN.min(self.map.len() - at);
            let piece = &mut piece[..len];
            // What cannot be read is overwritten.
            let is_zero = !sync_failed
                && read_exact_at(&*self.file, piece, at as u64).is_ok()
                && piece.iter().all(|&byte| byte == 0);
            if !is_zero {
                piece.fill(0);
                write_all_at(&*self.file, piece, at as u64).map_err(failed)?;
            }
        }
        self.file.sync().map_err(failed)
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Address of a slot that begins at an offset of a segment.
    fn slot_start(&self, slot: usize, begin: u32) -> *mut u8 {
        debug_assert!(slot < self.slots.len());
        // SAFETY: the mapping has space for all slots.
        unsafe { self.map.start().as_ptr().add(slot_offset(self.slots.len(), slot, begin)) }
    }

    /// Notes, for a process after this one, that the writers' streams are durable up to these
    /// positions.
    pub(crate) fn note_synced(&self, positions: StreamPositions) {
        for (index, stream) in Stream::WRITTEN.into_iter().enumerate() {
            let position = positions.of(stream);
            let bits = u64::from(position.segment) << 32 | u64::from(position.offset);
            self.write_note(index, bits, b"sync");
        }
    }

    /// Notes that a sync failed; false: everything was written and synced since.
    pub(crate) fn note_failure(&self, failed: bool) {
        self.write_note(FAILURE_NOTE, u64::from(failed), b"fail");
    }

    /// Notes the last durable manifest state.
    pub(crate) fn note_state(&self, number: u64) {
        self.write_note(STATE_NOTE, number, b"mani");
    }

    fn write_note(&self, index: usize, bits: u64, what: &[u8; 4]) {
        let words = [bits.to_le_bytes(), note_checksum(what, bits, self.store).to_le_bytes()];
        let _one_at_a_time = lock(&self.note_lock);
        // SAFETY: the notes have their space, and only opening reads them.
        unsafe {
            let to = self.map.start().as_ptr().add(index * NOTE_LEN);
            ptr::copy_nonoverlapping(words.as_ptr().cast(), to, 16);
        }
    }

    /// Notes that a record was read: new records may be read as well.
    #[inline]
    pub(crate) fn note_read(&self) {
        // The cache line stays shared unless it changes.
        if !self.was_read.load(Ordering::Relaxed) {
            self.was_read.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a record was read since the last call.
    fn take_was_read(&self) -> bool {
        let was_read = self.was_read.load(Ordering::Relaxed);
        if was_read {
            self.was_read.store(false, Ordering::Relaxed);
        }
        was_read
    }

    /// Committed bytes of a slot, until the writer reuses it.
    pub(crate) fn written(&self, slot: usize, part: std::ops::Range<usize>) -> &[u8] {
        let Slot { begin, used, .. } = &self.slots[slot];
        debug_assert!(part.end <= used.load(Ordering::Acquire) as usize);
        let begin = begin.load(Ordering::Relaxed) as u32;
        // SAFETY: committed bytes do not change until the slot is reused, which happens only once
        // they are in their segment.
        unsafe {
            let start = self.slot_start(slot, begin).add(part.start).cast_const();
            std::slice::from_raw_parts(start, part.len())
        }
    }

    /// Copies the record at a location into `into`, if a slot holds it.
    pub(crate) fn copy(&self, segment: u32, offset: u32, into: &mut Vec<u8>) -> bool {
        let here = u64::from(segment) << 32 | u64::from(offset);
        for (number, slot) in self.slots.iter().enumerate() {
            // A slot reused meanwhile is in its segment, and a reader that sees the reuse also sees
            // `written`.
            let begin = slot.begin.load(Ordering::Acquire);
            if begin == EMPTY_SLOT || here < begin || here - begin >= SLOT_LEN as u64 {
                continue;
            }
            // Sequentially consistent with the writer: it sees this reader, or this sees the reuse.
            slot.readers.fetch_add(1, Ordering::SeqCst);
            let begin = slot.begin.load(Ordering::SeqCst);
            let used = slot.used.load(Ordering::Acquire);
            let found = begin != EMPTY_SLOT
                && begin >> 32 == u64::from(segment)
                && here >= begin
                && here < begin + u64::from(used);
            if found {
                let from = (here - begin) as usize;
                // SAFETY: `used` bytes of the slot are written and do not change while `readers` is
                // not zero.
                unsafe {
                    let start = self.slot_start(number, begin as u32).cast_const();
                    // Only the record: what follows it may be overwritten.
                    let remaining = used as usize - from;
                    let header =
                        std::slice::from_raw_parts(start.add(from), HEADER_LEN.min(remaining));
                    let len = Header::parse(header).map_or(0, |header| header.record_len());
                    let record = std::slice::from_raw_parts(start.add(from), len.min(remaining));
                    into.clear();
                    into.extend_from_slice(record);
                }
            }
            slot.readers.fetch_sub(1, Ordering::Release);
            if found {
                return true;
            }
        }
        false
    }
}

/// Content of a slot when the process ended.
pub(crate) struct LeftoverSlot {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) bytes: Vec<u8>,
}

fn read_leftovers(file: &dyn File, store: u64, count: usize) -> std::io::Result<StagingLeftovers> {
    let read_note = |bytes: &[u8], what| read_note(bytes, what, store);
    let mut head = [0; NOTES_LEN];
    read_exact_at(file, &mut head, 0)?;
    let mut synced = StreamPositions::default();
    for (index, stream) in Stream::WRITTEN.into_iter().enumerate() {
        let bits = read_note(&head[index * NOTE_LEN..], b"sync").unwrap_or(0);
        *synced.of_mut(stream) = LogPosition { segment: (bits >> 32) as u32, offset: bits as u32 };
    }
    let sync_failed = read_note(&head[FAILURE_NOTE * NOTE_LEN..], b"fail") == Some(1);
    let state = read_note(&head[STATE_NOTE * NOTE_LEN..], b"mani").unwrap_or(0);
    let mut slots = Vec::new();
    for slot in 0..count {
        let mut header = [0; SLOT_HEADER_LEN];
        read_exact_at(file, &mut header, (NOTES_LEN + slot * SLOT_HEADER_LEN) as u64)?;
        let Some(begin) = read_note(&header, b"slot") else { continue };
        let mut bytes = vec![0; SLOT_LEN];
        let (segment, offset) = ((begin >> 32) as u32, begin as u32);
        read_exact_at(file, &mut bytes, slot_offset(count, slot, offset) as u64)?;
        slots.push(LeftoverSlot { segment, offset, bytes });
    }
    Ok(StagingLeftovers { slots, synced, sync_failed, state })
}

fn note_checksum(what: &[u8; 4], bits: u64, store: u64) -> u64 {
    xxh3_64(&[&what[..], &bits.to_le_bytes()].concat()) ^ store
}

/// The number at the start of `bytes`, if its checksum follows.
fn read_note(bytes: &[u8], what: &[u8; 4], store: u64) -> Option<u64> {
    let bits = u64::from_le_bytes(*bytes.first_chunk()?);
    let check = u64::from_le_bytes(*bytes.get(8..)?.first_chunk()?);
    (check == note_checksum(what, bits, store)).then_some(bits)
}

/// The writer's side: the slot that is being filled.
pub(crate) struct SlotWriter {
    staging: Arc<Staging>,
    slot: usize,
    /// Where the slot begins in the segment.
    begin: u32,
    used: usize,
    /// Bytes already handed over for writing.
    handed_over: usize,
    /// The most bytes for this slot, at most [`SLOT_LEN`].
    limit: usize,
    caching: CachedWrites,
    /// Slots still to be written through the page cache after the last read.
    cached_slots_left: usize,
}

impl SlotWriter {
    /// Starts with `slot`, at `offset` of a segment.
    pub(crate) fn new(
        staging: Arc<Staging>,
        slot: usize,
        (segment, offset): (u32, u32),
        limit: usize,
        caching: CachedWrites,
    ) -> SlotWriter {
        debug_assert!(limit <= SLOT_LEN);
        let mut slot_writer = SlotWriter {
            staging,
            slot,
            begin: 0,
            used: 0,
            handed_over: 0,
            limit,
            caching,
            cached_slots_left: 0,
        };
        slot_writer.restart(slot, segment, offset);
        slot_writer
    }

    /// Whether a record of `len` bytes fits a slot at all.
    pub(crate) fn fits(&self, len: usize) -> bool {
        len <= self.limit
    }

    pub(crate) fn has_room(&self, len: usize) -> bool {
        self.used + len <= self.limit
    }

    /// Offset of the next record in the segment.
    pub(crate) fn offset(&self) -> u32 {
        self.begin + self.used as u32
    }

    /// The next `len` bytes, if [`SlotWriter::has_room`].
    pub(crate) fn free_space(&mut self, len: usize) -> &mut [u8] {
        debug_assert!(self.has_room(len));
        // SAFETY: nobody reads behind `used`, and the only writer holds this.
        unsafe {
            let start = self.staging.slot_start(self.slot, self.begin).add(self.used);
            std::slice::from_raw_parts_mut(start, len)
        }
    }

    /// Makes the next `len` bytes visible to readers.
    pub(crate) fn commit(&mut self, len: usize) {
        self.used += len;
        self.staging.slots[self.slot].used.store(self.used as u32, Ordering::Release);
    }

    /// The bytes that are not handed over yet, as a write to queue. With `is_last` the slot gets no
    /// more data.
    pub(crate) fn take_write(
        &mut self,
        segment: &Arc<Segment>,
        is_last: bool,
    ) -> Option<SlotWrite> {
        if self.handed_over == self.used {
            return None;
        }
        let write_path = self.choose_write_path();
        let full = SlotWrite {
            segment: Arc::clone(segment),
            slot: self.slot,
            from: self.handed_over,
            to: self.used,
            offset: self.begin + self.handed_over as u32,
            is_last,
            write_path,
        };
        self.handed_over = self.used;
        Some(full)
    }

    /// The path of the next write.
    fn choose_write_path(&mut self) -> WritePath {
        if self.staging.take_was_read() {
            self.cached_slots_left = CACHED_AFTER_READ;
        }
        let was_read = self.cached_slots_left > 0;
        self.cached_slots_left = self.cached_slots_left.saturating_sub(1);
        match self.caching {
            CachedWrites::Auto if was_read => WritePath::Cached,
            CachedWrites::Auto => WritePath::Adaptive,
            CachedWrites::Always => WritePath::Cached,
            CachedWrites::Never => WritePath::Direct,
        }
    }

    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// Continues in another slot, or again in this one, at `offset` of `segment`. All data of this
    /// slot was handed over, and all of the other one written.
    pub(crate) fn restart(&mut self, slot: usize, segment: u32, offset: u32) {
        debug_assert_eq!(self.handed_over, self.used);
        self.slot = slot;
        let slot = &self.staging.slots[self.slot];
        slot.begin.store(EMPTY_SLOT, Ordering::SeqCst);
        // Each reader copies one record, so they finish soon.
        let mut backoff = Backoff::default();
        while slot.readers.load(Ordering::SeqCst) != 0 {
            backoff.wait();
        }
        slot.used.store(0, Ordering::Relaxed);
        let begin = u64::from(segment) << 32 | u64::from(offset);
        // SAFETY: the slot has a header, and only opening reads it.
        unsafe {
            let header =
                self.staging.map.start().as_ptr().add(NOTES_LEN + self.slot * SLOT_HEADER_LEN);
            let words = [
                begin.to_le_bytes(),
                note_checksum(b"slot", begin, self.staging.store).to_le_bytes(),
            ];
            ptr::copy_nonoverlapping(words.as_ptr().cast(), header, 16);
        }
        slot.begin.store(begin, Ordering::SeqCst);
        (self.begin, self.used, self.handed_over) = (offset, 0, 0);
    }
}

const _: () = assert!(HEADER_LEN < SLOT_LEN && HEADER_LEN < BLOCK_SIZE);
