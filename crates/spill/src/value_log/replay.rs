//! Replays the writers' streams from a position on, in the order of sequences, up to the first
//! missing one.

use std::iter::Peekable;
use std::sync::Arc;
use std::vec;

use super::segment::{FILE_HEADER_LEN, Segment, align_down, name};
use super::staging::LeftoverSlot;
use super::stream_writer::decode_mark;
use crate::error::{Error, Result};
use crate::fs::write_all_at;
use crate::record::{Header, MAX_SEQUENCE, Record, RecordKind, SYNC_MARK_BYTE};
use crate::stream::{LogPosition, Stream, StreamPositions};
use crate::value_pointer::RECORD_ALIGN;
use crate::version::Coverage;

/// Where the streams end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogEnd {
    pub(crate) positions: StreamPositions,
    /// The last sequence before the ends.
    pub(crate) sequence: u64,
}

/// Calls `visit` with each put and delete beyond `coverage`, in whole batches, up to the first
/// missing sequence. `segments` are those of the writers' streams in order; complete ones have
/// their end. Staged records behind the end of a file are written to it. Segments read to their end
/// are marked complete. `missing` returns the error for a missing segment.
///
/// # Errors
/// [`Error::Damaged`] if a stream ends before what is known to be durable: before `synced`, or
/// before a position in a later sync mark.
pub(crate) fn replay(
    coverage: Coverage,
    synced: StreamPositions,
    staged: &[LeftoverSlot],
    segments: &[Arc<Segment>],
    missing: impl FnOnce(u32) -> Error,
    mut visit: impl FnMut(LogPosition, &Record<'_>) -> Result<()>,
) -> Result<LogEnd> {
    let mut main = StreamCursor::new(Stream::Main, coverage, segments, staged)?;
    let mut hot = StreamCursor::new(Stream::Hot, coverage, segments, staged)?;
    let mut sequence = coverage.sequence;
    loop {
        let next = match (&main.unit, &hot.unit) {
            (Some(one), Some(other)) if one.first > other.first => &mut hot,
            (Some(_), _) => &mut main,
            (None, Some(_)) => &mut hot,
            (None, None) => break,
        };
        let Some(unit) = next.unit else { break };
        if unit.last > coverage.sequence {
            if unit.first <= sequence {
                return Err(next.damaged("its sequence was used before"));
            }
            if unit.first > sequence + 1 {
                break;
            }
            next.visit_unit(unit, &mut visit)?;
            sequence = unit.last;
        }
        next.advance(unit)?;
    }
    let mut marked = synced;
    for cursor in [&main, &hot] {
        marked = marked.max(cursor.marked).max(cursor.marks_behind(segments)?);
        if let Some(segment) = cursor.segment {
            segment.set_written(cursor.position.offset);
        }
    }
    // A gap in one stream also cuts the other; the one that ends by itself knows why.
    let mut cursors = [&main, &hot];
    cursors.sort_by_key(|cursor| cursor.unit.is_some());
    for cursor in cursors {
        if !cursor.is_complete && cursor.position < marked.of(cursor.stream) {
            return Err(match cursor.segment {
                Some(_) => cursor.damaged("a record is not what was written"),
                None => missing(cursor.position.segment),
            });
        }
    }
    if main.unit.is_some() && hot.unit.is_some() {
        return Err(main.damaged("records before it are missing"));
    }
    Ok(LogEnd {
        positions: StreamPositions {
            main: main.position,
            hot: hot.position,
            ..StreamPositions::default()
        },
        sequence,
    })
}

/// Records that count together or not at all.
#[derive(Clone, Copy)]
struct ReplayUnit {
    /// Its sequences.
    first: u64,
    last: u64,
    /// Start of its puts and deletes, and its end.
    begin: u32,
    end: u32,
}

/// A cursor over a stream.
struct StreamCursor<'a> {
    stream: Stream,
    staged: &'a [LeftoverSlot],
    /// The current segment; `None` if the stream continues in a missing one.
    segment: Option<&'a Arc<Segment>>,
    rest: Peekable<vec::IntoIter<&'a Arc<Segment>>>,
    bytes: SegmentBytes,
    position: LogPosition,
    /// The current unit; `None` at the end of the stream.
    unit: Option<ReplayUnit>,
    /// The stream ended with the last segment, which is known to be complete.
    is_complete: bool,
    /// The highest positions in sync marks so far.
    marked: StreamPositions,
}

impl<'a> StreamCursor<'a> {
    /// Starts at the first unit beyond the coverage.
    fn new(
        stream: Stream,
        coverage: Coverage,
        segments: &'a [Arc<Segment>],
        staged: &'a [LeftoverSlot],
    ) -> Result<Self> {
        let position = coverage.positions.of(stream);
        let is_ahead =
            |segment: &&Arc<Segment>| segment.stream == stream && segment.id >= position.segment;
        let rest: Vec<_> = segments.iter().filter(is_ahead).collect();
        let mut cursor = StreamCursor {
            stream,
            staged,
            segment: None,
            rest: rest.into_iter().peekable(),
            bytes: SegmentBytes::default(),
            position,
            unit: None,
            is_complete: false,
            marked: StreamPositions::default(),
        };
        cursor.enter_segment(position)?;
        cursor.find_unit()?;
        Ok(cursor)
    }

    /// Continues at a position in another segment.
    fn enter_segment(&mut self, position: LogPosition) -> Result<()> {
        self.position = position;
        self.segment = self.rest.next_if(|next| next.id == position.segment);
        if let Some(segment) = self.segment {
            self.position.offset = position.offset.max(FILE_HEADER_LEN);
            self.bytes = read_with_staged(segment, self.position.offset, self.staged)?;
        }
        Ok(())
    }

    /// Continues behind a unit.
    fn advance(&mut self, unit: ReplayUnit) -> Result<()> {
        self.position.offset = unit.end;
        self.find_unit()
    }

    /// Finds the unit here, or the next one.
    fn find_unit(&mut self) -> Result<()> {
        self.unit = None;
        while let Some(segment) = self.segment {
            match self.bytes.item_at(segment.id, self.position.offset) {
                Some(ReplayItem::Unit(unit)) => {
                    self.unit = Some(unit);
                    break;
                }
                Some(ReplayItem::SyncMark { positions, end }) => {
                    self.marked = self.marked.max(positions);
                    self.position.offset = end;
                }
                Some(ReplayItem::Seal { next, end }) => {
                    self.position.offset = end;
                    if segment.end().is_none() {
                        segment.set_written(end);
                        segment.complete(end);
                        self.enter_segment(LogPosition { segment: next, offset: FILE_HEADER_LEN })?;
                    }
                }
                None => match self.next_segment(segment)? {
                    Some(next) => self.enter_segment(next)?,
                    None => break,
                },
            }
        }
        Ok(())
    }

    /// Where the stream continues behind the last valid record of a segment, if it does.
    fn next_segment(&mut self, segment: &Segment) -> Result<Option<LogPosition>> {
        let Some(known) = segment.end() else { return Ok(None) };
        if self.position.offset != known {
            return Err(self.damaged("a record is not what was written"));
        }
        segment.set_written(known);
        self.is_complete = self.rest.peek().is_none();
        Ok(self.rest.peek().map(|next| LogPosition { segment: next.id, offset: FILE_HEADER_LEN }))
    }

    /// Calls `visit` with the puts and deletes of a unit.
    fn visit_unit(
        &self,
        unit: ReplayUnit,
        visit: &mut impl FnMut(LogPosition, &Record<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut offset = unit.begin;
        while offset < unit.end {
            let position = LogPosition { segment: self.position.segment, offset };
            let Some(record) = self.bytes.record(position.segment, offset) else { break };
            visit(position, &record)?;
            offset += record.header.record_len() as u32;
        }
        Ok(())
    }

    /// Sync marks behind this position: an end is valid only if no mark proves that more was
    /// durable.
    fn marks_behind(&self, segments: &[Arc<Segment>]) -> Result<StreamPositions> {
        let mut marked = match self.segment {
            Some(segment) => self.bytes.marks(segment.id, self.position.offset),
            None => StreamPositions::default(),
        };
        let is_later =
            |later: &&Arc<Segment>| later.stream == self.stream && later.id > self.position.segment;
        for later in segments.iter().filter(is_later) {
            marked = marked.max(
                read_with_staged(later, FILE_HEADER_LEN, &[])?.marks(later.id, FILE_HEADER_LEN),
            );
        }
        Ok(marked)
    }

    fn damaged(&self, what: &str) -> Error {
        match self.segment {
            Some(segment) => segment.damaged(self.position.offset, what),
            None => Error::damaged(name(self.position.segment).as_ref(), 0, what),
        }
    }
}

/// Reads a segment from `from` on, and adds what was staged behind its end, which is also written
/// to the file.
fn read_with_staged(segment: &Segment, from: u32, staged: &[LeftoverSlot]) -> Result<SegmentBytes> {
    let failed = |error| Error::io(segment.path(), error);
    let end = segment.end().map_or(segment.capacity(), |end| end as usize);
    let mut bytes = SegmentBytes { bytes: segment.read(from, end as u32)?, begin: from };
    let mut slots: Vec<&LeftoverSlot> =
        staged.iter().filter(|slot| slot.segment == segment.id).collect();
    slots.sort_by_key(|slot| slot.offset);
    // The file is authoritative; staged data counts from its valid end on.
    let mut have = valid_end(bytes.from(from), segment.id, from);
    for slot in slots {
        let end = valid_end(&slot.bytes, segment.id, slot.offset);
        let fits = end as usize <= from as usize + bytes.bytes.len();
        if slot.offset > have || end <= have || !fits {
            continue;
        }
        let part = &slot.bytes[(have - slot.offset) as usize..(end - slot.offset) as usize];
        bytes.bytes[(have - from) as usize..][..part.len()].copy_from_slice(part);
        write_all_at(&*segment.file, part, u64::from(have)).map_err(failed)?;
        have = end;
    }
    Ok(bytes)
}

/// End of the valid records in `bytes`, which lie at `offset` of a segment.
fn valid_end(bytes: &[u8], segment: u32, offset: u32) -> u32 {
    let mut len = 0;
    while let Some(record) = Record::parse(&bytes[len..], (segment, offset + len as u32)) {
        len += record.header.record_len();
    }
    offset + len as u32
}

/// A part of a segment in memory.
#[derive(Default)]
struct SegmentBytes {
    bytes: Vec<u8>,
    /// Its offset in the segment.
    begin: u32,
}

/// What valid records say.
enum ReplayItem {
    Unit(ReplayUnit),
    SyncMark { positions: StreamPositions, end: u32 },
    Seal { next: u32, end: u32 },
}

impl SegmentBytes {
    fn from(&self, offset: u32) -> &[u8] {
        self.bytes.get((offset - self.begin) as usize..).unwrap_or_default()
    }

    /// The valid record at an offset, if there is one.
    fn record(&self, id: u32, offset: u32) -> Option<Record<'_>> {
        Record::parse(self.from(offset), (id, offset))
    }

    /// The item at an offset; an incomplete batch is none.
    fn item_at(&self, id: u32, begin: u32) -> Option<ReplayItem> {
        let record = self.record(id, begin)?;
        let Header { kind, in_batch, sequence: first, value_len, .. } = record.header;
        let end = begin + record.header.record_len() as u32;
        let unit = |last, begin, end| ReplayItem::Unit(ReplayUnit { first, last, begin, end });
        Some(match kind {
            RecordKind::Put | RecordKind::Delete if in_batch => return None,
            RecordKind::Put | RecordKind::Delete => unit(first, begin, end),
            RecordKind::Batch => {
                let (last, to) = self.batch_end(id, end, value_len)?;
                unit(last, end, to)
            }
            RecordKind::SequenceGap => {
                let count = u64::from_le_bytes(*record.value.first_chunk()?);
                let last = first.saturating_add(count).saturating_sub(1);
                (last <= MAX_SEQUENCE).then(|| unit(last, end, end))?
            }
            RecordKind::SyncMark => ReplayItem::SyncMark { positions: decode_mark(&record)?, end },
            RecordKind::Seal => ReplayItem::Seal { next: value_len, end },
        })
    }

    /// The last sequence and the end of a batch, if it is complete.
    fn batch_end(&self, id: u32, from: u32, len: u32) -> Option<(u64, u32)> {
        let end = from.checked_add(len)?;
        let (mut offset, mut last) = (from, None);
        while offset < end {
            let record = self.record(id, offset)?;
            let is_part = matches!(record.header.kind, RecordKind::Put | RecordKind::Delete);
            if !is_part || !record.header.in_batch {
                return None;
            }
            offset += record.header.record_len() as u32;
            last = Some(record.header.sequence);
        }
        Some((last?, end)).filter(|_| offset == end)
    }

    /// The highest positions in sync marks at any offset from `from` on.
    fn marks(&self, id: u32, from: u32) -> StreamPositions {
        let mut marked = StreamPositions::default();
        let mut offset = align_down(from);
        while !self.from(offset).is_empty() {
            if self.from(offset).get(4) == Some(&SYNC_MARK_BYTE)
                && let Some(positions) = self.record(id, offset).as_ref().and_then(decode_mark)
            {
                marked = marked.max(positions);
            }
            offset += RECORD_ALIGN as u32;
        }
        marked
    }
}
