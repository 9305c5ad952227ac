//! The streams of the log, and places in them.

/// What a segment is written by. Writers write two streams, under one lock and with one sequence:
/// segments of records that live equally long are full or empty, and little of them is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Main,
    /// Records of keys that were written lately, and so will be again.
    Hot,
    /// Written by the collector, which copies what still lives.
    Copies,
}

impl Stream {
    pub(crate) const ALL: [Stream; 3] = [Stream::Main, Stream::Hot, Stream::Copies];
    /// Those that writers write.
    pub(crate) const WRITTEN: [Stream; 2] = [Stream::Main, Stream::Hot];
}

/// A place in a stream: everything before it, in the order of the segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct LogPosition {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
}

/// A place in each stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StreamPositions {
    pub(crate) main: LogPosition,
    pub(crate) hot: LogPosition,
    pub(crate) copies: LogPosition,
}

impl StreamPositions {
    pub(crate) fn of(self, stream: Stream) -> LogPosition {
        match stream {
            Stream::Main => self.main,
            Stream::Hot => self.hot,
            Stream::Copies => self.copies,
        }
    }

    pub(crate) fn of_mut(&mut self, stream: Stream) -> &mut LogPosition {
        match stream {
            Stream::Main => &mut self.main,
            Stream::Hot => &mut self.hot,
            Stream::Copies => &mut self.copies,
        }
    }

    /// In each stream the later one.
    pub(crate) fn max(self, other: StreamPositions) -> StreamPositions {
        StreamPositions {
            main: self.main.max(other.main),
            hot: self.hot.max(other.hot),
            copies: self.copies.max(other.copies),
        }
    }

    /// Whether these lie before the others in no stream that writers write.
    pub(crate) fn include_writes(self, other: StreamPositions) -> bool {
        Stream::WRITTEN.into_iter().all(|stream| self.of(stream) >= other.of(stream))
    }
}
