//! The one place where records are appended; whoever holds it is the writer.

use std::mem;
use std::sync::Arc;

use super::segment::{FILE_HEADER, Segment};
use super::staging::{Filling, Staging};
use crate::error::{Error, Result};
use crate::fs::write_whole;
use crate::position::Point;
use crate::record::{self, HEADER, Hashes, Header, Kind};

/// Makes the next segment of the main stream and lets readers know of it.
pub(crate) type MakeSegment<'a> = &'a mut dyn FnMut() -> Result<Arc<Segment>>;

const MARK_LEN: usize = HEADER + 8;

/// The end of the main stream.
pub(crate) struct Writer {
    segment: Arc<Segment>,
    filling: Filling,
    /// A record that goes to its segment directly, for it is too long for a slot.
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
    /// A segment that was made while its forerunner could not be sealed.
    spare: Option<Arc<Segment>>,
}

/// What went into the log since the last freeze.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SinceFreeze {
    pub(crate) bytes: u64,
    /// Bytes of records for a key that the L0 had already.
    pub(crate) replaced: u64,
}

/// Room for records at a place of the log.
pub(crate) struct Room<'a> {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) bytes: &'a mut [u8],
}

impl Writer {
    pub(crate) fn new(segment: Arc<Segment>, staging: Arc<Staging>, sequence: u64) -> Writer {
        let limit = segment.capacity() / 8;
        let filling = Filling::new(staging, segment.id, FILE_HEADER, limit);
        Writer {
            unsynced: vec![Arc::clone(&segment)],
            segment,
            filling,
            long: Vec::new(),
            sequence,
            copies_begin: Point::default(),
            memory: 0,
            since_freeze: SinceFreeze::default(),
            mark: None,
            spare: None,
        }
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

    /// Room for `len` bytes, at most [`Writer::longest`]; they count when they are committed.
    ///
    /// # Errors
    /// If a chunk or a new segment cannot be written; then nothing has changed, and it can be
    /// tried again.
    pub(crate) fn room(&mut self, len: usize, make: MakeSegment<'_>) -> Result<Room<'_>> {
        if let Some(point) = self.mark {
            self.reserve(MARK_LEN + len, make)?;
            self.append_mark(point)?;
            self.mark = None;
        }
        self.reserve(len, make)?;
        let (segment, offset) = (self.segment.id, self.filling.offset());
        if self.filling.takes(len) {
            return Ok(Room { segment, offset, bytes: self.filling.room(len) });
        }
        self.long.clear();
        self.long.resize(len, 0);
        Ok(Room { segment, offset, bytes: &mut self.long })
    }

    /// What was put into the room is part of the log now.
    ///
    /// # Errors
    /// If a long record cannot be written; then nothing has changed.
    pub(crate) fn commit(&mut self, len: usize) -> Result<()> {
        if self.filling.takes(len) {
            self.filling.commit(len);
            return Ok(());
        }
        let offset = self.filling.offset();
        write_whole(&*self.segment.file, &self.long, u64::from(offset))
            .map_err(|error| Error::io(self.segment.path(), error))?;
        self.segment.set_written(offset + len as u32);
        self.filling.restart(self.segment.id, offset + len as u32);
        if self.long.capacity() > 1 << 20 {
            self.long = Vec::new();
        }
        Ok(())
    }

    /// Makes sure that `len` bytes fit where the writer stands.
    fn reserve(&mut self, len: usize, make: MakeSegment<'_>) -> Result<()> {
        if self.filling.offset() as usize + len + HEADER > self.segment.capacity() {
            self.next_segment(make)?;
        }
        if !self.filling.takes(len) {
            // A long one goes directly; what is before it goes first.
            if self.filling.offset() != self.segment.written() {
                self.next_slot()?;
            }
        } else if !self.filling.has_room(len) {
            self.next_slot()?;
        }
        Ok(())
    }

    fn next_slot(&mut self) -> Result<()> {
        self.filling.flush(&self.segment)?;
        self.filling.restart(self.segment.id, self.filling.offset());
        Ok(())
    }

    /// Seals this segment and goes on in a new one.
    fn next_segment(&mut self, make: MakeSegment<'_>) -> Result<()> {
        let next = match self.spare.take() {
            Some(spare) => spare,
            None => make()?,
        };
        if let Err(error) = self.seal(next.id) {
            self.spare = Some(next);
            return Err(error);
        }
        self.segment.complete(self.filling.offset());
        self.unsynced.push(Arc::clone(&next));
        self.filling.restart(next.id, FILE_HEADER);
        self.segment = next;
        Ok(())
    }

    fn seal(&mut self, next: u32) -> Result<()> {
        if !self.filling.has_room(HEADER) {
            self.next_slot()?;
        }
        let header = Header {
            kind: Kind::Seal,
            in_batch: false,
            key_len: 0,
            value_len: 0,
            table: next,
            sequence: self.sequence,
        };
        let place = (self.segment.id, self.filling.offset());
        header.write(place, Hashes::of(b"", b""), b"", b"", self.filling.room(HEADER));
        // Not committed before it is written: if that fails the writer goes on before it.
        let bytes = self.filling.room(HEADER).to_vec();
        self.filling.flush(&self.segment)?;
        write_whole(&*self.segment.file, &bytes, u64::from(place.1))
            .map_err(|error| Error::io(self.segment.path(), error))?;
        self.filling.commit_written(HEADER, &self.segment);
        Ok(())
    }

    fn append_mark(&mut self, point: Point) -> Result<()> {
        if !self.filling.has_room(MARK_LEN) {
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
        let room = self.filling.room(MARK_LEN);
        header.write(place, Hashes::of(b"", &value), b"", &value, room);
        self.filling.commit(MARK_LEN);
        Ok(())
    }

    /// Completes the current segment; the begin of the next one.
    pub(crate) fn end_segment(&mut self, make: MakeSegment<'_>) -> Result<Point> {
        self.next_segment(make)?;
        Ok(self.point())
    }

    /// Everything up to here is in its segment, though not yet on the device.
    pub(crate) fn flush(&mut self) -> Result<Point> {
        self.filling.flush(&self.segment)?;
        Ok(self.point())
    }

    /// Flushes, and hands over the segments that have to be synced for that to be durable.
    /// If that fails nothing more may be written.
    pub(crate) fn hand_over_unsynced(&mut self) -> Result<(Point, Vec<Arc<Segment>>)> {
        let point = self.flush()?;
        // The current one will have more.
        let segments = mem::replace(&mut self.unsynced, vec![Arc::clone(&self.segment)]);
        Ok((point, segments))
    }

    pub(crate) fn synced(&mut self, point: Point) {
        self.mark = Some(point);
    }
}

fn mark_value(point: Point) -> [u8; 8] {
    (u64::from(point.segment) << 32 | u64::from(point.offset)).to_le_bytes()
}

/// What a mark says.
pub(crate) fn marked(record: &record::Record<'_>) -> Option<Point> {
    let bits = u64::from_le_bytes(*record.value.first_chunk()?);
    Some(Point { segment: (bits >> 32) as u32, offset: bits as u32 })
}
