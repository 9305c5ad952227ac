//! What of the log the levels do not have.

use std::path::Path;
use std::sync::Arc;

use super::files::FoundSegments;
use crate::error::{Error, Result};
use crate::log::reader::{Buffer, Found, Reader};
use crate::log::replay::{Tails, replay};
use crate::log::segment::{self, FILE_HEADER};
use crate::log::staging::LeftBehind;
use crate::manifest::Last;
use crate::position::{Position, Tag};
use crate::record::{Kind, Record};
use crate::stream::{Point, Stream};
use crate::version::{Generation, TableVersion};

pub(super) struct Replayed {
    pub(super) tails: Tails,
    /// The highest sequence that was seen, be it a copy's.
    pub(super) highest: u64,
}

/// Fills the L0s with what the levels do not have.
pub(super) fn replay_log(
    found: &FoundSegments,
    dir: &Path,
    last: &Last,
    left: &LeftBehind,
    tables: &[Option<Arc<TableVersion>>],
    generation: &Generation,
) -> Result<Replayed> {
    let (state, log_dir) = (&last.state, dir.join(super::LOG));
    let segments = &found.segments;
    let covers = state.covers;
    let mut highest = covers.sequence;
    let mut take = |point: Point, record: &Record<'_>| {
        let header = record.header;
        highest = highest.max(header.sequence);
        if header.sequence <= covers.sequence {
            return Ok(());
        }
        let Some(table) = tables.get(header.table as usize) else {
            // A table is in the manifest, durably, before anything is written to it.
            return Err(last.is_not_last(dir, "the log has records of a table that is not told of"));
        };
        // Of one that was dropped nothing counts.
        if let Some(l0) = generation.l0(header.table).filter(|_| table.is_some()) {
            let tombstone = header.kind == Kind::Delete;
            let tag = Tag::of_key(record.key);
            let position = Position::new(point.segment, point.offset, tombstone, tag);
            // SAFETY: nobody else has this generation yet.
            unsafe {
                let size = header.record_len() as u32;
                l0.insert(record.key, header.sequence, position, size);
            }
        }
        Ok(())
    };
    // Copies first: a copy says what was true at its sequence, and nothing of what is replayed behind
    // it, of the same key, came before it.
    let mut buffer = Buffer::default();
    for segment in segments.iter().filter(|segment| segment.stream == Stream::Copies) {
        let covered = covers.places.copies;
        let is_covered = segment.id < covered.segment;
        if is_covered && segment.end().is_some() {
            continue;
        }
        let from = if segment.id == covered.segment {
            covered.offset.max(FILE_HEADER)
        } else {
            FILE_HEADER
        };
        let known_end = segment.end();
        let to = known_end.unwrap_or(segment.capacity() as u32);
        let mut reader = Reader::new(segment, from, to, &mut buffer);
        while let Some(Found { offset, record, .. }) = reader.next()? {
            if matches!(record.header.kind, Kind::Put | Kind::Delete) {
                take(Point { segment: segment.id, offset }, &record)?;
            }
        }
        let end = reader.at();
        let synced = state.segment(segment.id);
        if known_end.is_some_and(|known| end < known)
            || synced.is_some_and(|known| end < known.synced)
        {
            return Err(segment.damaged(end, "a record is not what was written"));
        }
        segment.set_written(end);
        segment.complete(end);
    }
    let synced = state.synced.max(left.synced);
    let missing = |id| {
        let why = found.broken.get(&id).map(Error::again);
        why.unwrap_or_else(|| {
            Error::damaged(&log_dir.join(segment::name(id)), 0, "the file is missing")
        })
    };
    let tails = replay(covers, synced, &left.slots, segments, missing, take)?;
    Ok(Replayed { tails, highest: highest.max(tails.sequence) })
}
