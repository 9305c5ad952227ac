//! The one place where records are appended; whoever holds it is the writer.

use std::sync::Arc;

use super::flush::Flusher;
use super::segment::{FILE_HEADER, Segment};
use super::staging::{CHUNK, Filling, Staging};
use super::stream_end::{MARK_LEN, MakeSegment, SKIP_LEN, StreamEnd};
use crate::entering::Batch;
use crate::error::Result;
use crate::options::CachedWrites;
use crate::record::BARE;
use crate::stream::{Places, Point, Stream};
use crate::updates::Draw;

/// The ends of the streams that writers write.
pub(crate) struct Writer {
    main: StreamEnd,
    hot: StreamEnd,
    flusher: Arc<Flusher>,
    /// The last sequence that was given away.
    pub(crate) sequence: u64,
    /// Where the copies' stream began its last batch; those behind later sequences come later.
    pub(crate) copies_begin: Point,
    /// Copies that are entered with the next writes.
    pub(crate) entering: Option<Batch>,
    /// Bytes of the L0s that are being filled.
    pub(crate) memory: usize,
    pub(crate) since_freeze: SinceFreeze,
    /// Of the keys that are new to an L0.
    pub(crate) draw: Draw,
}

/// What went into the log since the last freeze.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SinceFreeze {
    pub(crate) bytes: u64,
    /// Bytes of records in the same L0 that they made dead.
    pub(crate) replaced: u64,
    /// After so many bytes the garbage among them was weighed.
    pub(crate) told: u64,
}

/// Room for records at a place of the log.
pub(crate) struct Room<'a> {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) bytes: &'a mut [u8],
}

impl Writer {
    /// Begins with an empty segment of each stream. With `at_once` every record goes to its segment
    /// directly; with `has_thread` someone calls [`Flusher::run`].
    pub(crate) fn new(
        main: Arc<Segment>,
        hot: Arc<Segment>,
        staging: &Arc<Staging>,
        sequence: u64,
        at_once: bool,
        has_thread: bool,
        caching: CachedWrites,
    ) -> Writer {
        let limit = if at_once { 0 } else { Writer::longest_staged(main.capacity()) };
        let flusher = Arc::new(Flusher::new(Arc::clone(staging)));
        let end_of = |slot, segment: Arc<Segment>| {
            let begin = (segment.id, FILE_HEADER);
            let filling = Filling::new(Arc::clone(staging), slot, begin, limit, caching);
            StreamEnd::new(segment, filling, Arc::clone(&flusher), has_thread)
        };
        Writer {
            main: end_of(0, main),
            hot: end_of(1, hot),
            flusher,
            sequence,
            copies_begin: Point::default(),
            entering: None,
            memory: 0,
            since_freeze: SinceFreeze::default(),
            draw: Draw::default(),
        }
    }

    pub(crate) fn flusher(&self) -> &Arc<Flusher> {
        &self.flusher
    }

    /// What is written now goes to new L0s.
    pub(crate) fn rotated(&mut self) {
        self.memory = 0;
        self.since_freeze = SinceFreeze::default();
    }

    /// The longest record that goes through a slot to a segment of so many bytes.
    pub(crate) fn longest_staged(segment: usize) -> usize {
        CHUNK.min(segment / 8)
    }

    /// The most that records which belong together may take in a segment of so many bytes.
    pub(crate) fn longest(segment: usize) -> usize {
        segment - FILE_HEADER as usize - BARE - MARK_LEN
    }

    /// Where the next records go; nothing is said of copies.
    pub(crate) fn places(&self) -> Places {
        Places { main: self.main.point(), hot: self.hot.point(), ..Places::default() }
    }

    /// A record that failed to be written may turn up at the next opening.
    pub(crate) fn is_torn(&self) -> bool {
        self.main.is_torn || self.hot.is_torn
    }

    /// Copies have a writer of their own, and no end here.
    fn end(&mut self, stream: Stream) -> &mut StreamEnd {
        debug_assert_ne!(stream, Stream::Copies);
        if stream == Stream::Hot { &mut self.hot } else { &mut self.main }
    }

    /// Makes sure that there is [`Writer::room`] for `len` bytes, at most [`Writer::longest`]; they
    /// count when they are committed.
    ///
    /// # Errors
    /// If a chunk or a new segment cannot be written; then nothing has changed, and it can be
    /// tried again.
    pub(crate) fn reserve(
        &mut self,
        stream: Stream,
        len: usize,
        make: MakeSegment<'_>,
    ) -> Result<()> {
        self.end(stream).reserve(len, make)
    }

    /// The room that was reserved.
    pub(crate) fn room(&mut self, stream: Stream, len: usize) -> Room<'_> {
        let end = self.end(stream);
        let Point { segment, offset } = end.point();
        Room { segment, offset, bytes: end.room(len) }
    }

    /// What was put into the room is part of the log now; `overhead` of its bytes nothing will
    /// ever refer to.
    ///
    /// # Errors
    /// If a record that goes to its segment directly cannot be written; then nothing has changed,
    /// unless it [`Writer::is_torn`].
    pub(crate) fn commit(&mut self, stream: Stream, len: usize, overhead: usize) -> Result<()> {
        self.end(stream).commit(len, overhead)
    }

    /// The length of what [`Writer::set_aside`] appends to the main stream.
    pub(crate) const SKIP: usize = SKIP_LEN;

    /// Sets so many sequences aside that are no write's, and says so in the log; the first of them.
    ///
    /// # Errors
    /// Those of [`Writer::commit`].
    pub(crate) fn set_aside(&mut self, count: u64) -> Result<u64> {
        let first = self.sequence + 1;
        self.main.append_skip(first, count)?;
        self.sequence += count;
        Ok(first)
    }

    /// Completes the current segments; the begin of the next ones.
    pub(crate) fn end_segments(&mut self, make: MakeSegment<'_>) -> Result<Places> {
        for stream in Stream::WRITTEN {
            self.end(stream).next_segment(make)?;
        }
        Ok(self.places())
    }

    /// Everything up to here is on its way to its segment: [`Flusher::flush_to`].
    pub(crate) fn push(&mut self) -> Places {
        for stream in Stream::WRITTEN {
            self.end(stream).push();
        }
        self.places()
    }

    /// Hands over the segments that have to be synced for all up to here to be durable, once
    /// [`Flusher::flush_to`] has written it to them.
    pub(crate) fn hand_over_unsynced(&mut self) -> (Places, [Vec<Arc<Segment>>; 2]) {
        let segments = Stream::WRITTEN.map(|stream| self.end(stream).hand_over_unsynced());
        (self.places(), segments)
    }

    /// They were not synced.
    pub(crate) fn take_back_unsynced(&mut self, segments: [Vec<Arc<Segment>>; 2]) {
        for (stream, segments) in Stream::WRITTEN.into_iter().zip(segments) {
            self.end(stream).take_back_unsynced(segments);
        }
    }

    pub(crate) fn synced(&mut self, places: Places) {
        for stream in Stream::WRITTEN {
            self.end(stream).synced(places);
        }
    }
}
