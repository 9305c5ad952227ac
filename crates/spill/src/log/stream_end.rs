//! The end of a stream that writers write: the segment that is being filled, and the slot on its way
//! there.

use std::mem;
use std::sync::Arc;

use super::flush::Flusher;
use super::segment::{FILE_HEADER, Segment};
use super::staging::Filling;
use crate::error::{Error, Result};
use crate::fs::write_whole;
use crate::record::{self, BARE, HEADER, Hashes, Header, Kind, Record};
use crate::stream::{Places, Point, Stream};

/// Makes the next segment of a stream and lets readers know of it.
pub(crate) type MakeSegment<'a> = &'a mut dyn FnMut(Stream) -> Result<Arc<Segment>>;

pub(super) const MARK_LEN: usize = record::len(0, 8 * Stream::WRITTEN.len());
pub(super) const SKIP_LEN: usize = record::len(0, 8);

pub(super) struct StreamEnd {
    segment: Arc<Segment>,
    filling: Filling,
    /// Writes full slots; beside this one if it has a thread.
    flusher: Arc<Flusher>,
    has_thread: bool,
    /// A record that goes to its segment directly, for it is too long for a slot, or must be there at
    /// once.
    long: Vec<u8>,
    /// Segments with something that was not synced.
    unsynced: Vec<Arc<Segment>>,
    /// The one that is being filled is the last of them.
    is_unsynced: bool,
    /// What was synced and is not yet told here.
    mark: Option<Places>,
    /// A record that failed to be written may turn up at the next opening.
    pub(super) is_torn: bool,
    /// A segment that was made while its forerunner could not be sealed.
    spare: Option<Arc<Segment>>,
}

impl StreamEnd {
    /// Begins with an empty segment that is on the device, and a slot for it.
    pub(super) fn new(
        segment: Arc<Segment>,
        filling: Filling,
        flusher: Arc<Flusher>,
        has_thread: bool,
    ) -> StreamEnd {
        StreamEnd {
            segment,
            filling,
            flusher,
            has_thread,
            long: Vec::new(),
            unsynced: Vec::new(),
            is_unsynced: false,
            mark: None,
            is_torn: false,
            spare: None,
        }
    }

    /// Where the next record goes.
    pub(super) fn point(&self) -> Point {
        Point { segment: self.segment.id, offset: self.filling.offset() }
    }

    /// See [`Writer::reserve`](super::Writer::reserve).
    pub(super) fn reserve(&mut self, len: usize, make: MakeSegment<'_>) -> Result<()> {
        if let Some(places) = self.mark {
            self.make_room(MARK_LEN + len, make)?;
            self.append_mark(places)?;
            self.mark = None;
        }
        self.make_room(len, make)
    }

    /// Where `len` bytes that were reserved are put together.
    pub(super) fn room(&mut self, len: usize) -> &mut [u8] {
        if self.filling.takes(len) {
            return self.filling.room(len);
        }
        self.long.clear();
        self.long.resize(len, 0);
        &mut self.long
    }

    /// See [`Writer::commit`](super::Writer::commit).
    pub(super) fn commit(&mut self, len: usize, overhead: usize) -> Result<()> {
        if !self.is_unsynced {
            self.will_be_unsynced();
        }
        if overhead > 0 {
            self.segment.add_dead(overhead as u64);
        }
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

    fn will_be_unsynced(&mut self) {
        self.unsynced.push(Arc::clone(&self.segment));
        self.is_unsynced = true;
    }

    /// Makes sure that `len` bytes fit where this stands.
    fn make_room(&mut self, len: usize, make: MakeSegment<'_>) -> Result<()> {
        if self.filling.offset() as usize + len + BARE > self.segment.capacity() {
            self.next_segment(make)?;
        }
        if !self.filling.takes(len) {
            // It goes to the segment directly; what is before it goes first.
            self.push();
            self.flusher.flush()?;
        } else if !self.filling.has_room(len) {
            self.next_slot()?;
        }
        Ok(())
    }

    fn next_slot(&mut self) -> Result<()> {
        if !self.has_thread {
            self.push();
            self.flusher.flush()?;
        }
        let next = self.flusher.free_slot()?;
        match self.filling.hand_over(&self.segment, true) {
            Some(full) => self.flusher.push(full),
            None => self.flusher.give_back(self.filling.slot()),
        }
        self.filling.restart(next, self.segment.id, self.filling.offset());
        Ok(())
    }

    /// Seals this segment and goes on in a new one. If that fails it goes on in this one.
    pub(super) fn next_segment(&mut self, make: MakeSegment<'_>) -> Result<()> {
        let next = match self.spare.take() {
            Some(spare) => spare,
            None => make(self.segment.stream)?,
        };
        if let Err(error) = self.seal(&next) {
            self.spare = Some(next);
            return Err(error);
        }
        self.segment = next;
        // Its name and its begin are.
        self.will_be_unsynced();
        Ok(())
    }

    /// Writes the end of this segment, for which there always is room, and begins with the next.
    fn seal(&mut self, next: &Segment) -> Result<()> {
        let is_staged = self.filling.takes(BARE);
        if is_staged && !self.filling.has_room(BARE) {
            self.next_slot()?;
        }
        // What comes now cannot fail where the seal is staged.
        let slot = if is_staged { self.flusher.free_slot()? } else { self.filling.slot() };
        self.append(Header { value_len: next.id, ..bare(Kind::Seal, &[]) }, &[])?;
        self.segment.complete(self.filling.offset());
        if let Some(full) = self.filling.hand_over(&self.segment, true) {
            self.flusher.push(full);
        }
        self.filling.restart(slot, next.id, FILE_HEADER);
        Ok(())
    }

    fn append_mark(&mut self, places: Places) -> Result<()> {
        if self.filling.takes(MARK_LEN) && !self.filling.has_room(MARK_LEN) {
            self.next_slot()?;
        }
        let value = mark_value(places);
        self.append(bare(Kind::Mark, &value), &value)
    }

    /// Appends the record of a number of sequences that are no write's, for which there is room.
    pub(super) fn append_skip(&mut self, sequence: u64, count: u64) -> Result<()> {
        let count = count.to_le_bytes();
        self.append(Header { sequence, ..bare(Kind::Skip, &count) }, &count)
    }

    /// Appends a record without a key, for which there is room.
    fn append(&mut self, header: Header, value: &[u8]) -> Result<()> {
        let place = (self.segment.id, self.filling.offset());
        let len = header.record_len();
        header.write(place, Hashes::of(b"", value), b"", value, self.room(len));
        self.commit(len, len)
    }

    /// What is in the slot goes on its way.
    pub(super) fn push(&mut self) {
        if let Some(full) = self.filling.hand_over(&self.segment, false) {
            self.flusher.push(full);
        }
    }

    /// Segments that have to be synced for all up to here to be durable.
    pub(super) fn hand_over_unsynced(&mut self) -> Vec<Arc<Segment>> {
        self.push();
        self.is_unsynced = false;
        mem::take(&mut self.unsynced)
    }

    /// They were not synced.
    pub(super) fn take_back_unsynced(&mut self, segments: Vec<Arc<Segment>>) {
        // The one that is being filled may have been added again since.
        self.unsynced.retain(|again| !segments.iter().any(|one| one.id == again.id));
        self.unsynced.splice(..0, segments);
        self.is_unsynced = self.unsynced.last().is_some_and(|last| last.id == self.segment.id);
    }

    pub(super) fn synced(&mut self, places: Places) {
        self.mark = Some(places);
    }
}

/// The header of a record that is no write's.
fn bare(kind: Kind, value: &[u8]) -> Header {
    let value_len = value.len() as u32;
    Header { kind, in_batch: false, key_len: 0, value_len, table: 0, sequence: 0 }
}

/// Writes a record to its segment. If that fails nothing of it is there, or `is_torn` is set.
fn write_or_wipe(segment: &Segment, record: &[u8], offset: u32, is_torn: &mut bool) -> Result<()> {
    let write = |bytes: &[u8]| {
        write_whole(&*segment.file, bytes, u64::from(offset))
            .map_err(|error| Error::io(segment.path(), error))
    };
    write(record).inspect_err(|_| {
        // What is missing may be nothing but zeros at its end. Where there is no space for these
        // zeros there may be nothing to wipe out.
        let is_nothing = || {
            let there = segment.read(offset, offset + HEADER as u32);
            there.is_ok_and(|there| there.iter().all(|&byte| byte == 0))
        };
        *is_torn |= match write(&[0; HEADER]) {
            Ok(()) => false,
            Err(Error::Full { .. }) => !is_nothing(),
            Err(_) => true,
        };
    })
}

fn mark_value(places: Places) -> Vec<u8> {
    let bits = |stream| {
        let point = places.of(stream);
        (u64::from(point.segment) << 32 | u64::from(point.offset)).to_le_bytes()
    };
    Stream::WRITTEN.into_iter().flat_map(bits).collect()
}

/// What a mark says.
pub(super) fn marked(record: &Record<'_>) -> Option<Places> {
    let mut places = Places::default();
    let (words, _) = record.value.as_chunks();
    for (at, stream) in Stream::WRITTEN.into_iter().enumerate() {
        let bits = u64::from_le_bytes(*words.get(at)?);
        *places.of_mut(stream) = Point { segment: (bits >> 32) as u32, offset: bits as u32 };
    }
    Some(places)
}
