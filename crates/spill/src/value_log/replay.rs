//! Reading the writers' streams again from a point on, in the order of their sequences, up to the
//! first one that is missing.

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
    /// The last sequence before them.
    pub(crate) sequence: u64,
}

/// Calls `visit` with each put and delete that `coverage` does not have, whole batches only, as long as
/// no sequence is missing. `segments` are those of the writers' streams in order; those that are known
/// to be complete have their end. What was left in the staging slots behind the end of a file is
/// written to it. Segments that were read to their end are told so. `missing` says why a segment is
/// not there that should be.
///
/// # Errors
/// [`Error::Damaged`] if a stream ends before what is known to have been on the device: before
/// `synced`, or before a place that a later mark tells of.
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
                return Err(next.damaged("its sequence was there before"));
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
    // What one stream lacks cuts the other one: the one that ends by itself says why.
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

/// What counts together or not at all.
#[derive(Clone, Copy)]
struct ReplayUnit {
    /// Its sequences.
    first: u64,
    last: u64,
    /// Where its puts and deletes begin, and where it ends.
    begin: u32,
    end: u32,
}

/// Walks along a stream.
struct StreamCursor<'a> {
    stream: Stream,
    staged: &'a [LeftoverSlot],
    /// The one that it is in; none where the stream goes on in one that is not there.
    segment: Option<&'a Arc<Segment>>,
    rest: Peekable<vec::IntoIter<&'a Arc<Segment>>>,
    bytes: SegmentBytes,
    position: LogPosition,
    /// What is there; none: the stream has ended.
    unit: Option<ReplayUnit>,
    /// It has ended with a segment that is known to be complete, and the last one.
    is_complete: bool,
    /// What marks before here say.
    marked: StreamPositions,
}

impl<'a> StreamCursor<'a> {
    /// At the first unit behind what is covered.
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

    /// Goes on at a place of another segment.
    fn enter_segment(&mut self, position: LogPosition) -> Result<()> {
        self.position = position;
        self.segment = self.rest.next_if(|next| next.id == position.segment);
        if let Some(segment) = self.segment {
            self.position.offset = position.offset.max(FILE_HEADER_LEN);
            self.bytes = read_with_staged(segment, self.position.offset, self.staged)?;
        }
        Ok(())
    }

    /// Goes on behind a unit.
    fn advance(&mut self, unit: ReplayUnit) -> Result<()> {
        self.position.offset = unit.end;
        self.find_unit()
    }

    /// Finds the unit that is here, or next.
    fn find_unit(&mut self) -> Result<()> {
        self.unit = None;
        while let Some(segment) = self.segment {
            match self.bytes.item_at(segment.id, self.position.offset) {
                Some(ReplayItem::ReplayUnit(unit)) => {
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

    /// Where the stream goes on behind the last good record of a segment, if it does.
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

    /// What marks say that lie behind here: an end is only an end if nothing tells that more was on
    /// the device.
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

/// The bytes of a segment from `from` on, with what was staged behind its end, which is written
/// to the file.
fn read_with_staged(segment: &Segment, from: u32, staged: &[LeftoverSlot]) -> Result<SegmentBytes> {
    let failed = |error| Error::io(segment.path(), error);
    let end = segment.end().map_or(segment.capacity(), |end| end as usize);
    let mut bytes = SegmentBytes { bytes: segment.read(from, end as u32)?, begin: from };
    let mut slots: Vec<&LeftoverSlot> =
        staged.iter().filter(|left| left.segment == segment.id).collect();
    slots.sort_by_key(|left| left.offset);
    // The file knows best what it has; a slot counts from there on.
    let mut have = valid_end(bytes.from(from), segment.id, from);
    for left in slots {
        let end = valid_end(&left.bytes, segment.id, left.offset);
        let fits = end as usize <= from as usize + bytes.bytes.len();
        if left.offset > have || end <= have || !fits {
            continue;
        }
        let part = &left.bytes[(have - left.offset) as usize..(end - left.offset) as usize];
        bytes.bytes[(have - from) as usize..][..part.len()].copy_from_slice(part);
        write_all_at(&*segment.file, part, u64::from(have)).map_err(failed)?;
        have = end;
    }
    Ok(bytes)
}

/// Where the good records end that begin with `bytes`, which lie at `offset` of a segment.
fn valid_end(bytes: &[u8], segment: u32, offset: u32) -> u32 {
    let mut len = 0;
    while let Some(record) = Record::parse(&bytes[len..], (segment, offset + len as u32)) {
        len += record.header.record_len();
    }
    offset + len as u32
}

/// Bytes of a segment.
#[derive(Default)]
struct SegmentBytes {
    bytes: Vec<u8>,
    /// Where they begin in the segment.
    begin: u32,
}

/// What good records say.
enum ReplayItem {
    ReplayUnit(ReplayUnit),
    SyncMark { positions: StreamPositions, end: u32 },
    Seal { next: u32, end: u32 },
}

impl SegmentBytes {
    fn from(&self, offset: u32) -> &[u8] {
        self.bytes.get((offset - self.begin) as usize..).unwrap_or_default()
    }

    /// The record at an offset of this segment, if there is a good one.
    fn record(&self, id: u32, offset: u32) -> Option<Record<'_>> {
        Record::parse(self.from(offset), (id, offset))
    }

    /// What there is at an offset; a part of a batch, without the rest, is nothing.
    fn item_at(&self, id: u32, begin: u32) -> Option<ReplayItem> {
        let record = self.record(id, begin)?;
        let Header { kind, in_batch, sequence: first, value_len, .. } = record.header;
        let end = begin + record.header.record_len() as u32;
        let unit =
            |last, begin, end| ReplayItem::ReplayUnit(ReplayUnit { first, last, begin, end });
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

    /// The last sequence of a batch and where it ends, if all of it is there.
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

    /// What the marks say that begin anywhere from an offset on.
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
