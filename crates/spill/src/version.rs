//! What a store consists of at one moment. A version never changes but for the L0 that is being
//! written; who holds one can read from it for as long as it likes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::l0::{Blocks, L0};
use crate::level::Level;
use crate::level::merge::Records;
use crate::log::{Cold, Staging};
use crate::position::{Position, Tag};
use crate::prefetch;
use crate::record::{Kind, Record};
use crate::segments::Segments;
use crate::stream::Places;

/// The number of a table; never given twice.
pub(crate) type TableId = u32;

#[derive(Clone)]
pub(crate) struct Version {
    pub(crate) active: Arc<Generation>,
    /// The newest first.
    pub(crate) frozen: Vec<Arc<Generation>>,
    /// By the table's number; None: dropped, or never made.
    pub(crate) tables: Vec<Option<Arc<TableVersion>>>,
    pub(crate) segments: Segments,
    /// What of the log the levels have taken in.
    pub(crate) covers: Covers,
    /// Bytes of the log that upper levels made dead in lower ones, by estimate: nobody else knows of
    /// them before these are merged.
    pub(crate) hidden_in_levels: u64,
    pub(crate) cold: Cold,
}

/// The L0s of all tables that were filled in the same time.
pub(crate) struct Generation {
    /// By the table's number; a table that came later has none.
    pub(crate) l0s: Vec<Arc<L0>>,
    /// Known once it is frozen.
    pub(crate) covers: Option<Covers>,
    /// Bytes of the log that its records made dead, those in levels by estimate; nobody else knows
    /// of them before it is merged. What is being written is told now and then.
    pub(crate) hidden: AtomicU64,
}

/// What of the log a generation and all before it have taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Covers {
    /// All sequences up to this.
    pub(crate) sequence: u64,
    /// Those behind `sequence` are in each stream from here on.
    pub(crate) places: Places,
}

pub(crate) struct TableVersion {
    pub(crate) name: String,
    /// The newest first; None: empty.
    pub(crate) levels: Vec<Option<Arc<Level>>>,
}

impl Generation {
    pub(crate) fn new(tables: usize, blocks: &Arc<Blocks>) -> Generation {
        let l0s = (0..tables).map(|_| Arc::new(L0::new(blocks))).collect();
        Generation { l0s, covers: None, hidden: AtomicU64::new(0) }
    }

    #[inline]
    pub(crate) fn l0(&self, table: TableId) -> Option<&Arc<L0>> {
        self.l0s.get(table as usize)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.l0s.iter().map(|l0| l0.bytes()).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.l0s.iter().all(|l0| l0.is_empty())
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

/// What a look at a position found.
pub(crate) enum Look<R> {
    Found(R),
    /// The version does not have the segment.
    Gone,
}

impl Version {
    pub(crate) fn table(&self, table: TableId) -> Option<&Arc<TableVersion>> {
        self.tables.get(table as usize)?.as_ref()
    }

    /// Calls `seen` with the record at a position, checked if `verify` says so.
    #[inline]
    pub(crate) fn look<R>(
        &self,
        staging: &Staging,
        position: Position,
        verify: bool,
        scratch: &mut Vec<u8>,
        seen: impl FnOnce(&Record<'_>) -> R,
    ) -> Result<Look<R>> {
        self.look_if(staging, position, |_| verify, scratch, seen)
    }

    /// The same, where the record says whether it is checked.
    #[inline]
    pub(crate) fn look_if<R>(
        &self,
        staging: &Staging,
        position: Position,
        verify: impl FnOnce(&Record<'_>) -> bool,
        scratch: &mut Vec<u8>,
        seen: impl FnOnce(&Record<'_>) -> R,
    ) -> Result<Look<R>> {
        let Some(segment) = self.segments.get(position.segment()) else { return Ok(Look::Gone) };
        let offset = position.offset();
        let staged = offset >= segment.written() && staging.copy(segment.id, offset, scratch);
        let (bytes, record) = if staged {
            (scratch.as_slice(), Record::peek(scratch))
        } else if offset < segment.written() {
            // In the file from the begin, or since it left its slot a moment ago.
            segment.record(offset, self.cold, scratch)?
        } else {
            return Err(segment.damaged(offset, "the position is behind the end of the log"));
        };
        let record = record
            .filter(|record| matches!(record.header.kind, Kind::Put | Kind::Delete))
            .filter(|record| !verify(record) || record.is_right(bytes, (segment.id, offset)));
        match record {
            Some(record) => {
                prefetch::note_record(record.header.record_len());
                Ok(Look::Found(seen(&record)))
            }
            None => Err(segment.damaged(offset, "the record is not what was written")),
        }
    }

    /// Calls `seen` with the record at a position for its key, where that decides what becomes of other
    /// records. The key has to be the one that the position was made for, by its tag: a wrong one would
    /// be taken for another key, and what it hides or what lies behind it would be lost. The value is not
    /// read: what is wrong with that is told to who wants it, and does not hinder its being replaced.
    #[inline]
    pub(crate) fn key_at<R>(
        &self,
        staging: &Staging,
        position: Position,
        scratch: &mut Vec<u8>,
        seen: impl FnOnce(&Record<'_>) -> R,
    ) -> Result<Look<R>> {
        let mut seen = Some(seen);
        let mut see = |record: &Record<'_>| {
            let is_right = position.may_be(Tag::of_key(record.key));
            seen.take().filter(|_| is_right).map(|seen| seen(record))
        };
        let segment = self.segments.get(position.segment());
        let looked = match (self.look(staging, position, false, scratch, &mut see), segment) {
            // It may be the value that cannot be read.
            (Err(Error::Io { .. }), Some(segment)) => {
                let record = segment.without_value(position.offset(), scratch)?;
                Look::Found(record.and_then(|record| see(&record)))
            }
            (looked, _) => looked?,
        };
        match (looked, segment) {
            (Look::Found(Some(found)), _) => Ok(Look::Found(found)),
            (Look::Found(None), Some(segment)) => {
                Err(segment.damaged(position.offset(), "the key is not what was written"))
            }
            _ => Ok(Look::Gone),
        }
    }

    /// Asks the processor for the begin of the record at a position: its head, and most keys.
    #[inline]
    pub(crate) fn prefetch_begin(&self, position: Position) {
        if let Some(segment) = self.segments.get(position.segment()) {
            segment.prefetch(position.offset(), 1);
        }
    }

    /// Asks the processor for all of the record at a position.
    #[inline]
    pub(crate) fn prefetch(&self, position: Position) {
        if let Some(segment) = self.segments.get(position.segment()) {
            segment.prefetch(position.offset(), prefetch::record_lines());
        }
    }

    pub(crate) fn log_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes()).sum()
    }

    pub(crate) fn dead_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.dead()).sum()
    }

    /// What is dead and not known to be, by estimate.
    pub(crate) fn hidden_bytes(&self) -> u64 {
        let generations = self.frozen.iter().chain([&self.active]);
        let in_l0s: u64 = generations.map(|generation| generation.hidden()).sum();
        in_l0s + self.hidden_in_levels
    }
}

/// A version and the staging of its log: all that is needed to read records.
pub(crate) struct LogOf<'a> {
    pub(crate) version: &'a Version,
    pub(crate) staging: &'a Staging,
}

impl Records for LogOf<'_> {
    fn look<R>(&self, position: Position, seen: impl FnOnce(&[u8]) -> R) -> Result<(R, u32)> {
        let mut scratch = Vec::new();
        let looked = self.version.key_at(self.staging, position, &mut scratch, |record| {
            (seen(record.key), record.header.record_len() as u32)
        })?;
        match looked {
            Look::Found(found) => Ok(found),
            Look::Gone => {
                let name = crate::log::segment::name(position.segment());
                let other = self.version.segments.iter().next();
                let path =
                    other.map_or(name.clone().into(), |other| other.path().with_file_name(name));
                let what = "the segment is referred to and not there";
                Err(Error::damaged(&path, position.offset().into(), what))
            }
        }
    }

    fn ask(&self, position: Position) {
        self.version.prefetch_begin(position);
    }

    fn is_gone(&self, position: Position) -> bool {
        self.version.segments.get(position.segment()).is_none()
    }
}
