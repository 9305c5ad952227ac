//! The one place where records are appended; whoever holds it is the writer.

use std::sync::Arc;

use super::flush::Flusher;
use super::segment::{FILE_HEADER_LEN, Segment};
use super::staging::{SLOT_LEN, SlotWriter, Staging};
use super::stream_writer::{CreateSegment, SEQUENCE_GAP_LEN, SYNC_MARK_LEN, StreamWriter};
use crate::error::Result;
use crate::index_insertion::CopyBatch;
use crate::options::CachedWrites;
use crate::overwrites::KeySampler;
use crate::record::EMPTY_RECORD_LEN;
use crate::stream::{LogPosition, Stream, StreamPositions};

/// The ends of the streams that writers write.
pub(crate) struct LogWriter {
    main: StreamWriter,
    hot: StreamWriter,
    flusher: Arc<Flusher>,
    /// The last sequence that was given away.
    pub(crate) sequence: u64,
    /// Where the copies' stream began its last batch; those behind later sequences come later.
    pub(crate) copies_begin: LogPosition,
    /// Copies that are entered with the next writes.
    pub(crate) pending_copies: Option<CopyBatch>,
    /// Bytes of the L0s that are being filled.
    pub(crate) memory: usize,
    pub(crate) since_freeze: SinceFreeze,
    /// Of the keys that are new to an L0.
    pub(crate) sampler: KeySampler,
}

/// What went into the log since the last freeze.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SinceFreeze {
    pub(crate) bytes: u64,
    /// Bytes of records in the same L0 that they made dead.
    pub(crate) replaced: u64,
    /// After so many bytes the garbage among them was weighed.
    pub(crate) delay_updated_at: u64,
}

/// Room for records at a place of the log.
pub(crate) struct ReservedSpace<'a> {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) bytes: &'a mut [u8],
}

impl LogWriter {
    /// Begins with an empty segment of each stream. With `unstaged` every record goes to its segment
    /// directly; with `has_thread` someone calls [`Flusher::run`].
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

    /// What is written now goes to new L0s.
    pub(crate) fn on_freeze(&mut self) {
        self.memory = 0;
        self.since_freeze = SinceFreeze::default();
    }

    /// The longest record that goes through a slot to a segment of so many bytes.
    pub(crate) fn max_staged_len(segment: usize) -> usize {
        SLOT_LEN.min(segment / 8)
    }

    /// The most that records which belong together may take in a segment of so many bytes.
    pub(crate) fn max_unit_len(segment: usize) -> usize {
        segment - FILE_HEADER_LEN as usize - EMPTY_RECORD_LEN - SYNC_MARK_LEN
    }

    /// Where the next records go; nothing is said of copies.
    pub(crate) fn positions(&self) -> StreamPositions {
        StreamPositions {
            main: self.main.position(),
            hot: self.hot.position(),
            ..StreamPositions::default()
        }
    }

    /// A record that failed to be written may turn up at the next opening.
    pub(crate) fn is_torn(&self) -> bool {
        self.main.is_torn || self.hot.is_torn
    }

    /// Copies have a writer of their own, and no end here.
    fn stream(&mut self, stream: Stream) -> &mut StreamWriter {
        debug_assert_ne!(stream, Stream::Copies);
        if stream == Stream::Hot { &mut self.hot } else { &mut self.main }
    }

    /// Makes sure that there is [`LogWriter::reserved`] for `len` bytes, at most [`LogWriter::max_unit_len`]; they
    /// count when they are committed.
    ///
    /// # Errors
    /// If a chunk or a new segment cannot be written; then nothing has changed, and it can be
    /// tried again.
    pub(crate) fn reserve(
        &mut self,
        stream: Stream,
        len: usize,
        create: CreateSegment<'_>,
    ) -> Result<()> {
        self.stream(stream).reserve(len, create)
    }

    /// The room that was reserved.
    pub(crate) fn reserved(&mut self, stream: Stream, len: usize) -> ReservedSpace<'_> {
        let writer = self.stream(stream);
        let LogPosition { segment, offset } = writer.position();
        ReservedSpace { segment, offset, bytes: writer.reserved(len) }
    }

    /// What was put into the room is part of the log now; `overhead` of its bytes nothing will
    /// ever refer to.
    ///
    /// # Errors
    /// If a record that goes to its segment directly cannot be written; then nothing has changed,
    /// unless it [`LogWriter::is_torn`].
    pub(crate) fn commit(&mut self, stream: Stream, len: usize, overhead: usize) -> Result<()> {
        self.stream(stream).commit(len, overhead)
    }

    /// The length of what [`LogWriter::reserve_sequences`] appends to the main stream.
    pub(crate) const SEQUENCE_GAP_LEN: usize = SEQUENCE_GAP_LEN;

    /// Sets so many sequences aside that are no write's, and says so in the log; the first of them.
    ///
    /// # Errors
    /// Those of [`LogWriter::commit`].
    pub(crate) fn reserve_sequences(&mut self, count: u64) -> Result<u64> {
        let first = self.sequence + 1;
        self.main.append_sequence_gap(first, count)?;
        self.sequence += count;
        Ok(first)
    }

    /// Completes the current segments; the begin of the next ones.
    pub(crate) fn seal_segments(&mut self, create: CreateSegment<'_>) -> Result<StreamPositions> {
        for stream in Stream::WRITTEN {
            self.stream(stream).next_segment(create)?;
        }
        Ok(self.positions())
    }

    /// Everything up to here is on its way to its segment: [`Flusher::flush_to`].
    pub(crate) fn push_staged(&mut self) -> StreamPositions {
        for stream in Stream::WRITTEN {
            self.stream(stream).push_staged();
        }
        self.positions()
    }

    /// Hands over the segments that have to be synced for all up to here to be durable, once
    /// [`Flusher::flush_to`] has written it to them.
    pub(crate) fn take_unsynced(&mut self) -> (StreamPositions, [Vec<Arc<Segment>>; 2]) {
        let segments = Stream::WRITTEN.map(|stream| self.stream(stream).take_unsynced());
        (self.positions(), segments)
    }

    /// They were not synced.
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
