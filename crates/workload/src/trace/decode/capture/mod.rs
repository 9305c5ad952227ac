//! Packet captures, `.pcap` and `.pcapng`: the requests that clients sent to memcached or Redis.
//!
//! The direction of the clients is put together again from TCP's segments; answers are passed over.
//! Formats: <https://datatracker.ietf.org/doc/draft-ietf-opsawg-pcap> and `pcapng` beside it.

mod container;
mod memcached;
mod resp;
mod segment;
mod stream;

use std::collections::VecDeque;

use self::container::{Container, NextPacket};
use self::segment::Segment;
use self::stream::Streams;
use super::super::error::RecordProblem;
use super::super::format::TraceTiming;
use super::super::input::Input;
use super::super::record::RecordBatch;
use super::{Decoder, Failure};

pub(in super::super) use self::container::recognises;

/// Where parsed requests and what is malformed go.
struct Sink<'a> {
    out: &'a mut RecordBatch,
    problems: &'a mut VecDeque<RecordProblem>,
    /// When the packet was seen.
    at_ns: u64,
}

/// The decoder of a capture.
#[derive(Debug, Default)]
pub(in super::super) struct PacketCapture {
    container: Option<Container>,
    streams: Streams,
    problems: VecDeque<RecordProblem>,
    /// The packets of several processors may be out of order by microseconds.
    last_ns: u64,
}

impl Decoder for PacketCapture {
    fn decode(&mut self, input: &mut Input, out: &mut RecordBatch) -> Result<(), Failure> {
        loop {
            if let Some(problem) = self.problems.pop_front() {
                return Err(Failure::bad(problem));
            }
            if out.is_full() {
                return Ok(());
            }
            let container = match &mut self.container {
                Some(container) => container,
                begun => begun.insert(Container::begin(input)?),
            };
            match container.next(input, out.is_empty())? {
                NextPacket::Packet(packet) => {
                    self.last_ns = self.last_ns.max(packet.at_ns);
                    let Self { problems, last_ns: at_ns, .. } = self;
                    let mut sink = Sink { out, problems, at_ns: *at_ns };
                    let data = &input.data()[packet.data.clone()];
                    match Segment::of(packet.link, data, packet.missing) {
                        Ok(Some(segment)) => self.streams.take(&segment, &mut sink),
                        Ok(None) => sink.out.ignored += 1,
                        Err(problem) => sink.problems.push_back(problem),
                    }
                    input.consume(packet.size);
                }
                NextPacket::Passed(size) => input.consume(size),
                NextPacket::NotYet => return Ok(()),
                NextPacket::End => {
                    let Self { problems, last_ns: at_ns, .. } = self;
                    self.streams.finish(&mut Sink { out, problems, at_ns: *at_ns });
                    if self.problems.is_empty() {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn timing(&self) -> TraceTiming {
        TraceTiming::Exact
    }
}
