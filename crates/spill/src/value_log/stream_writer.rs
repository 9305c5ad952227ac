//! The appending end of a stream: its current segment and staging slot.

use std::mem;
use std::sync::Arc;

use super::flush::Flusher;
use super::segment::{FILE_HEADER_LEN, Segment};
use super::staging::SlotWriter;
use crate::error::{Error, Result};
use crate::fs::write_all_at;
use crate::record::{self, EMPTY_RECORD_LEN, HEADER_LEN, Hashes, Header, Record, RecordKind};
use crate::stream::{LogPosition, Stream, StreamPositions};

/// Creates the next segment of a stream and adds it to the version.
pub(crate) type CreateSegment<'a> = &'a mut dyn FnMut(Stream) -> Result<Arc<Segment>>;

pub(super) const SYNC_MARK_LEN: usize = record::encoded_len(0, 8 * Stream::WRITTEN.len());
pub(super) const SEQUENCE_GAP_LEN: usize = record::encoded_len(0, 8);

pub(super) struct StreamWriter {
    segment: Arc<Segment>,
    slot_writer: SlotWriter,
    /// Writes full slots, in a thread of its own if there is one.
    flusher: Arc<Flusher>,
    has_thread: bool,
    /// A record to write to its segment directly: too long for a slot, or not to be staged.
    direct_record: Vec<u8>,
    /// Segments with unsynced data.
    unsynced: Vec<Arc<Segment>>,
    /// The current segment is the last of them.
    is_listed_unsynced: bool,
    /// Synced positions that the log does not mention yet.
    pending_mark: Option<StreamPositions>,
    /// A record whose write failed may reappear at the next opening.
    pub(super) is_torn: bool,
    /// A segment that was created when its predecessor could not be sealed.
    unused_segment: Option<Arc<Segment>>,
}

impl StreamWriter {
    /// Starts with an empty, durable segment and a slot for it.
    pub(super) fn new(
        segment: Arc<Segment>,
        slot_writer: SlotWriter,
        flusher: Arc<Flusher>,
        has_thread: bool,
    ) -> StreamWriter {
        StreamWriter {
            segment,
            slot_writer,
            flusher,
            has_thread,
            direct_record: Vec::new(),
            unsynced: Vec::new(),
            is_listed_unsynced: false,
            pending_mark: None,
            is_torn: false,
            unused_segment: None,
        }
    }

    /// Position of the next record.
    pub(super) fn position(&self) -> LogPosition {
        LogPosition { segment: self.segment.id, offset: self.slot_writer.offset() }
    }

    /// See [`LogWriter::reserve`](super::LogWriter::reserve).
    pub(super) fn reserve(&mut self, len: usize, create: CreateSegment<'_>) -> Result<()> {
        if let Some(positions) = self.pending_mark {
            self.ensure_space(SYNC_MARK_LEN + len, create)?;
            self.append_sync_mark(positions)?;
            self.pending_mark = None;
        }
        self.ensure_space(len, create)
    }

    /// The buffer for `len` reserved bytes.
    pub(super) fn reserved(&mut self, len: usize) -> &mut [u8] {
        if self.slot_writer.fits(len) {
            return self.slot_writer.free_space(len);
        }
        self.direct_record.clear();
        self.direct_record.resize(len, 0);
        &mut self.direct_record
    }

    /// See [`LogWriter::commit`](super::LogWriter::commit).
    pub(super) fn commit(&mut self, len: usize, overhead: usize) -> Result<()> {
        if !self.is_listed_unsynced {
            self.list_unsynced();
        }
        if overhead > 0 {
            self.segment.add_dead(overhead as u64);
        }
        if self.slot_writer.fits(len) {
            self.slot_writer.commit(len);
            return Ok(());
        }
        let offset = self.slot_writer.offset();
        write_or_erase(&self.segment, &self.direct_record, offset, &mut self.is_torn)?;
        self.segment.set_written(offset + len as u32);
        self.slot_writer.restart(self.slot_writer.slot(), self.segment.id, offset + len as u32);
        if self.direct_record.capacity() > 1 << 20 {
            self.direct_record = Vec::new();
        }
        Ok(())
    }

    fn list_unsynced(&mut self) {
        self.unsynced.push(Arc::clone(&self.segment));
        self.is_listed_unsynced = true;
    }

    /// Ensures that `len` bytes fit at the current position.
    fn ensure_space(&mut self, len: usize, create: CreateSegment<'_>) -> Result<()> {
        if self.slot_writer.offset() as usize + len + EMPTY_RECORD_LEN > self.segment.capacity() {
            self.next_segment(create)?;
        }
        if !self.slot_writer.fits(len) {
            // It goes to the segment directly, after everything before it.
            self.push_staged();
            self.flusher.flush()?;
        } else if !self.slot_writer.has_room(len) {
            self.next_slot()?;
        }
        Ok(())
    }

    fn next_slot(&mut self) -> Result<()> {
        if !self.has_thread {
            self.push_staged();
            self.flusher.flush()?;
        }
        let next = self.flusher.free_slot()?;
        match self.slot_writer.take_write(&self.segment, true) {
            Some(write) => self.flusher.push(write),
            None => self.flusher.release_slot(self.slot_writer.slot()),
        }
        self.slot_writer.restart(next, self.segment.id, self.slot_writer.offset());
        Ok(())
    }

    /// Seals this segment and continues in a new one; after an error it stays in this one.
    pub(super) fn next_segment(&mut self, create: CreateSegment<'_>) -> Result<()> {
        let next = match self.unused_segment.take() {
            Some(unused_segment) => unused_segment,
            None => create(self.segment.stream)?,
        };
        if let Err(error) = self.seal(&next) {
            self.unused_segment = Some(next);
            return Err(error);
        }
        self.segment = next;
        // Its name and header are unsynced.
        self.list_unsynced();
        Ok(())
    }

    /// Seals this segment, for which space is always left, and starts the next.
    fn seal(&mut self, next: &Segment) -> Result<()> {
        let is_staged = self.slot_writer.fits(EMPTY_RECORD_LEN);
        if is_staged && !self.slot_writer.has_room(EMPTY_RECORD_LEN) {
            self.next_slot()?;
        }
        // With a staged seal nothing after this can fail.
        let slot = if is_staged { self.flusher.free_slot()? } else { self.slot_writer.slot() };
        self.append(Header { value_len: next.id, ..empty_header(RecordKind::Seal, &[]) }, &[])?;
        self.segment.complete(self.slot_writer.offset());
        if let Some(write) = self.slot_writer.take_write(&self.segment, true) {
            self.flusher.push(write);
        }
        self.slot_writer.restart(slot, next.id, FILE_HEADER_LEN);
        Ok(())
    }

    fn append_sync_mark(&mut self, positions: StreamPositions) -> Result<()> {
        if self.slot_writer.fits(SYNC_MARK_LEN) && !self.slot_writer.has_room(SYNC_MARK_LEN) {
            self.next_slot()?;
        }
        let value = encode_mark(positions);
        self.append(empty_header(RecordKind::SyncMark, &value), &value)
    }

    /// Appends a record of a number of unused sequences; its space is reserved.
    pub(super) fn append_sequence_gap(&mut self, sequence: u64, count: u64) -> Result<()> {
        let count = count.to_le_bytes();
        self.append(Header { sequence, ..empty_header(RecordKind::SequenceGap, &count) }, &count)
    }

    /// Appends a record without a key; its space is reserved.
    fn append(&mut self, header: Header, value: &[u8]) -> Result<()> {
        let location = (self.segment.id, self.slot_writer.offset());
        let len = header.record_len();
        header.write(location, Hashes::of(b"", value), b"", value, self.reserved(len));
        self.commit(len, len)
    }

    /// Queues what is in the slot.
    pub(super) fn push_staged(&mut self) {
        if let Some(write) = self.slot_writer.take_write(&self.segment, false) {
            self.flusher.push(write);
        }
    }

    /// The segments to sync to make everything up to here durable.
    pub(super) fn take_unsynced(&mut self) -> Vec<Arc<Segment>> {
        self.push_staged();
        self.is_listed_unsynced = false;
        mem::take(&mut self.unsynced)
    }

    /// Lists them again after a failed sync.
    pub(super) fn restore_unsynced(&mut self, segments: Vec<Arc<Segment>>) {
        // The current one may have been listed again.
        self.unsynced.retain(|again| !segments.iter().any(|one| one.id == again.id));
        self.unsynced.splice(..0, segments);
        self.is_listed_unsynced =
            self.unsynced.last().is_some_and(|last| last.id == self.segment.id);
    }

    pub(super) fn note_synced(&mut self, positions: StreamPositions) {
        self.pending_mark = Some(positions);
    }
}

/// Header of an internal record.
fn empty_header(kind: RecordKind, value: &[u8]) -> Header {
    let value_len = value.len() as u32;
    Header { kind, in_batch: false, key_len: 0, value_len, table: 0, sequence: 0 }
}

/// Writes a record to its segment. On failure nothing of it remains, or `is_torn` is set.
fn write_or_erase(segment: &Segment, record: &[u8], offset: u32, is_torn: &mut bool) -> Result<()> {
    let write = |bytes: &[u8]| {
        write_all_at(&*segment.file, bytes, u64::from(offset))
            .map_err(|error| Error::io(segment.path(), error))
    };
    write(record).inspect_err(|_| {
        // A missing part may be nothing but trailing zeros. Without space for the erasing zeros,
        // there may be nothing to erase.
        let is_nothing = || {
            let there = segment.read(offset, offset + HEADER_LEN as u32);
            there.is_ok_and(|there| there.iter().all(|&byte| byte == 0))
        };
        *is_torn |= match write(&[0; HEADER_LEN]) {
            Ok(()) => false,
            Err(Error::Full { .. }) => !is_nothing(),
            Err(_) => true,
        };
    })
}

fn encode_mark(positions: StreamPositions) -> Vec<u8> {
    let bits = |stream| {
        let position = positions.of(stream);
        (u64::from(position.segment) << 32 | u64::from(position.offset)).to_le_bytes()
    };
    Stream::WRITTEN.into_iter().flat_map(bits).collect()
}

/// Decodes the positions in a sync mark.
pub(super) fn decode_mark(record: &Record<'_>) -> Option<StreamPositions> {
    let mut positions = StreamPositions::default();
    let (words, _) = record.value.as_chunks();
    for (at, stream) in Stream::WRITTEN.into_iter().enumerate() {
        let bits = u64::from_le_bytes(*words.get(at)?);
        *positions.of_mut(stream) =
            LogPosition { segment: (bits >> 32) as u32, offset: bits as u32 };
    }
    Some(positions)
}
