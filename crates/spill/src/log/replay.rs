//! Reading the writers' streams again from a point on, in the order of their sequences, up to the
//! first one that is missing.

use std::iter::Peekable;
use std::sync::Arc;
use std::vec;

use super::segment::{FILE_HEADER, Segment, aligned, name};
use super::staging::Left;
use super::stream_end::marked;
use crate::error::{Error, Result};
use crate::fs::write_whole;
use crate::position::ALIGN;
use crate::record::{Header, Kind, LAST_SEQUENCE, MARK, Record};
use crate::stream::{Places, Point, Stream};
use crate::version::Covers;

/// Where the streams end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tails {
    pub(crate) places: Places,
    /// The last sequence before them.
    pub(crate) sequence: u64,
}

/// Calls `seen` with each put and delete that `covers` does not have, whole batches only, as long as
/// no sequence is missing. `segments` are those of the writers' streams in order; those that are known
/// to be complete have their end. What was left in the staging slots behind the end of a file is
/// written to it. Segments that were read to their end are told so. `missing` says why a segment is
/// not there that should be.
///
/// # Errors
/// [`Error::Damaged`] if a stream ends before what is known to have been on the device: before
/// `synced`, or before a place that a later mark tells of.
pub(crate) fn replay(
    covers: Covers,
    synced: Places,
    staged: &[Left],
    segments: &[Arc<Segment>],
    missing: impl FnOnce(u32) -> Error,
    mut seen: impl FnMut(Point, &Record<'_>) -> Result<()>,
) -> Result<Tails> {
    let mut main = Cursor::new(Stream::Main, covers, segments, staged)?;
    let mut hot = Cursor::new(Stream::Hot, covers, segments, staged)?;
    let mut sequence = covers.sequence;
    loop {
        let next = match (&main.unit, &hot.unit) {
            (Some(one), Some(other)) if one.first > other.first => &mut hot,
            (Some(_), _) => &mut main,
            (None, Some(_)) => &mut hot,
            (None, None) => break,
        };
        let Some(unit) = next.unit else { break };
        if unit.last > covers.sequence {
            if unit.first <= sequence {
                return Err(next.damaged("its sequence was there before"));
            }
            if unit.first > sequence + 1 {
                break;
            }
            next.give(unit, &mut seen)?;
            sequence = unit.last;
        }
        next.pass(unit)?;
    }
    let mut told = synced;
    for cursor in [&main, &hot] {
        told = told.max(cursor.told).max(cursor.told_behind(segments)?);
        if let Some(segment) = cursor.segment {
            segment.set_written(cursor.at.offset);
        }
    }
    // What one stream lacks cuts the other one: the one that ends by itself says why.
    let mut cursors = [&main, &hot];
    cursors.sort_by_key(|cursor| cursor.unit.is_some());
    for cursor in cursors {
        if !cursor.is_complete && cursor.at < told.of(cursor.stream) {
            return Err(match cursor.segment {
                Some(_) => cursor.damaged("a record is not what was written"),
                None => missing(cursor.at.segment),
            });
        }
    }
    if main.unit.is_some() && hot.unit.is_some() {
        return Err(main.damaged("records before it are missing"));
    }
    Ok(Tails { places: Places { main: main.at, hot: hot.at, ..Places::default() }, sequence })
}

/// What counts together or not at all.
#[derive(Clone, Copy)]
struct Unit {
    /// Its sequences.
    first: u64,
    last: u64,
    /// Where its puts and deletes begin, and where it ends.
    begin: u32,
    end: u32,
}

/// Walks along a stream.
struct Cursor<'a> {
    stream: Stream,
    staged: &'a [Left],
    /// The one that it is in; none where the stream goes on in one that is not there.
    segment: Option<&'a Arc<Segment>>,
    rest: Peekable<vec::IntoIter<&'a Arc<Segment>>>,
    bytes: Bytes,
    at: Point,
    /// What is there; none: the stream has ended.
    unit: Option<Unit>,
    /// It has ended with a segment that is known to be complete, and the last one.
    is_complete: bool,
    /// What marks before here say.
    told: Places,
}

impl<'a> Cursor<'a> {
    /// At the first unit behind what is covered.
    fn new(
        stream: Stream,
        covers: Covers,
        segments: &'a [Arc<Segment>],
        staged: &'a [Left],
    ) -> Result<Self> {
        let at = covers.places.of(stream);
        let is_ahead =
            |segment: &&Arc<Segment>| segment.stream == stream && segment.id >= at.segment;
        let rest: Vec<_> = segments.iter().filter(is_ahead).collect();
        let mut cursor = Cursor {
            stream,
            staged,
            segment: None,
            rest: rest.into_iter().peekable(),
            bytes: Bytes::default(),
            at,
            unit: None,
            is_complete: false,
            told: Places::default(),
        };
        cursor.enter(at)?;
        cursor.find()?;
        Ok(cursor)
    }

    /// Goes on at a place of another segment.
    fn enter(&mut self, at: Point) -> Result<()> {
        self.at = at;
        self.segment = self.rest.next_if(|next| next.id == at.segment);
        if let Some(segment) = self.segment {
            self.at.offset = at.offset.max(FILE_HEADER);
            self.bytes = whole(segment, self.at.offset, self.staged)?;
        }
        Ok(())
    }

    /// Goes on behind a unit.
    fn pass(&mut self, unit: Unit) -> Result<()> {
        self.at.offset = unit.end;
        self.find()
    }

    /// Finds the unit that is here, or next.
    fn find(&mut self) -> Result<()> {
        self.unit = None;
        while let Some(segment) = self.segment {
            match self.bytes.found(segment.id, self.at.offset) {
                Some(Found::Unit(unit)) => {
                    self.unit = Some(unit);
                    break;
                }
                Some(Found::Mark { places, end }) => {
                    self.told = self.told.max(places);
                    self.at.offset = end;
                }
                Some(Found::Seal { next, end }) => {
                    self.at.offset = end;
                    if segment.end().is_none() {
                        segment.set_written(end);
                        segment.complete(end);
                        self.enter(Point { segment: next, offset: FILE_HEADER })?;
                    }
                }
                None => match self.behind_records(segment)? {
                    Some(next) => self.enter(next)?,
                    None => break,
                },
            }
        }
        Ok(())
    }

    /// Where the stream goes on behind the last good record of a segment, if it does.
    fn behind_records(&mut self, segment: &Segment) -> Result<Option<Point>> {
        let Some(known) = segment.end() else { return Ok(None) };
        if self.at.offset != known {
            return Err(self.damaged("a record is not what was written"));
        }
        segment.set_written(known);
        self.is_complete = self.rest.peek().is_none();
        Ok(self.rest.peek().map(|next| Point { segment: next.id, offset: FILE_HEADER }))
    }

    /// Calls `seen` with the puts and deletes of a unit.
    fn give(
        &self,
        unit: Unit,
        seen: &mut impl FnMut(Point, &Record<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut at = unit.begin;
        while at < unit.end {
            let point = Point { segment: self.at.segment, offset: at };
            let Some(record) = self.bytes.record(point.segment, at) else { break };
            seen(point, &record)?;
            at += record.header.record_len() as u32;
        }
        Ok(())
    }

    /// What marks say that lie behind here: an end is only an end if nothing tells that more was on
    /// the device.
    fn told_behind(&self, segments: &[Arc<Segment>]) -> Result<Places> {
        let mut told = match self.segment {
            Some(segment) => self.bytes.marks(segment.id, self.at.offset),
            None => Places::default(),
        };
        let is_later =
            |later: &&Arc<Segment>| later.stream == self.stream && later.id > self.at.segment;
        for later in segments.iter().filter(is_later) {
            told = told.max(whole(later, FILE_HEADER, &[])?.marks(later.id, FILE_HEADER));
        }
        Ok(told)
    }

    fn damaged(&self, what: &str) -> Error {
        match self.segment {
            Some(segment) => segment.damaged(self.at.offset, what),
            None => Error::damaged(name(self.at.segment).as_ref(), 0, what),
        }
    }
}

/// The bytes of a segment from `from` on, with what was staged behind its end, which is written
/// to the file.
fn whole(segment: &Segment, from: u32, staged: &[Left]) -> Result<Bytes> {
    let failed = |error| Error::io(segment.path(), error);
    let end = segment.end().map_or(segment.capacity(), |end| end as usize);
    let mut bytes = Bytes { bytes: segment.read(from, end as u32)?, begin: from };
    let mut slots: Vec<&Left> = staged.iter().filter(|left| left.segment == segment.id).collect();
    slots.sort_by_key(|left| left.offset);
    // The file knows best what it has; a slot counts from there on.
    let mut have = good_end(bytes.at(from), segment.id, from);
    for left in slots {
        let end = good_end(&left.bytes, segment.id, left.offset);
        let fits = end as usize <= from as usize + bytes.bytes.len();
        if left.offset > have || end <= have || !fits {
            continue;
        }
        let part = &left.bytes[(have - left.offset) as usize..(end - left.offset) as usize];
        bytes.bytes[(have - from) as usize..][..part.len()].copy_from_slice(part);
        write_whole(&*segment.file, part, u64::from(have)).map_err(failed)?;
        have = end;
    }
    Ok(bytes)
}

/// Where the good records end that begin with `bytes`, which lie at `offset` of a segment.
fn good_end(bytes: &[u8], segment: u32, offset: u32) -> u32 {
    let mut len = 0;
    while let Some(record) = Record::read(&bytes[len..], (segment, offset + len as u32)) {
        len += record.header.record_len();
    }
    offset + len as u32
}

/// Bytes of a segment.
#[derive(Default)]
struct Bytes {
    bytes: Vec<u8>,
    /// Where they begin in the segment.
    begin: u32,
}

/// What good records say.
enum Found {
    Unit(Unit),
    Mark { places: Places, end: u32 },
    Seal { next: u32, end: u32 },
}

impl Bytes {
    fn at(&self, offset: u32) -> &[u8] {
        self.bytes.get((offset - self.begin) as usize..).unwrap_or_default()
    }

    /// The record at an offset of this segment, if there is a good one.
    fn record(&self, id: u32, at: u32) -> Option<Record<'_>> {
        Record::read(self.at(at), (id, at))
    }

    /// What there is at an offset; a part of a batch, without the rest, is nothing.
    fn found(&self, id: u32, begin: u32) -> Option<Found> {
        let record = self.record(id, begin)?;
        let Header { kind, in_batch, sequence: first, value_len, .. } = record.header;
        let end = begin + record.header.record_len() as u32;
        let unit = |last, begin, end| Found::Unit(Unit { first, last, begin, end });
        Some(match kind {
            Kind::Put | Kind::Delete if in_batch => return None,
            Kind::Put | Kind::Delete => unit(first, begin, end),
            Kind::Batch => {
                let (last, to) = self.batch_end(id, end, value_len)?;
                unit(last, end, to)
            }
            Kind::Skip => {
                let count = u64::from_le_bytes(*record.value.first_chunk()?);
                let last = first.saturating_add(count).saturating_sub(1);
                (last <= LAST_SEQUENCE).then(|| unit(last, end, end))?
            }
            Kind::Mark => Found::Mark { places: marked(&record)?, end },
            Kind::Seal => Found::Seal { next: value_len, end },
        })
    }

    /// The last sequence of a batch and where it ends, if all of it is there.
    fn batch_end(&self, id: u32, from: u32, len: u32) -> Option<(u64, u32)> {
        let end = from.checked_add(len)?;
        let (mut at, mut last) = (from, None);
        while at < end {
            let record = self.record(id, at)?;
            let is_part = matches!(record.header.kind, Kind::Put | Kind::Delete);
            if !is_part || !record.header.in_batch {
                return None;
            }
            at += record.header.record_len() as u32;
            last = Some(record.header.sequence);
        }
        Some((last?, end)).filter(|_| at == end)
    }

    /// What the marks say that begin anywhere from an offset on.
    fn marks(&self, id: u32, from: u32) -> Places {
        let mut told = Places::default();
        let mut at = aligned(from);
        while !self.at(at).is_empty() {
            if self.at(at).get(4) == Some(&MARK)
                && let Some(places) = self.record(id, at).as_ref().and_then(marked)
            {
                told = told.max(places);
            }
            at += ALIGN as u32;
        }
        told
    }
}
