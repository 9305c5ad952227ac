//! The streams of the log, and positions in them.

/// The stream that a segment belongs to. Writers write two streams, under one lock and one
/// sequence. Records of similar lifetime share segments, so these are mostly full or mostly empty
/// when collected, and little is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Main,
    /// Records of recently written keys, which will soon be overwritten.
    Hot,
    /// Live records copied by the collector.
    Copies,
}

impl Stream {
    pub(crate) const ALL: [Stream; 3] = [Stream::Main, Stream::Hot, Stream::Copies];
    /// The streams that writers write.
    pub(crate) const WRITTEN: [Stream; 2] = [Stream::Main, Stream::Hot];
}

/// A position in a stream, in the order of its segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct LogPosition {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
}

/// A position in each stream.
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

    /// The later position in each stream.
    pub(crate) fn max(self, other: StreamPositions) -> StreamPositions {
        StreamPositions {
            main: self.main.max(other.main),
            hot: self.hot.max(other.hot),
            copies: self.copies.max(other.copies),
        }
    }

    /// Whether these positions reach the others in every stream that writers write.
    pub(crate) fn include_writes(self, other: StreamPositions) -> bool {
        Stream::WRITTEN.into_iter().all(|stream| self.of(stream) >= other.of(stream))
    }
}
