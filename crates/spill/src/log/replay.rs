//! Reading the main stream again from a point on, up to where it ends.

use std::sync::Arc;

use super::segment::{FILE_HEADER, Segment, aligned};
use super::staging::Left;
use super::writer::marked;
use crate::error::{Error, Result};
use crate::fs::{read_whole, write_whole};
use crate::position::{ALIGN, Point};
use crate::record::{HEADER, Kind, MARK, Record};

/// Where the stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail(pub(crate) Point);

/// Calls `seen` with each put and delete from `from` on, whole batches only. `segments` are those
/// of the main stream in order; those that are known to be complete have their end. What was left
/// in the staging slots behind the end of the file is written to it. Segments that were read to
/// their end are told so.
///
/// # Errors
/// [`Error::Damaged`] if the stream ends before what is known to have been on the device: before
/// `synced`, or before a point that a later mark tells of.
pub(crate) fn replay(
    from: Point,
    synced: Point,
    staged: &[Left],
    segments: &[Arc<Segment>],
    mut seen: impl FnMut(Point, &Record<'_>) -> Result<()>,
) -> Result<Tail> {
    let mut at = from;
    let mut rest = segments.iter().skip_while(|segment| segment.id < from.segment).peekable();
    while let Some(segment) = rest.next() {
        if segment.id != at.segment {
            break;
        }
        at.offset = at.offset.max(FILE_HEADER);
        let known_end = segment.end();
        let bytes = whole(segment, at.offset, staged)?;
        let (end, next) = replay_segment(&bytes, segment, at.offset, &mut seen)?;
        segment.set_written(end);
        let next = match (known_end, next) {
            (Some(known), _) if end == known => match rest.peek() {
                Some(next) => Some(next.id),
                None => return Ok(Tail(Point { segment: segment.id, offset: end })),
            },
            (Some(_), _) => return Err(segment.damaged(end, "a record is not what was written")),
            (None, next) => next,
        };
        at.offset = end;
        if let Some(next) = next {
            segment.complete(end);
            at = Point { segment: next, offset: FILE_HEADER };
            continue;
        }
        if at < synced {
            return Err(segment.damaged(end, "a record is not what was written"));
        }
        check_marks(&bytes, segment, at, rest)?;
        return Ok(Tail(at));
    }
    if at < synced {
        let name = super::segment::name(at.segment);
        return Err(Error::damaged(name.as_ref(), 0, "the segment is missing"));
    }
    // The name of the next segment was lost with the power: the stream ends before it.
    Ok(Tail(at))
}

/// The bytes of a segment from `from` on, with what was staged behind its end, which is written
/// to the file.
fn whole(segment: &Segment, from: u32, staged: &[Left]) -> Result<Bytes> {
    let failed = |error| Error::io(segment.path(), error);
    let end = segment.end().map_or(segment.capacity(), |end| end as usize);
    let mut bytes = vec![0; end.saturating_sub(from as usize)];
    read_whole(&*segment.file, &mut bytes, u64::from(from)).map_err(failed)?;
    let mut bytes = Bytes { bytes, begin: from };
    let mut slots: Vec<&Left> = staged.iter().filter(|left| left.segment == segment.id).collect();
    slots.sort_by_key(|left| left.offset);
    for left in slots {
        // Its records, as far as they are whole.
        let mut len = 0;
        while let Some(record) =
            Record::read(&left.bytes[len..], (segment.id, left.offset + len as u32))
        {
            len += record.header.record_len();
        }
        let end = left.offset as usize + len;
        if len == 0 || end > from as usize + bytes.bytes.len() || end <= from as usize {
            continue;
        }
        let skip = (from as usize).saturating_sub(left.offset as usize);
        let part = &left.bytes[skip..len];
        let place = left.offset as usize + skip - from as usize;
        if bytes.bytes[place..place + part.len()] != *part {
            bytes.bytes[place..place + part.len()].copy_from_slice(part);
            write_whole(&*segment.file, part, (left.offset as usize + skip) as u64)
                .map_err(failed)?;
        }
    }
    Ok(bytes)
}

struct Bytes {
    bytes: Vec<u8>,
    /// Where they begin in the segment.
    begin: u32,
}

impl Bytes {
    fn at(&self, offset: u32) -> &[u8] {
        self.bytes.get((offset - self.begin) as usize..).unwrap_or_default()
    }
}

/// Where the good records of a segment end, and which segment is next if it was sealed there.
fn replay_segment(
    bytes: &Bytes,
    segment: &Segment,
    from: u32,
    seen: &mut impl FnMut(Point, &Record<'_>) -> Result<()>,
) -> Result<(u32, Option<u32>)> {
    let mut at = from;
    while let Some(record) = Record::read(bytes.at(at), (segment.id, at)) {
        let next = at + record.header.record_len() as u32;
        match record.header.kind {
            Kind::Put | Kind::Delete => {
                // A part of a batch whose begin is missing is none.
                if record.header.in_batch {
                    break;
                }
                seen(Point { segment: segment.id, offset: at }, &record)?;
                at = next;
            }
            Kind::Mark => at = next,
            Kind::Seal => return Ok((next, Some(record.header.table))),
            Kind::Batch => {
                let Some(end) = batch_end(bytes, segment, next, record.header.value_len) else {
                    break;
                };
                at = next;
                while at < end {
                    let Some(record) = Record::read(bytes.at(at), (segment.id, at)) else { break };
                    seen(Point { segment: segment.id, offset: at }, &record)?;
                    at += record.header.record_len() as u32;
                }
            }
        }
    }
    Ok((at, None))
}

/// Where a batch ends, if all of it is there.
fn batch_end(bytes: &Bytes, segment: &Segment, from: u32, len: u32) -> Option<u32> {
    let end = from.checked_add(len)?;
    let mut at = from;
    while at < end {
        let record = Record::read(bytes.at(at), (segment.id, at))?;
        let is_part = matches!(record.header.kind, Kind::Put | Kind::Delete);
        if !is_part || !record.header.in_batch {
            return None;
        }
        at += record.header.record_len() as u32;
    }
    (at == end).then_some(end)
}

/// An end is only an end if nothing behind it tells that more was on the device.
fn check_marks<'a>(
    bytes: &Bytes,
    segment: &Segment,
    end: Point,
    later: impl Iterator<Item = &'a Arc<Segment>>,
) -> Result<()> {
    let told = |bytes: &Bytes, id: u32, from: u32| {
        let mut at = aligned(from);
        while !bytes.at(at).is_empty() {
            if bytes.at(at).get(4) == Some(&MARK)
                && let Some(record) = Record::read(bytes.at(at), (id, at))
                && marked(&record).is_some_and(|point| point > end)
            {
                return true;
            }
            at += ALIGN as u32;
        }
        false
    };
    let mut is_damaged = told(bytes, segment.id, end.offset);
    for later in later {
        is_damaged |= told(&whole(later, FILE_HEADER, &[])?, later.id, FILE_HEADER);
    }
    if is_damaged {
        return Err(segment.damaged(end.offset, "a record is not what was written"));
    }
    Ok(())
}

const _: () = assert!(HEADER.is_multiple_of(ALIGN));
