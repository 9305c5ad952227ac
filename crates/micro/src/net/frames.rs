//! Ping-pong and flow over a port of frames. A message longer than a frame goes in parts, and is
//! lost if one of them is. Nothing is retransmitted.

use std::collections::VecDeque;

use super::clock::now_ns;
use super::content::MessageContent;
use super::error::NetError;
use super::ether::{FrameHeader, HEAD, Mac, Port};
use super::flow::{DRAIN_TIME, Pace};
use super::job::{Kind, NetJob};
use super::outcome::EndOutcome;
use super::touch::{Delays, touch};
use super::workers::{EndPhase, SendUntil, ThreadPart, tick};

/// Largest queue of frames to be sent: frames that a port did not take are tried again first.
const MAX_QUEUED: usize = 64;
/// Empty polls before a thread yields its CPU once.
const YIELD_AFTER: u32 = 4096;

/// Checks that the server's port can hold the reuse distance of the cell.
pub fn check(job: &NetJob, port: &impl Port) -> Result<(), NetError> {
    let payload = (port.max_frame_len().saturating_sub(HEAD) as u64).min(job.size).max(1);
    let (flag, bytes) = match job.kind {
        Kind::Pingpong => {
            ("size", job.size.div_ceil(payload) * payload * u64::from(job.connections))
        }
        Kind::Flow => ("reuse", job.reuse),
    };
    let spare = port.spare_frames();
    if bytes.div_ceil(payload) <= spare as u64 {
        return Ok(());
    }
    Err(NetError::InvalidSetting {
        flag,
        why: format!(
            "the server's port can hold back {spare} frames of {payload} B, but this takes {bytes} \
             B; give it a larger pool with --frames"
        ),
    })
}

/// Work between polls: checks flags, and yields where CPUs are few.
struct FrameYield<'a> {
    phase: &'a EndPhase<'a>,
    empty: u32,
    next_look: u64,
    tick_ns: u64,
}

impl<'a> FrameYield<'a> {
    fn new(job: &NetJob, phase: &'a EndPhase<'a>) -> FrameYield<'a> {
        FrameYield { phase, empty: 0, next_look: 0, tick_ns: tick(job.timeout_s).as_nanos() as u64 }
    }

    /// Call after each poll; returns whether it is time to check deadlines.
    fn polled(&mut self, moved: bool, now: u64) -> Result<bool, NetError> {
        self.empty = if moved { 0 } else { self.empty + 1 };
        if self.empty >= YIELD_AFTER {
            self.empty = 0;
            std::thread::yield_now();
        }
        if now < self.next_look {
            return Ok(false);
        }
        self.next_look = now + self.tick_ns;
        self.phase.check_running()?;
        Ok(true)
    }
}

/// Writes messages into frames.
struct FrameWriter {
    /// Payload of a frame.
    room: usize,
    to: Mac,
    from: Mac,
    phase: u64,
}

impl FrameWriter {
    fn new(port: &impl Port, peer: (Mac, usize), phase: u64) -> Result<FrameWriter, NetError> {
        let longest = port.max_frame_len().min(peer.1);
        let room = longest.checked_sub(HEAD).filter(|room| *room > 0).ok_or_else(|| {
            NetError::Port(format!("frames of {longest} B have no room for a message"))
        })?;
        Ok(FrameWriter { room, to: peer.0, from: port.address(), phase })
    }

    /// One part of a message, from `offset` on; none while the port has no free frame.
    fn part<P: Port>(
        &self,
        port: &mut P,
        content: &MessageContent,
        place: (u32, u64, u64),
        offset: u64,
        size: u64,
    ) -> Option<(P::Frame, u64)> {
        let (connection, message, stamp) = place;
        let length = (self.room as u64).min(size - offset);
        let head = FrameHeader {
            to: self.to,
            from: self.from,
            connection,
            phase: self.phase,
            message,
            offset: offset as u32,
            length: length as u32,
        };
        let mut frame = port.frame(head.frame())?;
        head.write(&mut frame);
        let body = &mut frame[HEAD..HEAD + length as usize];
        content.write(message, stamp, offset as usize, body);
        Some((frame, length))
    }
}

struct FramePinger<'a> {
    content: MessageContent,
    number: &'a mut u64,
    remaining: u64,
    /// Bytes of the message that are in frames, and bytes of the answer that arrived.
    sent: u64,
    received: u64,
    corrupt: bool,
    since_ns: u64,
    done: bool,
}

impl FramePinger<'_> {
    fn begin(&mut self, until: &SendUntil) {
        self.done = self.remaining == 0 || now_ns() >= until.instant_ns;
        self.remaining = self.remaining.saturating_sub(1);
        (self.sent, self.received, self.corrupt) = (0, 0, false);
        self.since_ns = now_ns();
    }
}

/// The client of a ping-pong.
pub fn run_client<P: Port>(
    job: &NetJob,
    phase: &EndPhase<'_>,
    port: &mut P,
    peer: (Mac, usize),
    numbers: &mut [u64],
    until: SendUntil,
) -> Result<ThreadPart, NetError> {
    let writer = FrameWriter::new(port, peer, phase.number)?;
    let mut part = ThreadPart::new(EndOutcome::timing());
    let mut asking: Vec<FramePinger<'_>> = numbers
        .iter_mut()
        .enumerate()
        .map(|(connection, number)| FramePinger {
            content: MessageContent::new(connection, job.size, false),
            number,
            remaining: until.messages,
            sent: 0,
            received: 0,
            corrupt: false,
            since_ns: 0,
            done: false,
        })
        .collect();
    asking.iter_mut().for_each(|one| one.begin(&until));
    let (mut out, mut came) = (VecDeque::new(), VecDeque::new());
    let mut turns = FrameYield::new(job, phase);
    let mut turn = 0;
    let timeout_ns = (job.timeout_s * 1e9) as u64;
    while asking.iter().any(|one| !one.done) {
        let count = asking.len();
        for step in 0..count {
            let at = (turn + step) % count;
            let one = &mut asking[at];
            while !one.done && one.sent < job.size && out.len() < MAX_QUEUED {
                let place = (at as u32, *one.number, 0);
                let Some((frame, length)) =
                    writer.part(port, &one.content, place, one.sent, job.size)
                else {
                    break;
                };
                out.push_back(frame);
                one.sent += length;
            }
        }
        turn = (turn + 1) % count;
        port.send(&mut out);
        port.receive(&mut came);
        let moved = !came.is_empty();
        let now = now_ns();
        for frame in came.drain(..) {
            let Some(head) = FrameHeader::read(&frame).filter(|head| head.phase == phase.number)
            else {
                continue;
            };
            let Some(one) = asking.get_mut(head.connection as usize) else { continue };
            if one.done || head.message != *one.number {
                part.end.late += u64::from(head.offset == 0);
                continue;
            }
            let bytes = &frame[HEAD..HEAD + head.length as usize];
            one.corrupt |= !one.content.matches(head.message, head.offset as usize, bytes);
            one.received += u64::from(head.length);
            if one.received < job.size {
                continue;
            }
            part.end.latency.record(now - one.since_ns);
            part.end.messages += 1;
            part.end.corrupt += u64::from(one.corrupt || one.received > job.size);
            part.last_ns = now;
            *one.number += 1;
            one.begin(&until);
        }
        if turns.polled(moved, now)? {
            for one in asking.iter_mut().filter(|one| !one.done) {
                if now.saturating_sub(one.since_ns) >= timeout_ns {
                    part.end.lost += 1;
                    *one.number += 1;
                    one.begin(&until);
                }
            }
        }
    }
    Ok(part)
}

/// The server of a ping-pong: collects the parts of a message, then sends the same frames back.
pub fn run_server<P: Port>(
    job: &NetJob,
    phase: &EndPhase<'_>,
    port: &mut P,
) -> Result<ThreadPart, NetError> {
    struct PartialMessage<F> {
        message: u64,
        bytes: u64,
        frames: Vec<F>,
    }
    let own = port.address();
    let mut part = ThreadPart::new(EndOutcome::default());
    let mut partial: Vec<PartialMessage<P::Frame>> = (0..job.connections)
        .map(|_| PartialMessage { message: 0, bytes: 0, frames: Vec::new() })
        .collect();
    let (mut out, mut came) = (VecDeque::new(), VecDeque::new());
    phase.set_up();
    let mut turns = FrameYield::new(job, phase);
    loop {
        port.receive(&mut came);
        let moved = !came.is_empty();
        for mut frame in came.drain(..) {
            let Some(head) = FrameHeader::read(&frame).filter(|head| head.phase == phase.number)
            else {
                continue;
            };
            let Some(partial) = partial.get_mut(head.connection as usize) else { continue };
            if head.message != partial.message {
                // The client gave up the previous message.
                partial.frames.clear();
                (partial.message, partial.bytes) = (head.message, 0);
            }
            partial.bytes += u64::from(head.length);
            FrameHeader { to: head.from, from: own, ..head }.write(&mut frame);
            partial.frames.push(frame);
            if partial.bytes >= job.size {
                out.extend(partial.frames.drain(..));
                partial.bytes = 0;
                part.end.messages += 1;
                part.last_ns = now_ns();
            }
        }
        port.send(&mut out);
        if !moved && phase.sent.get().is_some() {
            return Ok(part);
        }
        turns.polled(moved, now_ns())?;
    }
}

/// The client of a flow. `numbers` counts the messages sent on each connection.
pub fn send_all<P: Port>(
    job: &NetJob,
    phase: &EndPhase<'_>,
    port: &mut P,
    peer: (Mac, usize),
    numbers: &mut [u64],
    until: SendUntil,
) -> Result<ThreadPart, NetError> {
    let writer = FrameWriter::new(port, peer, phase.number)?;
    let contents: Vec<MessageContent> =
        (0..numbers.len()).map(|n| MessageContent::new(n, job.size, true)).collect();
    numbers.fill(0);
    let mut part = ThreadPart::new(EndOutcome::default());
    let mut pace = Pace::new(job, numbers.len());
    let mut turns = FrameYield::new(job, phase);
    let mut out = VecDeque::new();
    let (mut connection, mut sent, mut stamp) = (0, 0, 0);
    let (mut over, mut moved_ns) = (false, now_ns());
    let timeout_ns = (job.timeout_s * 1e9) as u64;
    loop {
        while out.len() < MAX_QUEUED {
            let number = numbers[connection];
            if sent == 0 {
                if over || number >= until.messages || !pace.allows() {
                    break;
                }
                stamp = if number.is_multiple_of(job.stamp_every()) { now_ns() } else { 0 };
            }
            let place = (connection as u32, number, stamp);
            let content = &contents[connection];
            let Some((frame, length)) = writer.part(port, content, place, sent, job.size) else {
                break;
            };
            out.push_back(frame);
            sent += length;
            if sent == job.size {
                sent = 0;
                numbers[connection] += 1;
                pace.record_sent();
                connection = (connection + 1) % numbers.len();
            }
        }
        let before = out.len();
        port.send(&mut out);
        let moved = out.len() < before;
        let now = now_ns();
        over |= now >= until.instant_ns;
        let nothing_left = over || numbers[connection] >= until.messages;
        if moved {
            (moved_ns, part.last_ns) = (now, now);
        } else if out.is_empty() && sent == 0 {
            if nothing_left {
                break;
            }
            moved_ns = now;
        }
        if turns.polled(moved, now)? && now - moved_ns > timeout_ns {
            return Err(NetError::Timeout { what: "room for more frames", seconds: job.timeout_s });
        }
    }
    part.end.messages = numbers.iter().sum();
    Ok(part)
}

/// A connection at the receiver.
struct FrameReceiver {
    content: MessageContent,
    delays: Delays,
    message: u64,
    bytes: u64,
    /// Messages that arrived whole.
    whole: u64,
}

/// The server of a flow: receives, holds back for the reuse distance, and touches.
pub fn receive_all<P: Port>(
    job: &NetJob,
    phase: &EndPhase<'_>,
    port: &mut P,
    shared_clock: bool,
) -> Result<ThreadPart, NetError> {
    let mut part = ThreadPart::new(EndOutcome::timing());
    let mut coming: Vec<FrameReceiver> = (0..job.connections as usize)
        .map(|number| FrameReceiver {
            content: MessageContent::new(number, job.size, true),
            delays: Delays::new(job, shared_clock),
            message: 0,
            bytes: 0,
            whole: 0,
        })
        .collect();
    let mut held_back: VecDeque<(P::Frame, FrameHeader)> = VecDeque::new();
    let mut held_bytes = 0;
    let mut came = VecDeque::new();
    phase.set_up();
    let mut first = None;
    let mut turns = FrameYield::new(job, phase);
    loop {
        port.receive(&mut came);
        let now = now_ns();
        let moved = !came.is_empty();
        for frame in came.drain(..) {
            let Some(head) = FrameHeader::read(&frame).filter(|head| head.phase == phase.number)
            else {
                continue;
            };
            let Some(one) = coming.get_mut(head.connection as usize) else { continue };
            first.get_or_insert(now);
            part.last_ns = now;
            one.take(&head, &frame, job, now, &mut part.end);
            held_bytes += u64::from(head.length);
            held_back.push_back((frame, head));
            while held_bytes > job.reuse
                && let Some((frame, head)) = held_back.pop_front()
            {
                held_bytes -= u64::from(head.length);
                coming[head.connection as usize].touch(&head, &frame, job, &mut part.end);
            }
        }
        if let Some(sent) = phase.sent.get() {
            let whole = coming.iter().zip(sent).all(|(one, sent)| one.whole >= *sent);
            if whole || now.saturating_sub(part.last_ns) > DRAIN_TIME.as_nanos() as u64 {
                break;
            }
        }
        turns.polled(moved, now)?;
    }
    for (frame, head) in held_back {
        coming[head.connection as usize].touch(&head, &frame, job, &mut part.end);
    }
    part.first_ns = first.unwrap_or(part.last_ns);
    for (one, sent) in coming.iter().zip(phase.sent.get().into_iter().flatten()) {
        part.end.messages += one.whole;
        part.end.lost += sent.saturating_sub(one.whole);
        one.delays.explain(&one.content, &mut part.end);
    }
    Ok(part)
}

impl FrameReceiver {
    /// Accounts for a part of a message.
    fn take(
        &mut self,
        head: &FrameHeader,
        frame: &[u8],
        job: &NetJob,
        now: u64,
        end: &mut EndOutcome,
    ) {
        if head.message < self.message {
            end.late += u64::from(head.offset == 0);
            return;
        }
        if head.message > self.message {
            (self.message, self.bytes) = (head.message, 0);
        }
        let stamped = head.offset == 0 && head.length >= 16 && self.content.stamped();
        if stamped && self.delays.is_due(head.message) {
            self.delays.begin(&frame[HEAD + 8..HEAD + 16]);
        }
        self.bytes += u64::from(head.length);
        if self.bytes == job.size {
            self.whole += 1;
            self.delays.complete(now, end);
            (self.message, self.bytes) = (self.message + 1, 0);
        }
    }

    fn touch(&self, head: &FrameHeader, frame: &[u8], job: &NetJob, end: &mut EndOutcome) {
        let bytes = &frame[HEAD..HEAD + head.length as usize];
        touch(&self.content, job, head.message, head.offset as usize, bytes, end);
    }
}
