//! What the collector keeps between two rounds.

use std::sync::Arc;

use crate::value_log::Segment;
use crate::value_log::direct_io::DirectWriter;
use crate::value_log::reader::ReadBuffer;

/// State of the collector: where the copies go.
#[derive(Default)]
pub(crate) struct GarbageCollector {
    pub(crate) segment: Option<Arc<Segment>>,
    pub(crate) direct_writer: DirectWriter,
    /// Buffer for reading segments.
    pub(crate) buffer: ReadBuffer,
}

impl GarbageCollector {
    /// Starts a new segment for the next copies.
    pub(crate) fn end_segment(&mut self) -> Option<Arc<Segment>> {
        self.direct_writer = DirectWriter::default();
        self.segment.take()
    }
}
