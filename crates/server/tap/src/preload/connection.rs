//! The state of one connection: the positions in its two byte streams, and the arrival times of
//! unanswered requests.

use std::sync::atomic::{
    AtomicU8, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::layout::{Counter, Lane};
use crate::parse::{ParseLost, ParsedRequest, Position, SavedPosition};

/// States of a descriptor.
pub mod standing {
    /// Not examined yet; the state of zeroed memory.
    pub const UNKNOWN: u8 = 0;
    /// A connection that a client made; nothing was read from it yet.
    pub const FRESH: u8 = 1;
    /// A connection with parsed requests.
    pub const PARSED: u8 = 2;
    /// A connection with an unknown protocol.
    pub const OPAQUE: u8 = 3;
    /// Not timed: a file, a pipe, a datagram socket, a connection that the server made itself, a
    /// stream of messages.
    pub const IGNORED: u8 = 4;
}

/// Batches that can wait for their answers on one connection before they are merged.
///
/// Few, so that a connection takes four cache lines; servers answer a batch before they read many
/// more.
const WAITING: usize = 8;

/// The requests that one read completed.
#[repr(C)]
struct Batch {
    /// When they arrived, in ticks.
    arrived: AtomicU64,
    /// The number of unanswered ones.
    unanswered: AtomicU64,
}

/// One descriptor. Its reading side and its writing side are each used by one thread at a time: the
/// server ensures that. Two threads that read one connection at once would only cause wrong
/// numbers.
#[repr(C, align(64))]
pub struct Connection {
    standing: AtomicU8,
    /// Set by an answer that begins while its request is still arriving.
    early: AtomicU8,
    /// Batches ever added, by the reading side.
    put: AtomicU32,
    /// Batches ever removed, by the writing side.
    taken: AtomicU32,
    /// Opaque connections: when the newest unanswered bytes came; 0: none.
    opaque_since: AtomicU64,
    requests: SavedPosition,
    /// The first line is the reading side's, the second begins here.
    answers: Aligned<SavedPosition>,
    waiting: [Batch; WAITING],
}

#[repr(C, align(64))]
struct Aligned<T>(T);

const _: () = assert!(size_of::<Connection>() == 256);

/// The lane for intervals, and the length of a tick.
pub struct IntervalRecorder<'a, F> {
    pub lane: &'a Lane,
    /// Nanoseconds of so many ticks.
    pub ns: F,
}

impl Connection {
    /// One of [`standing`].
    #[inline]
    pub fn standing(&self) -> u8 {
        self.standing.load(Relaxed)
    }

    /// The descriptor was closed or changed its kind.
    pub fn set_standing(&self, standing: u8) {
        if standing == standing::FRESH {
            self.early.store(0, Relaxed);
            self.put.store(0, Relaxed);
            self.taken.store(0, Relaxed);
            self.opaque_since.store(0, Relaxed);
            self.requests.store(Position::START);
            self.answers.0.store(Position::START);
        }
        self.standing.store(standing, Relaxed);
    }

    /// The server read `pieces` from it. `now` is called last.
    #[inline]
    pub fn received<'b>(
        &self,
        lane: &Lane,
        pieces: impl Iterator<Item = &'b [u8]>,
        now: impl FnOnce() -> u64,
    ) -> u64 {
        if self.standing() == standing::FRESH {
            lane.add(Counter::Connections, 1);
            self.standing.store(standing::PARSED, Relaxed);
        }
        if self.standing() == standing::PARSED {
            match self.count_requests(pieces) {
                Ok(parsed) => return self.put_batch(lane, parsed, now),
                Err(ParseLost) => self.lose(lane),
            }
        }
        let arrived = now();
        // The interval starts at the last read before the answer.
        self.opaque_since.store(arrived.max(1), Release);
        arrived
    }

    #[inline]
    fn count_requests<'b>(
        &self,
        pieces: impl Iterator<Item = &'b [u8]>,
    ) -> Result<ParsedRequest, ParseLost> {
        let mut position = self.requests.load();
        let mut parsed = ParsedRequest::default();
        for piece in pieces {
            position.requests(piece, &mut parsed)?;
        }
        self.requests.store(position);
        Ok(parsed)
    }

    #[inline]
    fn put_batch(&self, lane: &Lane, parsed: ParsedRequest, now: impl FnOnce() -> u64) -> u64 {
        lane.add(Counter::Requests, u64::from(parsed.complete));
        if parsed.quiet > 0 {
            lane.add(Counter::Quiet, u64::from(parsed.quiet));
        }
        if parsed.stream {
            lane.add(Counter::Streams, 1);
            self.standing.store(standing::IGNORED, Relaxed);
            return now();
        }
        let mut expected = u64::from(parsed.complete.saturating_sub(parsed.quiet));
        if expected > 0 && self.early.load(Relaxed) != 0 {
            self.early.store(0, Relaxed);
            lane.add(Counter::Early, 1);
            expected -= 1;
        }
        if expected == 0 {
            return now();
        }
        lane.add(Counter::Batches, 1);
        let put = self.put.load(Relaxed);
        if put.wrapping_sub(self.taken.load(Acquire)) as usize >= WAITING {
            lane.add(Counter::Merged, 1);
            if let Some(newest) = self.batch(put.wrapping_sub(1)) {
                newest.unanswered.fetch_add(expected, Relaxed);
            }
            return now();
        }
        let arrived = now();
        if let Some(batch) = self.batch(put) {
            batch.arrived.store(arrived, Relaxed);
            batch.unanswered.store(expected, Relaxed);
        }
        self.put.store(put.wrapping_add(1), Release);
        arrived
    }

    fn batch(&self, number: u32) -> Option<&Batch> {
        self.waiting.get(number as usize % WAITING)
    }

    /// Its protocol is unknown from now on.
    #[cold]
    fn lose(&self, lane: &Lane) {
        lane.add(Counter::OpaqueConnections, 1);
        self.taken.store(self.put.load(Relaxed), Relaxed);
        self.standing.store(standing::OPAQUE, Relaxed);
    }

    /// The server wrote `pieces` to it in a call that began at `began` ticks.
    #[inline]
    pub fn sent<'b, F: Fn(u64) -> u64>(
        &self,
        counting: &IntervalRecorder<'_, F>,
        pieces: impl Iterator<Item = &'b [u8]>,
        began: u64,
    ) {
        if self.standing() == standing::PARSED {
            match self.count_answers(pieces) {
                Ok(begun) => return self.answer(counting, begun, began),
                Err(ParseLost) => self.lose(counting.lane),
            }
        }
        let since = self.opaque_since.load(Acquire);
        if self.standing() == standing::OPAQUE && since != 0 {
            self.opaque_since.store(0, Relaxed);
            record(counting, since, began, 1);
            counting.lane.add(Counter::Opaque, 1);
        }
    }

    #[inline]
    fn count_answers<'b>(&self, pieces: impl Iterator<Item = &'b [u8]>) -> Result<u32, ParseLost> {
        let mut position = self.answers.0.load();
        let mut begun = 0;
        for piece in pieces {
            position.answers(piece, &mut begun)?;
        }
        self.answers.0.store(position);
        Ok(begun)
    }

    /// `begun` answers began in a write of `began` ticks: they answer the oldest requests.
    #[inline]
    fn answer<F: Fn(u64) -> u64>(
        &self,
        counting: &IntervalRecorder<'_, F>,
        begun: u32,
        began: u64,
    ) {
        let mut begun = u64::from(begun);
        let mut taken = self.taken.load(Relaxed);
        while begun > 0 {
            if taken == self.put.load(Acquire) {
                self.count_unsolicited(counting.lane, begun);
                break;
            }
            let Some(batch) = self.batch(taken) else { break };
            let unanswered = batch.unanswered.load(Relaxed);
            let now_answered = unanswered.min(begun);
            record(counting, batch.arrived.load(Relaxed), began, now_answered);
            begun -= now_answered;
            if now_answered == unanswered {
                taken = taken.wrapping_add(1);
                self.taken.store(taken, Release);
            } else {
                batch.unanswered.store(unanswered - now_answered, Relaxed);
            }
        }
    }

    /// Answers without a waiting request: to the one that is arriving, or unsolicited.
    #[cold]
    fn count_unsolicited(&self, lane: &Lane, answers: u64) {
        let arriving = self.requests.load().inside() && self.early.load(Relaxed) == 0;
        if arriving {
            self.early.store(1, Relaxed);
        }
        lane.add(Counter::Unsolicited, answers - u64::from(arriving));
    }
}

#[inline]
fn record<F: Fn(u64) -> u64>(
    counting: &IntervalRecorder<'_, F>,
    arrived: u64,
    began: u64,
    count: u64,
) {
    let ticks = began.wrapping_sub(arrived);
    // Differences above half of the range are negative.
    let ticks = if ticks > u64::MAX / 2 {
        counting.lane.add(Counter::Backwards, count);
        0
    } else {
        ticks
    };
    counting.lane.record((counting.ns)(ticks), count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{bucket_of, bucket_value};

    /// Memory of zeros, as the kernel gives it.
    fn zeros<T: ZeroIsValid>() -> Box<T> {
        T::zeros()
    }

    trait ZeroIsValid {
        fn zeros() -> Box<Self>;
    }

    #[allow(unsafe_code)]
    mod zero {
        use super::*;
        impl ZeroIsValid for Lane {
            fn zeros() -> Box<Lane> {
                // SAFETY: a lane is made of atomic integers; zero is valid.
                unsafe { Box::<Lane>::new_zeroed().assume_init() }
            }
        }
        impl ZeroIsValid for Connection {
            fn zeros() -> Box<Connection> {
                // SAFETY: a connection is made of atomic integers; zero is valid.
                unsafe { Box::<Connection>::new_zeroed().assume_init() }
            }
        }
    }

    struct Watched {
        lane: Box<Lane>,
        connection: Box<Connection>,
    }

    impl Watched {
        fn new() -> Watched {
            let connection = zeros::<Connection>();
            connection.set_standing(standing::FRESH);
            Watched { lane: zeros(), connection }
        }

        fn read(&self, at: u64, bytes: &[u8]) {
            self.connection.received(&self.lane, [bytes].into_iter(), || at);
        }

        fn write(&self, at: u64, bytes: &[u8]) {
            let counting = IntervalRecorder { lane: &self.lane, ns: |ticks| ticks };
            self.connection.sent(&counting, [bytes].into_iter(), at);
        }

        fn intervals(&self) -> Vec<(u64, u64)> {
            let all = (0..crate::layout::BUCKETS).map(|i| (bucket_value(i), self.lane.bucket(i)));
            all.filter(|(_, count)| *count > 0).collect()
        }
    }

    #[test]
    fn each_pipelined_request_ends_with_the_write_of_its_own_answer() {
        let watched = Watched::new();
        watched.read(100, b"get a\r\nget b\r\nget c\r\n");
        watched.write(110, b"END\r\n");
        watched.write(120, b"END\r\nEND\r\n");
        assert_eq!(watched.intervals(), [(10, 1), (20, 2)]);
        assert_eq!(watched.lane.get(Counter::Batches), 1);
        assert_eq!(watched.lane.get(Counter::SumNs), 50);
    }

    #[test]
    fn interval_runs_from_last_read_to_first_write() {
        let watched = Watched::new();
        watched.read(100, b"set a 0 0 6\r\nabc");
        watched.read(150, b"def\r\nget");
        watched.write(160, b"STO");
        watched.write(190, b"RED\r\n");
        watched.read(200, b" a\r\n");
        watched.write(230, b"VALUE a 0 6\r\n");
        watched.write(240, b"abcdef\r\nEND\r\n");
        assert_eq!(watched.intervals(), [(10, 1), (30, 1)]);
        assert_eq!(watched.lane.get(Counter::Unsolicited), 0);
    }

    #[test]
    fn early_answers_are_counted_and_not_timed() {
        let watched = Watched::new();
        watched.read(100, b"set a 0 0 6\r\nabc");
        watched.write(110, b"SERVER_ERROR object too large for cache\r\n");
        watched.read(150, b"def\r\nget a\r\n");
        watched.write(160, b"END\r\n");
        assert_eq!(watched.intervals(), [(10, 1)]);
        assert_eq!(watched.lane.get(Counter::Early), 1);
        assert_eq!(watched.lane.get(Counter::Requests), 2);
    }

    #[test]
    fn unsolicited_answers_are_not_timed() {
        let watched = Watched::new();
        watched.read(100, b"*1\r\n$4\r\nPING\r\n");
        watched.write(110, b"+PONG\r\n+MORE\r\n");
        watched.read(200, b"*1\r\n$7\r\nMONITOR\r\n");
        watched.write(210, b"+OK\r\n");
        assert_eq!(watched.intervals(), [(10, 1)]);
        assert_eq!(watched.lane.get(Counter::Unsolicited), 1);
        assert_eq!(watched.lane.get(Counter::Streams), 1);
    }

    #[test]
    fn opaque_connections_count_batches() {
        let watched = Watched::new();
        for start in [1000, 2000] {
            watched.read(start, b"\x17\x03\x03\x00\x20");
            watched.read(start + 10, b"\x17\x03");
            watched.write(start + 60, b"\x17\x03");
            watched.write(start + 70, b"\x17\x03");
        }
        assert_eq!(watched.intervals(), [(50, 2)]);
        assert_eq!(watched.lane.get(Counter::Opaque), 2);
        assert_eq!(watched.lane.get(Counter::OpaqueConnections), 1);
    }

    #[test]
    fn excess_batches_are_merged() {
        let watched = Watched::new();
        for at in 0..20 {
            watched.read(100 + at, b"get a\r\n");
        }
        for _ in 0..20 {
            watched.write(200, b"END\r\n");
        }
        assert_eq!(watched.lane.get(Counter::Merged), 12);
        assert_eq!(watched.lane.get(Counter::Answered), 20);
        assert_eq!(watched.lane.bucket(bucket_of(200 - 107)), 13);
    }

    #[test]
    fn negative_intervals_are_counted_as_backwards() {
        let watched = Watched::new();
        watched.read(100, b"get a\r\n");
        watched.write(99, b"END\r\n");
        assert_eq!(watched.intervals(), [(0, 1)]);
        assert_eq!(watched.lane.get(Counter::Backwards), 1);
    }

    #[test]
    fn reused_descriptor_starts_afresh() {
        let watched = Watched::new();
        watched.read(100, b"get a\r\nset a 0 0 100\r\nabc");
        watched.connection.set_standing(standing::UNKNOWN);
        watched.connection.set_standing(standing::FRESH);
        watched.read(500, b"*1\r\n$4\r\nPING\r\n");
        watched.write(505, b"+PONG\r\n");
        assert_eq!(watched.intervals(), [(5, 1)]);
        assert_eq!(watched.lane.get(Counter::Connections), 2);
    }
}
