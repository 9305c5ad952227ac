//! Ping-pong and flow over a port of frames. A message that is longer than a frame goes in
//! parts; a message of which a part is lost is lost. Nothing is sent again.

use std::collections::VecDeque;

use super::clock::now_ns;
use super::content::Content;
use super::error::NetError;
use super::ether::{HEAD, Head, Mac, Port};
use super::flow::{DRAIN, Pace};
use super::job::{Job, Kind};
use super::outcome::End;
use super::touch::{Delays, touch};
use super::workers::{Part, Phase, Until, tick};

/// Frames that wait to be sent at most: what a port did not take is tried again first.
const WAITING: usize = 64;
/// Empty polls before a thread offers its CPU to others, once.
const TURNS: u32 = 4096;

/// Whether the server's port can hold what the cell makes it hold.
pub fn check(job: &Job, port: &impl Port) -> Result<(), NetError> {
    let payload = (port.longest().saturating_sub(HEAD) as u64).min(job.size).max(1);
    let (flag, bytes) = match job.kind {
        Kind::Pingpong => {
            ("size", job.size.div_ceil(payload) * payload * u64::from(job.connections))
        }
        Kind::Flow => ("reuse", job.reuse),
    };
    let spare = port.spare();
    if bytes.div_ceil(payload) <= spare as u64 {
        return Ok(());
    }
    Err(NetError::Senseless {
        flag,
        why: format!(
            "the server's port can hold back {spare} frames of {payload} B, and this takes              {bytes} B; give it a larger pool with --frames"
        ),
    })
}

/// What is between two messages of ours: flags, and courtesy where CPUs are few.
struct Turns<'a> {
    phase: &'a Phase<'a>,
    empty: u32,
    next_look: u64,
    tick_ns: u64,
}

impl<'a> Turns<'a> {
    fn new(job: &Job, phase: &'a Phase<'a>) -> Turns<'a> {
        Turns { phase, empty: 0, next_look: 0, tick_ns: tick(job.timeout_s).as_nanos() as u64 }
    }

    /// After each poll; whether it is time to look at deadlines.
    fn polled(&mut self, moved: bool, now: u64) -> Result<bool, NetError> {
        self.empty = if moved { 0 } else { self.empty + 1 };
        if self.empty >= TURNS {
            self.empty = 0;
            std::thread::yield_now();
        }
        if now < self.next_look {
            return Ok(false);
        }
        self.next_look = now + self.tick_ns;
        self.phase.goes_on()?;
        Ok(true)
    }
}

/// Writes messages into frames.
struct Writer {
    /// Payload of a frame.
    room: usize,
    to: Mac,
    from: Mac,
    phase: u64,
}

impl Writer {
    fn new(port: &impl Port, peer: (Mac, usize), phase: u64) -> Result<Writer, NetError> {
        let longest = port.longest().min(peer.1);
        let room = longest.checked_sub(HEAD).filter(|room| *room > 0).ok_or_else(|| {
            NetError::Port(format!("frames of {longest} B have no room for a message"))
        })?;
        Ok(Writer { room, to: peer.0, from: port.address(), phase })
    }

    /// One part of a message, from `offset` on; none while the port has no free frame.
    fn part<P: Port>(
        &self,
        port: &mut P,
        content: &Content,
        place: (u32, u64, u64),
        offset: u64,
        size: u64,
    ) -> Option<(P::Frame, u64)> {
        let (connection, message, stamp) = place;
        let length = (self.room as u64).min(size - offset);
        let head = Head {
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

struct Asking<'a> {
    content: Content,
    number: &'a mut u64,
    left: u64,
    /// Bytes of the message that are in frames, and bytes of the answer that came.
    sent: u64,
    came: u64,
    wrong: bool,
    since_ns: u64,
    done: bool,
}

impl Asking<'_> {
    fn begin(&mut self, until: &Until) {
        self.done = self.left == 0 || now_ns() >= until.instant_ns;
        self.left = self.left.saturating_sub(1);
        (self.sent, self.came, self.wrong) = (0, 0, false);
        self.since_ns = now_ns();
    }
}

/// The client of a ping-pong.
pub fn ask<P: Port>(
    job: &Job,
    phase: &Phase<'_>,
    port: &mut P,
    peer: (Mac, usize),
    numbers: &mut [u64],
    until: Until,
) -> Result<Part, NetError> {
    let writer = Writer::new(port, peer, phase.number)?;
    let mut part = Part::new(End::timing());
    let mut asking: Vec<Asking<'_>> = numbers
        .iter_mut()
        .enumerate()
        .map(|(connection, number)| Asking {
            content: Content::new(connection, job.size, false),
            number,
            left: until.messages,
            sent: 0,
            came: 0,
            wrong: false,
            since_ns: 0,
            done: false,
        })
        .collect();
    asking.iter_mut().for_each(|one| one.begin(&until));
    let (mut out, mut came) = (VecDeque::new(), VecDeque::new());
    let mut turns = Turns::new(job, phase);
    let mut turn = 0;
    let timeout_ns = (job.timeout_s * 1e9) as u64;
    while asking.iter().any(|one| !one.done) {
        let count = asking.len();
        for step in 0..count {
            let at = (turn + step) % count;
            let one = &mut asking[at];
            while !one.done && one.sent < job.size && out.len() < WAITING {
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
            let Some(head) = Head::read(&frame).filter(|head| head.phase == phase.number) else {
                continue;
            };
            let Some(one) = asking.get_mut(head.connection as usize) else { continue };
            if one.done || head.message != *one.number {
                part.end.late += u64::from(head.offset == 0);
                continue;
            }
            let bytes = &frame[HEAD..HEAD + head.length as usize];
            one.wrong |= !one.content.is(head.message, head.offset as usize, bytes);
            one.came += u64::from(head.length);
            if one.came < job.size {
                continue;
            }
            part.end.latency.record(now - one.since_ns);
            part.end.messages += 1;
            part.end.corrupt += u64::from(one.wrong || one.came > job.size);
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

/// The server of a ping-pong: holds the parts of a message until it is whole, then sends the
/// same frames back.
pub fn answer<P: Port>(job: &Job, phase: &Phase<'_>, port: &mut P) -> Result<Part, NetError> {
    struct Held<F> {
        message: u64,
        bytes: u64,
        frames: Vec<F>,
    }
    let own = port.address();
    let mut part = Part::new(End::default());
    let mut held: Vec<Held<P::Frame>> =
        (0..job.connections).map(|_| Held { message: 0, bytes: 0, frames: Vec::new() }).collect();
    let (mut out, mut came) = (VecDeque::new(), VecDeque::new());
    phase.set_up();
    let mut turns = Turns::new(job, phase);
    loop {
        port.receive(&mut came);
        let moved = !came.is_empty();
        for mut frame in came.drain(..) {
            let Some(head) = Head::read(&frame).filter(|head| head.phase == phase.number) else {
                continue;
            };
            let Some(held) = held.get_mut(head.connection as usize) else { continue };
            if head.message != held.message {
                // The client gave the former one up.
                held.frames.clear();
                (held.message, held.bytes) = (head.message, 0);
            }
            held.bytes += u64::from(head.length);
            Head { to: head.from, from: own, ..head }.write(&mut frame);
            held.frames.push(frame);
            if held.bytes >= job.size {
                out.extend(held.frames.drain(..));
                held.bytes = 0;
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

/// The client of a flow. `numbers` are what was sent on each connection.
pub fn send_all<P: Port>(
    job: &Job,
    phase: &Phase<'_>,
    port: &mut P,
    peer: (Mac, usize),
    numbers: &mut [u64],
    until: Until,
) -> Result<Part, NetError> {
    let writer = Writer::new(port, peer, phase.number)?;
    let contents: Vec<Content> =
        (0..numbers.len()).map(|n| Content::new(n, job.size, true)).collect();
    numbers.fill(0);
    let mut part = Part::new(End::default());
    let mut pace = Pace::new(job, numbers.len());
    let mut turns = Turns::new(job, phase);
    let mut out = VecDeque::new();
    let (mut connection, mut sent, mut stamp) = (0, 0, 0);
    let (mut over, mut moved_ns) = (false, now_ns());
    let timeout_ns = (job.timeout_s * 1e9) as u64;
    loop {
        while out.len() < WAITING {
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
                pace.went();
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
            return Err(NetError::Silent { what: "room for more frames", seconds: job.timeout_s });
        }
    }
    part.end.messages = numbers.iter().sum();
    Ok(part)
}

/// A connection at the receiver.
struct Coming {
    content: Content,
    delays: Delays,
    message: u64,
    bytes: u64,
    /// Messages that came whole.
    whole: u64,
}

/// The server of a flow: receives, holds back for the reuse distance, and touches.
pub fn receive_all<P: Port>(
    job: &Job,
    phase: &Phase<'_>,
    port: &mut P,
    shared_clock: bool,
) -> Result<Part, NetError> {
    let mut part = Part::new(End::timing());
    let mut coming: Vec<Coming> = (0..job.connections as usize)
        .map(|number| Coming {
            content: Content::new(number, job.size, true),
            delays: Delays::new(job, shared_clock),
            message: 0,
            bytes: 0,
            whole: 0,
        })
        .collect();
    let mut held: VecDeque<(P::Frame, Head)> = VecDeque::new();
    let mut held_bytes = 0;
    let mut came = VecDeque::new();
    phase.set_up();
    let mut first = None;
    let mut turns = Turns::new(job, phase);
    loop {
        port.receive(&mut came);
        let now = now_ns();
        let moved = !came.is_empty();
        for frame in came.drain(..) {
            let Some(head) = Head::read(&frame).filter(|head| head.phase == phase.number) else {
                continue;
            };
            let Some(one) = coming.get_mut(head.connection as usize) else { continue };
            first.get_or_insert(now);
            part.last_ns = now;
            one.take(&head, &frame, job, now, &mut part.end);
            held_bytes += u64::from(head.length);
            held.push_back((frame, head));
            while held_bytes > job.reuse
                && let Some((frame, head)) = held.pop_front()
            {
                held_bytes -= u64::from(head.length);
                coming[head.connection as usize].touch(&head, &frame, job, &mut part.end);
            }
        }
        if let Some(sent) = phase.sent.get() {
            let whole = coming.iter().zip(sent).all(|(one, sent)| one.whole >= *sent);
            if whole || now.saturating_sub(part.last_ns) > DRAIN.as_nanos() as u64 {
                break;
            }
        }
        turns.polled(moved, now)?;
    }
    for (frame, head) in held {
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

impl Coming {
    /// Accounts for a part of a message.
    fn take(&mut self, head: &Head, frame: &[u8], job: &Job, now: u64, end: &mut End) {
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

    fn touch(&self, head: &Head, frame: &[u8], job: &Job, end: &mut End) {
        let bytes = &frame[HEAD..HEAD + head.length as usize];
        touch(&self.content, job, head.message, head.offset as usize, bytes, end);
    }
}
