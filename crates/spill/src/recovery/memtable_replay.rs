//! Replays the part of the log that the levels lack.

use std::path::Path;
use std::sync::Arc;

use super::files::LogSegments;
use crate::error::{Error, Result};
use crate::manifest::LatestState;
use crate::record::{Record, RecordKind};
use crate::stream::{LogPosition, Stream};
use crate::value_log::reader::{LocatedRecord, ReadBuffer, SegmentReader};
use crate::value_log::replay::{LogEnd, replay};
use crate::value_log::segment::{self, FILE_HEADER_LEN};
use crate::value_log::staging::StagingLeftovers;
use crate::value_pointer::{Tag, ValuePointer};
use crate::version::{MemtableSet, TableVersion};

pub(super) struct Replayed {
    pub(super) end: LogEnd,
    /// The highest sequence seen, including those of copies.
    pub(super) highest: u64,
}

/// Fills the memtables with what the levels lack.
pub(super) fn replay_log(
    found: &LogSegments,
    dir: &Path,
    last: &LatestState,
    leftovers: &StagingLeftovers,
    tables: &[Option<Arc<TableVersion>>],
    memtables: &MemtableSet,
) -> Result<Replayed> {
    let (state, log_dir) = (&last.state, dir.join(super::LOG));
    let segments = &found.segments;
    let coverage = state.coverage;
    let mut highest = coverage.sequence;
    let mut insert = |position: LogPosition, record: &Record<'_>| {
        let header = record.header;
        highest = highest.max(header.sequence);
        if header.sequence <= coverage.sequence {
            return Ok(());
        }
        let Some(table) = tables.get(header.table as usize) else {
            // A table is durable in the manifest before anything is written to it.
            return Err(last.stale_error(dir, "the log has records of an unknown table"));
        };
        // Records of a dropped table are ignored.
        if let Some(memtable) = memtables.memtable(header.table).filter(|_| table.is_some()) {
            let tombstone = header.kind == RecordKind::Delete;
            let tag = Tag::of_key(record.key);
            let pointer = ValuePointer::new(position.segment, position.offset, tombstone, tag);
            // SAFETY: nobody else has these memtables yet.
            unsafe {
                let size = header.record_len() as u32;
                memtable.insert(record.key, header.sequence, pointer, size);
            }
        }
        Ok(())
    };
    // Copies come first: a copy is valid as of its sequence, and no older record of the same key is
    // replayed after it.
    let mut buffer = ReadBuffer::default();
    for segment in segments.iter().filter(|segment| segment.stream == Stream::Copies) {
        let covered = coverage.positions.copies;
        let is_covered = segment.id < covered.segment;
        if is_covered && segment.end().is_some() {
            continue;
        }
        let from = if segment.id == covered.segment {
            covered.offset.max(FILE_HEADER_LEN)
        } else {
            FILE_HEADER_LEN
        };
        let known_end = segment.end();
        let to = known_end.unwrap_or(segment.capacity() as u32);
        let mut reader = SegmentReader::new(segment, from, to, &mut buffer);
        while let Some(LocatedRecord { offset, record, .. }) = reader.next()? {
            if matches!(record.header.kind, RecordKind::Put | RecordKind::Delete) {
                insert(LogPosition { segment: segment.id, offset }, &record)?;
            }
        }
        let end = reader.offset();
        let synced = state.segment(segment.id);
        if known_end.is_some_and(|known| end < known)
            || synced.is_some_and(|known| end < known.synced)
        {
            return Err(segment.damaged(end, "a record is not what was written"));
        }
        segment.set_written(end);
        segment.complete(end);
    }
    let synced = state.synced.max(leftovers.synced);
    let missing = |id| {
        let why = found.broken.get(&id).map(Error::duplicate);
        why.unwrap_or_else(|| {
            Error::damaged(&log_dir.join(segment::name(id)), 0, "the file is missing")
        })
    };
    let end = replay(coverage, synced, &leftovers.slots, segments, missing, insert)?;
    Ok(Replayed { end, highest: highest.max(end.sequence) })
}
