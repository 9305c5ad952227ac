//! The log writer: the only place where writes are appended, behind one lock.

use std::sync::Arc;

use super::flush::Flusher;
use super::segment::{FILE_HEADER_LEN, Segment};
use super::staging::{SLOT_LEN, SlotWriter, Staging};
use super::stream_writer::{CreateSegment, SEQUENCE_GAP_LEN, SYNC_MARK_LEN, StreamWriter};
use crate::copy_batch::CopyBatch;
use crate::error::Result;
use crate::options::CachedWrites;
use crate::overwrite_estimate::KeySampler;
use crate::record::EMPTY_RECORD_LEN;
use crate::stream::{LogPosition, Stream, StreamPositions};

/// The ends of the streams that writers write.
pub(crate) struct LogWriter {
    main: StreamWriter,
    hot: StreamWriter,
    flusher: Arc<Flusher>,
    /// The last sequence in use.
    pub(crate) sequence: u64,
    /// Where the last batch in the copies' stream began; copies with later sequences follow it.
    pub(crate) copies_begin: LogPosition,
    /// Copies to insert along with the next writes.
    pub(crate) pending_copies: Option<CopyBatch>,
    /// Bytes of the active memtables.
    pub(crate) memory: usize,
    pub(crate) since_freeze: SinceFreeze,
    /// Samples keys that are new to a memtable.
    pub(crate) sampler: KeySampler,
}

/// Counters since the last freeze.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SinceFreeze {
    pub(crate) bytes: u64,
    /// Bytes of records replaced within the same memtable.
    pub(crate) replaced: u64,
    /// Value of `bytes` at the last update of the write delay.
    pub(crate) delay_updated_at: u64,
}

/// Reserved space in the log.
pub(crate) struct ReservedSpace<'a> {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) bytes: &'a mut [u8],
}

impl LogWriter {
    /// Starts with an empty segment of each stream. With `unstaged` every record goes to its
    /// segment directly; with `has_thread` a thread runs [`Flusher::run`].
    pub(crate) fn new(
        main: Arc<Segment>,
        hot: Arc<Segment>,
        staging: &Arc<Staging>,
        sequence: u64,
        unstaged: bool,
        has_thread: bool,
        caching: CachedWrites,
    ) -> LogWriter {
        let limit = if unstaged { 0 } else { LogWriter::max_staged_len(main.capacity()) };
        let flusher = Arc::new(Flusher::new(Arc::clone(staging)));
        let writer_for = |slot, segment: Arc<Segment>| {
            let begin = (segment.id, FILE_HEADER_LEN);
            let slot_writer = SlotWriter::new(Arc::clone(staging), slot, begin, limit, caching);
            StreamWriter::new(segment, slot_writer, Arc::clone(&flusher), has_thread)
        };
        LogWriter {
            main: writer_for(0, main),
            hot: writer_for(1, hot),
            flusher,
            sequence,
            copies_begin: LogPosition::default(),
            pending_copies: None,
            memory: 0,
            since_freeze: SinceFreeze::default(),
            sampler: KeySampler::default(),
        }
    }

    pub(crate) fn flusher(&self) -> &Arc<Flusher> {
        &self.flusher
    }

    /// Resets the counters: writes now go to new memtables.
    pub(crate) fn on_freeze(&mut self) {
        self.memory = 0;
        self.since_freeze = SinceFreeze::default();
    }

    /// The longest record that is staged, for this segment size.
    pub(crate) fn max_staged_len(segment: usize) -> usize {
        SLOT_LEN.min(segment / 8)
    }

    /// The most bytes that records of one unit may take, for this segment size.
    pub(crate) fn max_unit_len(segment: usize) -> usize {
        segment - FILE_HEADER_LEN as usize - EMPTY_RECORD_LEN - SYNC_MARK_LEN
    }

    /// Positions of the next records, without that of copies.
    pub(crate) fn positions(&self) -> StreamPositions {
        StreamPositions {
            main: self.main.position(),
            hot: self.hot.position(),
            ..StreamPositions::default()
        }
    }

    /// A record whose write failed may reappear at the next opening.
    pub(crate) fn is_torn(&self) -> bool {
        self.main.is_torn || self.hot.is_torn
    }

    /// Copies have a writer of their own.
    fn stream(&mut self, stream: Stream) -> &mut StreamWriter {
        debug_assert_ne!(stream, Stream::Copies);
        if stream == Stream::Hot { &mut self.hot } else { &mut self.main }
    }

    /// Ensures that [`LogWriter::reserved`] has `len` bytes, at most [`LogWriter::max_unit_len`].
    /// They count when they are committed.
    ///
    /// # Errors
    /// If a slot or a new segment cannot be written; nothing has changed then, and it can be
    /// retried.
    pub(crate) fn reserve(
        &mut self,
        stream: Stream,
        len: usize,
        create: CreateSegment<'_>,
    ) -> Result<()> {
        self.stream(stream).reserve(len, create)
    }

    /// The reserved space.
    pub(crate) fn reserved(&mut self, stream: Stream, len: usize) -> ReservedSpace<'_> {
        let writer = self.stream(stream);
        let LogPosition { segment, offset } = writer.position();
        ReservedSpace { segment, offset, bytes: writer.reserved(len) }
    }

    /// Makes the reserved space part of the log; nothing will ever refer to `overhead` of its
    /// bytes.
    ///
    /// # Errors
    /// If a direct record cannot be written; nothing has changed then, unless the writer
    /// [`LogWriter::is_torn`].
    pub(crate) fn commit(&mut self, stream: Stream, len: usize, overhead: usize) -> Result<()> {
        self.stream(stream).commit(len, overhead)
    }

    /// Length of what [`LogWriter::reserve_sequences`] appends to the main stream.
    pub(crate) const SEQUENCE_GAP_LEN: usize = SEQUENCE_GAP_LEN;

    /// Reserves sequences that belong to no write, and logs that; returns the first.
    ///
    /// # Errors
    /// Those of [`LogWriter::commit`].
    pub(crate) fn reserve_sequences(&mut self, count: u64) -> Result<u64> {
        let first = self.sequence + 1;
        self.main.append_sequence_gap(first, count)?;
        self.sequence += count;
        Ok(first)
    }

    /// Seals the current segments; returns the start of the next ones.
    pub(crate) fn seal_segments(&mut self, create: CreateSegment<'_>) -> Result<StreamPositions> {
        for stream in Stream::WRITTEN {
            self.stream(stream).next_segment(create)?;
        }
        Ok(self.positions())
    }

    /// Queues everything up to here for its segment: [`Flusher::flush_to`].
    pub(crate) fn push_staged(&mut self) -> StreamPositions {
        for stream in Stream::WRITTEN {
            self.stream(stream).push_staged();
        }
        self.positions()
    }

    /// The segments to sync to make everything up to here durable, once [`Flusher::flush_to`] has
    /// written it.
    pub(crate) fn take_unsynced(&mut self) -> (StreamPositions, [Vec<Arc<Segment>>; 2]) {
        let segments = Stream::WRITTEN.map(|stream| self.stream(stream).take_unsynced());
        (self.positions(), segments)
    }

    /// Lists them again after a failed sync.
    pub(crate) fn restore_unsynced(&mut self, segments: [Vec<Arc<Segment>>; 2]) {
        for (stream, segments) in Stream::WRITTEN.into_iter().zip(segments) {
            self.stream(stream).restore_unsynced(segments);
        }
    }

    pub(crate) fn note_synced(&mut self, positions: StreamPositions) {
        for stream in Stream::WRITTEN {
            self.stream(stream).note_synced(positions);
        }
    }
}
