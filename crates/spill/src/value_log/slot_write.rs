//! Writes of staged bytes to their segments.

use std::sync::Arc;

use super::segment::Segment;
use crate::fs::BLOCK_SIZE;
use crate::stream::LogPosition;

/// Bytes `from..to` of a slot that belong at `offset` of a segment.
#[derive(Clone)]
pub(crate) struct SlotWrite {
    pub(crate) segment: Arc<Segment>,
    pub(crate) slot: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) offset: u32,
    /// The slot gets no more data.
    pub(crate) is_last: bool,
    pub(crate) write_path: WritePath,
}

/// How a slot is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WritePath {
    /// Through the page cache: it will probably be read.
    Cached,
    /// Direct I/O, if the file system supports it.
    Direct,
    /// Through the page cache unless that is slow.
    Adaptive,
}

impl SlotWrite {
    pub(super) fn begin(&self) -> LogPosition {
        LogPosition { segment: self.segment.id, offset: self.offset }
    }

    /// The first `max_bytes` bytes, rounded up to a page, or all of it.
    pub(super) fn part(&self, max_bytes: usize) -> SlotWrite {
        let end = (self.offset as usize + max_bytes).next_multiple_of(BLOCK_SIZE);
        let to = self.to.min(self.from + (end - self.offset as usize));
        SlotWrite { to, ..self.clone() }
    }

    /// Its end in the segment.
    pub(super) fn end(&self) -> u32 {
        self.offset + (self.to - self.from) as u32
    }
}
