//! The bytes of a connection in their order, from segments that come out of order or twice.

use std::collections::HashMap;

use super::super::super::error::RecordProblem;
use super::Sink;
use super::memcached::{Binary, Text};
use super::resp::Resp;
use super::segment::{Direction, Segment};

/// Connections that are followed at a time; the oldest are forgotten.
const MOST_STREAMS: usize = 1 << 16;

/// Segments and bytes of a connection that wait for an earlier one: then that is lost.
const MOST_PENDING: usize = 64;
const MOST_PENDING_BYTES: usize = 256 << 10;

/// Bytes of all connections together that wait; then the less recently used half is forgotten.
const MOST_HELD: usize = 256 << 20;

/// Bytes that tell the protocol.
const LONGEST_WORD: usize = 64;

/// The longest beginning of a request that waits for its rest.
const LONGEST_HEAD: usize = 256 << 10;

/// What a parser made of the bytes from the front of a request.
pub(super) enum Step {
    /// More are needed.
    More,
    /// So many were consumed, and so many more are to be passed over.
    Done { consumed: usize, skip: u64 },
}

/// A protocol's requests.
pub(super) trait Parser {
    /// Takes one request, or a part of it.
    fn step(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<Step, RecordProblem>;
}

#[derive(Debug)]
enum Protocol {
    Text(Text),
    Binary(Binary),
    Resp(Resp),
}

impl Protocol {
    /// The protocol of a request that begins so. Answers of Redis may look like its requests, so
    /// that without the beginning of the connection the command must be a known one.
    fn of(data: &[u8], is_client: bool) -> Option<Protocol> {
        match data.first()? {
            b'*' => Resp::recognises(data, is_client).then(|| Protocol::Resp(Resp::default())),
            0x80 => Binary::recognises(data).then_some(Protocol::Binary(Binary)),
            _ => Text::recognises(data).then_some(Protocol::Text(Text)),
        }
    }

    fn step(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Result<Step, RecordProblem> {
        match self {
            Protocol::Text(parser) => parser.step(data, sink),
            Protocol::Binary(parser) => parser.step(data, sink),
            Protocol::Resp(parser) => parser.step(data, sink),
        }
    }
}

#[derive(Debug)]
struct PendingSegment {
    sequence: u32,
    payload: Vec<u8>,
    missing: u32,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Stream {
    /// Number of the next byte, where it is known.
    next: Option<u32>,
    /// It opened the connection, or accepted it.
    is_client: bool,
    is_server: bool,
    /// Nothing but its beginning was seen, and too little of that.
    begins: bool,
    protocol: Option<Protocol>,
    /// The beginning of a request, and bytes of a value that are still to be passed over.
    head: Vec<u8>,
    skip: u64,
    pending: Vec<PendingSegment>,
    pending_bytes: usize,
    /// Counts on with every segment, to find the oldest.
    used: u64,
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Streams {
    streams: HashMap<Direction, Stream>,
    used: u64,
    held: usize,
}

impl Streams {
    pub fn take(&mut self, segment: &Segment<'_>, sink: &mut Sink<'_>) {
        let direction = segment.direction;
        self.used += 1;
        if segment.rst {
            self.close(direction, sink);
            self.close(direction.reverse(), sink);
            return;
        }
        if segment.syn {
            self.make_room();
            let stream = Stream {
                next: Some(segment.sequence.wrapping_add(1)),
                is_client: !segment.ack,
                is_server: segment.ack,
                begins: true,
                used: self.used,
                ..Stream::default()
            };
            if let Some(before) = self.streams.insert(direction, stream) {
                self.held -= before.held();
            }
            return;
        }
        let has_bytes = !segment.payload.is_empty() || segment.missing > 0;
        let reverse = self.streams.get(&direction.reverse());
        let answers = reverse.is_some_and(|stream| stream.protocol.is_some() || stream.is_client);
        if has_bytes && !answers {
            self.make_room();
            let stream = self.streams.entry(direction).or_default();
            stream.used = self.used;
            let before = stream.held();
            stream.take(segment, sink);
            self.held = self.held - before + stream.held();
            if stream.protocol.is_none() && !stream.is_client && !stream.is_server {
                self.streams.remove(&direction);
            }
        }
        if segment.fin {
            self.close(direction, sink);
        }
    }

    /// Gives up waiting for what is not there at the end of the file.
    pub fn finish(&mut self, sink: &mut Sink<'_>) {
        let mut left: Vec<(Direction, Stream)> = self.streams.drain().collect();
        left.sort_by_key(|(_, stream)| stream.used);
        left.iter_mut().for_each(|(_, stream)| stream.give_up(sink));
    }

    fn close(&mut self, direction: Direction, sink: &mut Sink<'_>) {
        if let Some(mut stream) = self.streams.remove(&direction) {
            self.held -= stream.held();
            stream.give_up(sink);
        }
    }

    /// Forgets the less recently used half, where there are too many.
    fn make_room(&mut self) {
        if self.streams.len() >= MOST_STREAMS || self.held >= MOST_HELD {
            let mut used: Vec<u64> = self.streams.values().map(|stream| stream.used).collect();
            let (_, median, _) = used.select_nth_unstable(self.streams.len() / 2);
            let median = *median;
            self.streams.retain(|_, stream| stream.used > median);
            self.held = self.streams.values().map(Stream::held).sum();
        }
    }
}

impl Stream {
    /// Bytes that wait for others.
    fn held(&self) -> usize {
        let words = match &self.protocol {
            Some(Protocol::Resp(resp)) => resp.held(),
            _ => 0,
        };
        self.pending_bytes + self.head.len() + words
    }

    fn take(&mut self, segment: &Segment<'_>, sink: &mut Sink<'_>) {
        if self.is_server {
            return;
        }
        let next = *self.next.get_or_insert(segment.sequence);
        let ahead = segment.sequence.wrapping_sub(next) as i32;
        if ahead <= 0 {
            self.append(ahead.unsigned_abs(), segment.payload, segment.missing, sink);
        } else {
            self.pending_bytes += segment.payload.len();
            self.pending.push(PendingSegment {
                sequence: segment.sequence,
                payload: segment.payload.to_vec(),
                missing: segment.missing,
            });
        }
        self.take_pending(sink);
        if self.pending.len() >= MOST_PENDING || self.pending_bytes >= MOST_PENDING_BYTES {
            self.give_up(sink);
        }
    }

    /// Appends the segments that continue what is there.
    fn take_pending(&mut self, sink: &mut Sink<'_>) {
        while let Some(next) = self.next {
            let fits = |segment: &PendingSegment| segment.sequence.wrapping_sub(next) as i32 <= 0;
            let Some(at) = self.pending.iter().position(fits) else { break };
            let segment = self.pending.swap_remove(at);
            self.pending_bytes -= segment.payload.len();
            let seen = next.wrapping_sub(segment.sequence);
            self.append(seen, &segment.payload, segment.missing, sink);
        }
    }

    /// What is waited for was lost.
    fn give_up(&mut self, sink: &mut Sink<'_>) {
        while let Some(next) = self.next {
            let ahead = |segment: &PendingSegment| segment.sequence.wrapping_sub(next) as i32;
            let Some(gap) = self.pending.iter().map(ahead).min() else { break };
            self.lose(gap.max(0) as u32, sink);
            self.next = Some(next.wrapping_add(gap.max(0) as u32));
            self.take_pending(sink);
        }
    }

    /// Takes the bytes of a segment of which the first ones were seen before.
    fn append(&mut self, seen: u32, payload: &[u8], missing: u32, sink: &mut Sink<'_>) {
        let seen_bytes = (seen as usize).min(payload.len());
        let missing = missing.saturating_sub(seen - seen_bytes as u32);
        let new = &payload[seen_bytes..];
        if let Some(next) = &mut self.next {
            *next = next.wrapping_add(new.len() as u32).wrapping_add(missing);
        }
        self.parse(new, sink);
        if missing > 0 {
            self.lose(missing, sink);
        }
    }

    /// Bytes were not captured: no harm within a value.
    fn lose(&mut self, bytes: u32, sink: &mut Sink<'_>) {
        if self.protocol.is_none() {
            self.begins = false;
            self.head.clear();
            return;
        }
        match u64::from(bytes) <= self.skip && self.head.is_empty() {
            true => self.skip -= u64::from(bytes),
            false => self.out_of_step(RecordProblem::Lost { bytes }, sink),
        }
    }

    /// A segment that begins with a request tells the protocol; the beginning of a connection waits
    /// for more where it is shorter than that.
    fn recognise(&mut self, new: &[u8]) {
        if self.head.is_empty() && !self.begins {
            self.protocol = Protocol::of(new, self.is_client);
            return;
        }
        let whole = [&self.head[..], new].concat();
        self.protocol = Protocol::of(&whole, self.is_client);
        self.begins = self.protocol.is_none() && whole.len() < LONGEST_WORD;
        match self.begins {
            true => self.head = whole,
            // Where there is a protocol, the head goes before what is new.
            false if self.protocol.is_none() => self.head.clear(),
            false => {}
        }
    }

    /// The next segment that begins with a request is where it goes on.
    fn out_of_step(&mut self, problem: RecordProblem, sink: &mut Sink<'_>) {
        sink.problems.push_back(problem);
        (self.protocol, self.skip) = (None, 0);
        self.head.clear();
    }

    fn parse(&mut self, new: &[u8], sink: &mut Sink<'_>) {
        if self.protocol.is_none() {
            self.recognise(new);
        }
        let Some(protocol) = &mut self.protocol else { return };
        let passed = usize::try_from(self.skip).unwrap_or(usize::MAX).min(new.len());
        self.skip -= passed as u64;
        let mut joined = std::mem::take(&mut self.head);
        let mut data = &new[passed..];
        if !joined.is_empty() {
            joined.extend_from_slice(data);
            data = &joined;
        }
        while !data.is_empty() {
            match protocol.step(data, sink) {
                Ok(Step::Done { consumed, skip }) => {
                    data = &data[consumed.min(data.len())..];
                    let passed = usize::try_from(skip).unwrap_or(usize::MAX).min(data.len());
                    data = &data[passed..];
                    self.skip = skip - passed as u64;
                }
                Ok(Step::More) if data.len() <= LONGEST_HEAD => {
                    self.head = data.to_vec();
                    return;
                }
                Ok(Step::More) => return self.out_of_step(RecordProblem::Request, sink),
                Err(problem) => return self.out_of_step(problem, sink),
            }
        }
    }
}
