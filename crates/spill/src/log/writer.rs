//! The one place where records are appended; whoever holds it is the writer.

use std::mem;
use std::sync::Arc;

use super::flush::{FIRST_SLOT, Flusher};
use super::segment::{FILE_HEADER, Segment};
use super::staging::{Filling, Staging};
use crate::error::{Error, Result};
use crate::fs::write_whole;
use crate::options::CachedWrites;
use crate::position::Point;
use crate::record::{self, HEADER, Hashes, Header, Kind};

/// Makes the next segment of the main stream and lets readers know of it.
pub(crate) type MakeSegment<'a> = &'a mut dyn FnMut() -> Result<Arc<Segment>>;

const MARK_LEN: usize = HEADER + 8;

/// The end of the main stream.
pub(crate) struct Writer {
    segment: Arc<Segment>,
    filling: Filling,
    /// Writes full slots; beside this one if it has a thread.
    flusher: Arc<Flusher>,
    has_thread: bool,
    /// A record that goes to its segment directly, for it is too long for a slot, or must be there at
    /// once.
    long: Vec<u8>,
    /// Segments with records that were not synced.
    unsynced: Vec<Arc<Segment>>,
    /// The last sequence that was given away.
    pub(crate) sequence: u64,
    /// Where the copies' stream began its last batch; those behind later sequences come later.
    pub(crate) copies_begin: Point,
    /// Bytes of the L0s that are being filled.
    pub(crate) memory: usize,
    /// Bytes written, and what of them replaced something, since the last freeze.
    pub(crate) since_freeze: SinceFreeze,
    /// What was synced and is not yet told in the log.
    mark: Option<Point>,
    /// A record that failed to be written may turn up at the next opening.
    pub(crate) is_torn: bool,
    /// A segment that was made while its forerunner could not be sealed.
    spare: Option<Arc<Segment>>,
}

/// What went into the log since the last freeze.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SinceFreeze {
    pub(crate) bytes: u64,
    /// Bytes of records for a key that the L0 had already.
    pub(crate) replaced: u64,
    /// After so many bytes the garbage among them was weighed.
    pub(crate) told: u64,
}

/// Room for records at a place of the log.
pub(crate) struct Room<'a> {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) bytes: &'a mut [u8],
}

impl Writer {
    /// Begins with an empty segment. With `at_once` every record goes to its segment directly;
    /// with `has_thread` someone calls [`Flusher::run`].
    pub(crate) fn new(
        segment: Arc<Segment>,
        staging: Arc<Staging>,
        sequence: u64,
        at_once: bool,
        has_thread: bool,
        caching: CachedWrites,
    ) -> Writer {
        let limit = if at_once { 0 } else { segment.capacity() / 8 };
        let flusher = Arc::new(Flusher::new(Arc::clone(&staging)));
        let filling = Filling::new(staging, FIRST_SLOT, (segment.id, FILE_HEADER), limit, caching);
        Writer {
            unsynced: vec![Arc::clone(&segment)],
            segment,
            filling,
            flusher,
            has_thread,
            long: Vec::new(),
            sequence,
            copies_begin: Point::default(),
            memory: 0,
            since_freeze: SinceFreeze::default(),
            mark: None,
            is_torn: false,
            spare: None,
        }
    }

    pub(crate) fn flusher(&self) -> &Arc<Flusher> {
        &self.flusher
    }

    /// What is written now goes to new L0s.
    pub(crate) fn rotated(&mut self) {
        self.memory = 0;
        self.since_freeze = SinceFreeze::default();
    }

    /// The most that records which belong together may take in a segment of so many bytes.
    pub(crate) fn longest(segment: usize) -> usize {
        segment - FILE_HEADER as usize - HEADER - MARK_LEN
    }

    /// Where the next record goes.
    pub(crate) fn point(&self) -> Point {
        Point { segment: self.segment.id, offset: self.filling.offset() }
    }

    /// Makes sure that there is [`Writer::room`] for `len` bytes, at most [`Writer::longest`]; they
    /// count when they are committed.
    ///
    /// # Errors
    /// If a chunk or a new segment cannot be written; then nothing has changed, and it can be
    /// tried again.
    pub(crate) fn reserve(&mut self, len: usize, make: MakeSegment<'_>) -> Result<()> {
        if let Some(point) = self.mark {
            self.make_room(MARK_LEN + len, make)?;
            self.append_mark(point)?;
            self.mark = None;
        }
        self.make_room(len, make)
    }

    /// The room that was reserved.
    pub(crate) fn room(&mut self, len: usize) -> Room<'_> {
        let (segment, offset) = (self.segment.id, self.filling.offset());
        Room { segment, offset, bytes: self.place(len) }
    }

    /// Where `len` bytes that were reserved are put together.
    fn place(&mut self, len: usize) -> &mut [u8] {
        if self.filling.takes(len) {
            return self.filling.room(len);
        }
        self.long.clear();
        self.long.resize(len, 0);
        &mut self.long
    }

    /// What was put into the room is part of the log now; `overhead` of its bytes nothing will
    /// ever refer to.
    ///
    /// # Errors
    /// If a record that goes to its segment directly cannot be written; then nothing has changed,
    /// unless it `is_torn`.
    pub(crate) fn commit(&mut self, len: usize, overhead: usize) -> Result<()> {
        self.segment.add_dead(overhead as u64);
        if self.filling.takes(len) {
            self.filling.commit(len);
            return Ok(());
        }
        let offset = self.filling.offset();
        write_or_wipe(&self.segment, &self.long, offset, &mut self.is_torn)?;
        self.segment.set_written(offset + len as u32);
        self.filling.restart(self.filling.slot(), self.segment.id, offset + len as u32);
        if self.long.capacity() > 1 << 20 {
            self.long = Vec::new();
        }
        Ok(())
    }

    /// Makes sure that `len` bytes fit where the writer stands.
    fn make_room(&mut self, len: usize, make: MakeSegment<'_>) -> Result<()> {
        if self.filling.offset() as usize + len + HEADER > self.segment.capacity() {
            self.next_segment(make)?;
        }
        if !self.filling.takes(len) {
            // It goes to the segment directly; what is before it goes first.
            self.flush()?;
        } else if !self.filling.has_room(len) {
            self.next_slot()?;
        }
        Ok(())
    }

    fn next_slot(&mut self) -> Result<()> {
        if !self.has_thread {
            self.flush()?;
        }
        let next = self.flusher.free_slot()?;
        match self.filling.hand_over(&self.segment, true) {
            Some(full) => self.flusher.push(full),
            None => self.flusher.give_back(self.filling.slot()),
        }
        self.filling.restart(next, self.segment.id, self.filling.offset());
        Ok(())
    }

    /// Seals this segment and goes on in a new one. If that fails the writer goes on in this one.
    fn next_segment(&mut self, make: MakeSegment<'_>) -> Result<()> {
        let next = match self.spare.take() {
            Some(spare) => spare,
            None => make()?,
        };
        if let Err(error) = self.seal(&next) {
            self.spare = Some(next);
            return Err(error);
        }
        self.unsynced.push(Arc::clone(&next));
        self.segment = next;
        Ok(())
    }

    /// Writes the end of this segment, for which there always is room, and begins with the next.
    fn seal(&mut self, next: &Segment) -> Result<()> {
        let is_staged = self.filling.takes(HEADER);
        if is_staged && !self.filling.has_room(HEADER) {
            self.next_slot()?;
        }
        // What comes now cannot fail where the seal is staged.
        let slot = if is_staged { self.flusher.free_slot()? } else { self.filling.slot() };
        let place = (self.segment.id, self.filling.offset());
        let header = Header {
            kind: Kind::Seal,
            in_batch: false,
            key_len: 0,
            value_len: 0,
            table: next.id,
            sequence: self.sequence,
        };
        header.write(place, Hashes::of(b"", b""), b"", b"", self.place(HEADER));
        self.commit(HEADER, HEADER)?;
        self.segment.complete(self.filling.offset());
        if let Some(full) = self.filling.hand_over(&self.segment, true) {
            self.flusher.push(full);
        }
        self.filling.restart(slot, next.id, FILE_HEADER);
        Ok(())
    }

    fn append_mark(&mut self, point: Point) -> Result<()> {
        if self.filling.takes(MARK_LEN) && !self.filling.has_room(MARK_LEN) {
            self.next_slot()?;
        }
        let place = (self.segment.id, self.filling.offset());
        let header = Header {
            kind: Kind::Mark,
            in_batch: false,
            key_len: 0,
            value_len: 8,
            table: 0,
            sequence: self.sequence,
        };
        let value = mark_value(point);
        header.write(place, Hashes::of(b"", &value), b"", &value, self.place(MARK_LEN));
        self.commit(MARK_LEN, MARK_LEN)
    }

    /// Completes the current segment; the begin of the next one.
    pub(crate) fn end_segment(&mut self, make: MakeSegment<'_>) -> Result<Point> {
        self.next_segment(make)?;
        Ok(self.point())
    }

    /// Everything up to here is in its segment, though not yet on the device.
    pub(crate) fn flush(&mut self) -> Result<Point> {
        self.push();
        self.flusher.flush()?;
        Ok(self.point())
    }

    fn push(&mut self) {
        if let Some(full) = self.filling.hand_over(&self.segment, false) {
            self.flusher.push(full);
        }
    }

    /// Hands over the segments that have to be synced for all up to here to be durable, once
    /// [`Flusher::flush_to`] has written it to them.
    pub(crate) fn hand_over_unsynced(&mut self) -> (Point, Vec<Arc<Segment>>) {
        self.push();
        // The current one will have more.
        let segments = mem::replace(&mut self.unsynced, vec![Arc::clone(&self.segment)]);
        (self.point(), segments)
    }

    /// They were not synced.
    pub(crate) fn take_back_unsynced(&mut self, segments: Vec<Arc<Segment>>) {
        self.unsynced.splice(..0, segments);
    }

    pub(crate) fn synced(&mut self, point: Point) {
        self.mark = Some(point);
    }
}

/// Writes a record to its segment. If that fails nothing of it is there, or `is_torn` is set.
fn write_or_wipe(segment: &Segment, record: &[u8], offset: u32, is_torn: &mut bool) -> Result<()> {
    let write = |bytes: &[u8]| {
        write_whole(&*segment.file, bytes, u64::from(offset))
            .map_err(|error| Error::io(segment.path(), error))
    };
    write(record).inspect_err(|_| {
        // What is missing may be nothing but zeros at its end. Where there is no space for these
        // zeros there is nothing to wipe out.
        let wiped = write(&[0; HEADER]);
        *is_torn |= matches!(wiped, Err(error) if !matches!(error, Error::Full { .. }));
    })
}

fn mark_value(point: Point) -> [u8; 8] {
    (u64::from(point.segment) << 32 | u64::from(point.offset)).to_le_bytes()
}

/// What a mark says.
pub(crate) fn marked(record: &record::Record<'_>) -> Option<Point> {
    let bits = u64::from_le_bytes(*record.value.first_chunk()?);
    Some(Point { segment: (bits >> 32) as u32, offset: bits as u32 })
}
