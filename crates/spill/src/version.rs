//! Versions: what a store consists of at one moment. A version never changes except for its active
//! memtables. A reader may use one for as long as it likes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::level::Level;
use crate::level::merge::RecordReader;
use crate::memtable::{BlockPool, Memtable};
use crate::prefetch;
use crate::record::{Record, RecordKind};
use crate::segment_map::SegmentMap;
use crate::stream::StreamPositions;
use crate::value_log::{ColdReadMode, Staging};
use crate::value_pointer::{Tag, ValuePointer};

/// Number of a table, never reused.
pub(crate) type TableId = u32;

#[derive(Clone)]
pub(crate) struct Version {
    pub(crate) active: Arc<MemtableSet>,
    /// Newest first.
    pub(crate) frozen: Vec<Arc<MemtableSet>>,
    /// By table number; `None`: dropped or never created.
    pub(crate) tables: Vec<Option<Arc<TableVersion>>>,
    pub(crate) segments: SegmentMap,
    /// The part of the log that the levels contain.
    pub(crate) coverage: Coverage,
    /// Estimated log bytes that upper levels made dead in lower ones; unknown exactly until these
    /// are compacted.
    pub(crate) hidden_in_levels: u64,
    pub(crate) cold_read_mode: ColdReadMode,
}

/// The memtables of all tables of one period.
pub(crate) struct MemtableSet {
    /// By table number; a later table has none.
    pub(crate) memtables: Vec<Arc<Memtable>>,
    /// Known once it is frozen.
    pub(crate) coverage: Option<Coverage>,
    /// Estimated log bytes that its records made dead, unknown exactly until its compaction.
    /// Updated from time to time while it is active.
    pub(crate) hidden: AtomicU64,
}

/// The part of the log that a memtable set and all before it contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Coverage {
    /// All sequences up to this.
    pub(crate) sequence: u64,
    /// Later sequences are behind these positions.
    pub(crate) positions: StreamPositions,
}

pub(crate) struct TableVersion {
    pub(crate) name: String,
    /// Newest first; `None`: empty.
    pub(crate) levels: Vec<Option<Arc<Level>>>,
}

impl MemtableSet {
    pub(crate) fn new(tables: usize, blocks: &Arc<BlockPool>) -> MemtableSet {
        let memtables = (0..tables).map(|_| Arc::new(Memtable::new(blocks))).collect();
        MemtableSet { memtables, coverage: None, hidden: AtomicU64::new(0) }
    }

    #[inline]
    pub(crate) fn memtable(&self, table: TableId) -> Option<&Arc<Memtable>> {
        self.memtables.get(table as usize)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memtables.iter().map(|memtable| memtable.bytes()).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.memtables.iter().all(|memtable| memtable.is_empty())
    }

    pub(crate) fn hidden(&self) -> u64 {
        self.hidden.load(Ordering::Relaxed)
    }
}

impl TableVersion {
    /// Whether keys may be in several levels.
    pub(crate) fn has_upper_levels(&self) -> bool {
        self.levels.iter().rev().skip(1).any(Option::is_some)
    }
}

/// Result of reading a record by its pointer.
pub(crate) enum Lookup<R> {
    Found(R),
    /// The version does not have the segment.
    SegmentGone,
}

impl Version {
    pub(crate) fn table(&self, table: TableId) -> Option<&Arc<TableVersion>> {
        self.tables.get(table as usize)?.as_ref()
    }

    /// Calls `visit` with the record at a pointer, verified if `verify` is set.
    #[inline]
    pub(crate) fn read_record<R>(
        &self,
        staging: &Staging,
        pointer: ValuePointer,
        verify: bool,
        scratch: &mut Vec<u8>,
        visit: impl FnOnce(&Record<'_>) -> R,
    ) -> Result<Lookup<R>> {
        self.read_record_if(staging, pointer, |_| verify, scratch, visit)
    }

    /// The same, where the record decides whether it is verified.
    #[inline]
    pub(crate) fn read_record_if<R>(
        &self,
        staging: &Staging,
        pointer: ValuePointer,
        verify: impl FnOnce(&Record<'_>) -> bool,
        scratch: &mut Vec<u8>,
        visit: impl FnOnce(&Record<'_>) -> R,
    ) -> Result<Lookup<R>> {
        let Some(segment) = self.segments.get(pointer.segment()) else {
            return Ok(Lookup::SegmentGone);
        };
        let offset = pointer.offset();
        let staged = offset >= segment.written() && staging.copy(segment.id, offset, scratch);
        let (bytes, record) = if staged {
            (scratch.as_slice(), Record::parse_unchecked(scratch))
        } else if offset < segment.written() {
            // It is in the file, maybe since it left its slot a moment ago.
            segment.record(offset, self.cold_read_mode, scratch)?
        } else {
            return Err(segment.damaged(offset, "the pointer is beyond the end of the log"));
        };
        let record = record
            .filter(|record| matches!(record.header.kind, RecordKind::Put | RecordKind::Delete))
            .filter(|record| {
                !verify(record) || record.has_valid_checksum(bytes, (segment.id, offset))
            });
        match record {
            Some(record) => {
                prefetch::note_record(record.header.record_len());
                Ok(Lookup::Found(visit(&record)))
            }
            None => Err(segment.damaged(offset, "the record is not what was written")),
        }
    }

    /// Calls `visit` with the record at a pointer for its key, where that decides about other
    /// records. The key must match the pointer's tag: a damaged key would be taken for another one,
    /// and lose what it hides. The value is not verified: a damaged value is reported to its
    /// reader, and can still be replaced.
    #[inline]
    pub(crate) fn read_key<R>(
        &self,
        staging: &Staging,
        pointer: ValuePointer,
        scratch: &mut Vec<u8>,
        visit: impl FnOnce(&Record<'_>) -> R,
    ) -> Result<Lookup<R>> {
        let mut visit = Some(visit);
        let mut visit_checked = |record: &Record<'_>| {
            let is_right = pointer.may_match(Tag::of_key(record.key));
            visit.take().filter(|_| is_right).map(|visit| visit(record))
        };
        let segment = self.segments.get(pointer.segment());
        let lookup =
            match (self.read_record(staging, pointer, false, scratch, &mut visit_checked), segment)
            {
                // Perhaps only the value is unreadable.
                (Err(Error::Io { .. }), Some(segment)) => {
                    let record = segment.read_key_only(pointer.offset(), scratch)?;
                    Lookup::Found(record.and_then(|record| visit_checked(&record)))
                }
                (lookup, _) => lookup?,
            };
        match (lookup, segment) {
            (Lookup::Found(Some(found)), _) => Ok(Lookup::Found(found)),
            (Lookup::Found(None), Some(segment)) => {
                Err(segment.damaged(pointer.offset(), "the key is not what was written"))
            }
            _ => Ok(Lookup::SegmentGone),
        }
    }

    /// Prefetches the start of a record: its header, and most keys.
    #[inline]
    pub(crate) fn prefetch_begin(&self, pointer: ValuePointer) {
        if let Some(segment) = self.segments.get(pointer.segment()) {
            segment.prefetch(pointer.offset(), 1);
        }
    }

    /// Prefetches a whole record.
    #[inline]
    pub(crate) fn prefetch(&self, pointer: ValuePointer) {
        if let Some(segment) = self.segments.get(pointer.segment()) {
            segment.prefetch(pointer.offset(), prefetch::record_lines());
        }
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes()).sum()
    }

    pub(crate) fn dead_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.dead()).sum()
    }

    /// Estimated dead bytes that are not known exactly.
    pub(crate) fn hidden_bytes(&self) -> u64 {
        let memtable_sets = self.frozen.iter().chain([&self.active]);
        let in_memtables: u64 = memtable_sets.map(|memtable_set| memtable_set.hidden()).sum();
        in_memtables + self.hidden_in_levels
    }
}

/// A version with the staging of its log: all that reading records needs.
pub(crate) struct LogView<'a> {
    pub(crate) version: &'a Version,
    pub(crate) staging: &'a Staging,
}

impl RecordReader for LogView<'_> {
    fn read_key<R>(
        &self,
        pointer: ValuePointer,
        visit: impl FnOnce(&[u8]) -> R,
    ) -> Result<(R, u32)> {
        let mut scratch = Vec::new();
        let lookup = self.version.read_key(self.staging, pointer, &mut scratch, |record| {
            (visit(record.key), record.header.record_len() as u32)
        })?;
        match lookup {
            Lookup::Found(found) => Ok(found),
            Lookup::SegmentGone => {
                let name = crate::value_log::segment::name(pointer.segment());
                let other = self.version.segments.iter().next();
                let path =
                    other.map_or(name.clone().into(), |other| other.path().with_file_name(name));
                let what = "the segment is referenced but missing";
                Err(Error::damaged(&path, pointer.offset().into(), what))
            }
        }
    }

    fn prefetch(&self, pointer: ValuePointer) {
        self.version.prefetch_begin(pointer);
    }

    fn is_segment_gone(&self, pointer: ValuePointer) -> bool {
        self.version.segments.get(pointer.segment()).is_none()
    }
}
