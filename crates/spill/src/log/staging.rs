//! Where records wait until enough of them are there for one large write: a small file that is
//! mapped and used again and again. What is in it survives the process, so a write can be
//! acknowledged before it is in its segment.

use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use super::segment::Segment;
use crate::error::{Error, Result};
use crate::fs::{Access, File, Fs, Map, Mode, read_whole, write_whole};
use crate::record::{HEADER, Header};

const SLOTS: usize = 4;
/// The most that a slot takes.
pub(crate) const CHUNK: usize = 64 << 10;
const SLOT_HEADER: usize = 64;
const STRIDE: usize = SLOT_HEADER + CHUNK;
const LEN: usize = (SLOTS * STRIDE).next_multiple_of(4096);
/// No slot holds it: segments are numbered with 28 bits.
const NOTHING: u64 = u64::MAX;

/// Slots of records that are not in their segment yet, or were lately not.
pub(crate) struct Staging {
    map: Map,
    slots: [Slot; SLOTS],
}

/// What readers know of a slot.
struct Slot {
    /// The segment (upper half) and the offset in it (lower half) where it begins.
    begin: AtomicU64,
    used: AtomicU32,
    /// Who is copying out of it.
    readers: AtomicU32,
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join("staging")
}

impl Staging {
    /// Makes the file, with its place on the device, durable.
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
        file.set_len(LEN as u64).map_err(failed)?;
        file.allocate(LEN as u64).map_err(failed)?;
        // Really there, so that no store into the mapping finds the device full.
        write_whole(&*file, &vec![0; LEN], 0).map_err(failed)?;
        file.sync().map_err(failed)
    }

    /// Opens the file and answers what an earlier process left in its slots.
    pub(crate) fn open(fs: &Arc<dyn Fs>, dir: &Path) -> Result<(Staging, Vec<Left>)> {
        let path = path(dir);
        let failed = |error| Error::io(&path, error);
        let file = fs.open(&path, Mode::Write).map_err(|error| Error::missing(&path, error))?;
        let len = file.len().map_err(failed)?;
        if len != LEN as u64 {
            return Err(Error::damaged(&path, len, format!("it should have {LEN} bytes")));
        }
        let left = left_behind(&*file).map_err(failed)?;
        let map = file.map(LEN, Access::ReadWrite).map_err(failed)?;
        let slots = [(); SLOTS].map(|()| Slot {
            begin: AtomicU64::new(NOTHING),
            used: AtomicU32::new(0),
            readers: AtomicU32::new(0),
        });
        Ok((Staging { map, slots }, left))
    }

    fn slot_start(&self, slot: usize) -> *mut u8 {
        debug_assert!(slot < SLOTS);
        // SAFETY: the mapping has room for all slots.
        unsafe { self.map.start().as_ptr().add(slot * STRIDE) }
    }

    /// Copies the record at a place into `into`, if a slot has it.
    pub(crate) fn copy(&self, segment: u32, offset: u32, into: &mut Vec<u8>) -> bool {
        for (number, slot) in self.slots.iter().enumerate() {
            // In one order with the writer's: it sees this reader, or this sees that the slot
            // was given away.
            slot.readers.fetch_add(1, Ordering::SeqCst);
            let begin = slot.begin.load(Ordering::SeqCst);
            let used = slot.used.load(Ordering::Acquire);
            let here = u64::from(segment) << 32 | u64::from(offset);
            let found = begin != NOTHING
                && begin >> 32 == u64::from(segment)
                && here >= begin
                && here < begin + u64::from(used);
            if found {
                let from = (here - begin) as usize;
                // SAFETY: `used` bytes of the slot are written and stay as they are while
                // `readers` is not zero.
                unsafe {
                    let start = self.slot_start(number).add(SLOT_HEADER).cast_const();
                    let bytes = std::slice::from_raw_parts(start, used as usize);
                    let len = Header::read(&bytes[from..]).map_or(0, |header| header.record_len());
                    into.clear();
                    into.extend_from_slice(&bytes[from..(from + len).min(bytes.len())]);
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

/// What a slot held when the process ended: bytes from a place of a segment on.
pub(crate) struct Left {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) bytes: Vec<u8>,
}

fn left_behind(file: &dyn File) -> std::io::Result<Vec<Left>> {
    let mut all = Vec::new();
    for slot in 0..SLOTS {
        let mut header = [0; SLOT_HEADER];
        let start = (slot * STRIDE) as u64;
        read_whole(file, &mut header, start)?;
        let Some((begin, check)) = header.first_chunk().zip(header[8..].first_chunk()) else {
            unreachable!("a header has sixteen bytes")
        };
        let begin = u64::from_le_bytes(*begin);
        if u64::from_le_bytes(*check) != check_of(begin) {
            continue;
        }
        let mut bytes = vec![0; CHUNK];
        read_whole(file, &mut bytes, start + SLOT_HEADER as u64)?;
        all.push(Left { segment: (begin >> 32) as u32, offset: begin as u32, bytes });
    }
    Ok(all)
}

fn check_of(begin: u64) -> u64 {
    xxh3_64(&[&b"slot"[..], &begin.to_le_bytes()].concat())
}

/// The writer's side: the slot that is being filled.
pub(crate) struct Filling {
    staging: Arc<Staging>,
    slot: usize,
    /// Where the slot begins in the segment.
    begin: u32,
    used: usize,
    /// How much of it is in the segment.
    flushed: usize,
    /// The most that it takes: less than [`CHUNK`] for small segments.
    limit: usize,
}

impl Filling {
    /// Begins at `offset` of a segment.
    pub(crate) fn new(staging: Arc<Staging>, segment: u32, offset: u32, limit: usize) -> Filling {
        let limit = limit.min(CHUNK);
        let mut filling = Filling { staging, slot: 0, begin: 0, used: 0, flushed: 0, limit };
        filling.restart(segment, offset);
        filling
    }

    /// Whether a record of `len` bytes can go through a slot at all.
    pub(crate) fn takes(&self, len: usize) -> bool {
        len <= self.limit
    }

    pub(crate) fn has_room(&self, len: usize) -> bool {
        self.used + len <= self.limit
    }

    /// Where the next record goes in the segment.
    pub(crate) fn offset(&self) -> u32 {
        self.begin + self.used as u32
    }

    /// The next `len` bytes, which [`Filling::has_room`] for.
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        debug_assert!(self.has_room(len));
        // SAFETY: behind `used` nobody reads, and there is one writer, which holds this.
        unsafe {
            let start = self.staging.slot_start(self.slot).add(SLOT_HEADER + self.used);
            std::slice::from_raw_parts_mut(start, len)
        }
    }

    /// Counts `len` bytes, which were written into the room, as there.
    pub(crate) fn commit(&mut self, len: usize) {
        self.used += len;
        self.staging.slots[self.slot].used.store(self.used as u32, Ordering::Release);
    }

    /// Counts `len` bytes of the room as there and as written into the segment.
    pub(crate) fn commit_written(&mut self, len: usize, segment: &Segment) {
        debug_assert_eq!(self.flushed, self.used);
        self.commit(len);
        self.flushed = self.used;
        segment.set_written(self.offset());
    }

    /// Writes what is there into the segment. After an error it can be asked again.
    pub(crate) fn flush(&mut self, segment: &Segment) -> Result<()> {
        if self.flushed == self.used {
            return Ok(());
        }
        // SAFETY: bytes up to `used` are written, and only this may change them.
        let bytes = unsafe {
            let start = self.staging.slot_start(self.slot).add(SLOT_HEADER).cast_const();
            std::slice::from_raw_parts(start, self.used)
        };
        let at = u64::from(self.begin) + self.flushed as u64;
        write_whole(&*segment.file, &bytes[self.flushed..], at)
            .map_err(|error| Error::io(segment.path(), error))?;
        self.flushed = self.used;
        segment.set_written(self.offset());
        Ok(())
    }

    /// Goes on in another slot, at `offset` of `segment`; all of this one was flushed.
    pub(crate) fn restart(&mut self, segment: u32, offset: u32) {
        debug_assert_eq!(self.flushed, self.used);
        self.slot = (self.slot + 1) % SLOTS;
        let slot = &self.staging.slots[self.slot];
        slot.begin.store(NOTHING, Ordering::SeqCst);
        // Copies of one record each: they are over soon.
        while slot.readers.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
        }
        slot.used.store(0, Ordering::Relaxed);
        let begin = u64::from(segment) << 32 | u64::from(offset);
        // SAFETY: the slot has a header, and nobody reads it but at opening.
        unsafe {
            let header = self.staging.slot_start(self.slot);
            let words = [begin.to_le_bytes(), check_of(begin).to_le_bytes()];
            ptr::copy_nonoverlapping(words.as_ptr().cast(), header, 16);
        }
        slot.begin.store(begin, Ordering::SeqCst);
        (self.begin, self.used, self.flushed) = (offset, 0, 0);
    }
}

const _: () = assert!(HEADER < CHUNK && HEADER < 4096);
