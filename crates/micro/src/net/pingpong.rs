//! Ping-pong over sockets.

use socket2::Socket;

use super::clock::now_ns;
use super::content::{Content, Source};
use super::error::NetError;
use super::job::Job;
use super::outcome::End;
use super::sockets::{Step, receive, send, send_bytes};
use super::wait::{For, Wait};
use super::workers::{Part, Phase, Until, tick};

/// What a connection of the client is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Sending(usize),
    Awaiting(usize),
    Done,
}

struct Asking<'a> {
    socket: &'a Socket,
    content: Content,
    source: Source,
    /// The message under way; numbers go on from one phase to the next.
    number: &'a mut u64,
    left: u64,
    at: At,
    /// The socket is waited for until it takes more.
    full: bool,
    since_ns: u64,
    /// When the message last moved.
    moved_ns: u64,
}

/// The client's thread for some connections: asks on each until the phase is over, and takes
/// the round trips.
pub fn ask(
    job: &Job,
    phase: &Phase<'_>,
    connections: Vec<(usize, &Socket, &mut u64)>,
    until: Until,
) -> Result<Part, NetError> {
    let tick = tick(job.timeout_s);
    let mut wait = waiting(&connections.iter().map(|c| c.1).collect::<Vec<_>>(), job)?;
    let mut buffer = vec![0; job.size as usize];
    let mut part = Part::new(End::timing());
    let mut asking: Vec<Asking<'_>> = connections
        .into_iter()
        .map(|(connection, socket, number)| {
            let content = Content::new(connection, job.size, false);
            let source = Source::new(content);
            let (left, at) = (until.messages, At::Done);
            Asking {
                socket,
                content,
                source,
                number,
                left,
                at,
                full: false,
                since_ns: 0,
                moved_ns: 0,
            }
        })
        .collect();
    // A stream's answers come in parts: each connection has its own place for them.
    let mut answers = vec![Vec::new(); if asking.len() > 1 { asking.len() } else { 0 }];
    let timeout_ns = (job.timeout_s * 1e9) as u64;
    for (at, one) in asking.iter_mut().enumerate() {
        one.begin(job, at, &until, &mut wait)?;
    }
    let (mut ready, mut next_look) = (Vec::new(), 0);
    while asking.iter().any(|one| one.at != At::Done) {
        wait.ready(tick, &mut ready).map_err(NetError::io("waiting"))?;
        for at in &ready {
            let one = &mut asking[*at];
            let answer = match answers.get_mut(*at) {
                Some(own) => {
                    own.resize(job.size as usize, 0);
                    own
                }
                None => &mut buffer,
            };
            one.progress(job, *at, &until, &mut wait, answer, &mut part)?;
        }
        let now = now_ns();
        if now < next_look {
            continue;
        }
        next_look = now + tick.as_nanos() as u64;
        phase.goes_on()?;
        for (at, one) in asking.iter_mut().enumerate() {
            // A stream that still moves is alive, however long its message takes.
            let since = if job.transport.loses() { one.since_ns } else { one.moved_ns };
            if one.at == At::Done || now.saturating_sub(since) < timeout_ns {
                continue;
            }
            if !job.transport.loses() {
                return Err(NetError::Silent { what: "answer", seconds: job.timeout_s });
            }
            part.end.lost += 1;
            one.next(job, at, &until, &mut wait)?;
        }
    }
    Ok(part)
}

impl Asking<'_> {
    fn begin(
        &mut self,
        job: &Job,
        at: usize,
        until: &Until,
        wait: &mut Wait,
    ) -> Result<(), NetError> {
        self.at = At::Done;
        if self.left == 0 || now_ns() >= until.instant_ns {
            return Ok(());
        }
        self.left -= 1;
        self.source.set(*self.number, 0);
        self.at = At::Sending(0);
        self.since_ns = now_ns();
        self.moved_ns = self.since_ns;
        self.send(job, at, wait, 0)
    }

    /// Goes on to the next message, whatever became of this one.
    fn next(
        &mut self,
        job: &Job,
        at: usize,
        until: &Until,
        wait: &mut Wait,
    ) -> Result<(), NetError> {
        *self.number += 1;
        self.begin(job, at, until, wait)
    }

    fn send(&mut self, job: &Job, at: usize, wait: &mut Wait, from: usize) -> Result<(), NetError> {
        let moved = match send(self.socket, &self.source, from)? {
            Step::Moved(count) => count,
            Step::Pause => 0,
        };
        let whole = from + moved == job.size as usize;
        if moved > 0 && !whole {
            self.moved_ns = now_ns();
        }
        self.at = if whole { At::Awaiting(0) } else { At::Sending(from + moved) };
        look_for(self.socket, at, wait, &mut self.full, !whole)
    }

    fn progress(
        &mut self,
        job: &Job,
        at: usize,
        until: &Until,
        wait: &mut Wait,
        answer: &mut [u8],
        part: &mut Part,
    ) -> Result<(), NetError> {
        let from = match self.at {
            At::Done => return Ok(()),
            At::Sending(from) => return self.send(job, at, wait, from),
            At::Awaiting(from) => from,
        };
        let Step::Moved(count) = receive(self.socket, job, &mut answer[from..])? else {
            return Ok(());
        };
        if job.transport.loses() {
            let number = self.content.number(&answer[..count], *self.number);
            if number < *self.number {
                // Of a message that was given up.
                part.end.late += 1;
                return Ok(());
            }
        } else if from + count < job.size as usize {
            (self.at, self.moved_ns) = (At::Awaiting(from + count), now_ns());
            return Ok(());
        }
        let now = now_ns();
        part.end.latency.record(now - self.since_ns);
        part.end.messages += 1;
        part.last_ns = now;
        let whole = &answer[..from + count];
        if whole.len() != job.size as usize || !self.content.is(*self.number, 0, whole) {
            part.end.corrupt += 1;
        }
        self.next(job, at, until, wait)
    }
}

/// A connection of the server.
struct Answering<'a> {
    socket: &'a Socket,
    /// A message on its way in or out.
    bytes: Vec<u8>,
    moved: usize,
    back: bool,
    full: bool,
}

/// The server's thread for some connections: sends every message back when it is whole.
pub fn answer(
    job: &Job,
    phase: &Phase<'_>,
    connections: Vec<(usize, &Socket)>,
) -> Result<Part, NetError> {
    let tick = tick(job.timeout_s);
    let mut wait = waiting(&connections.iter().map(|c| c.1).collect::<Vec<_>>(), job)?;
    let mut part = Part::new(End::default());
    let mut answering: Vec<Answering<'_>> = connections
        .into_iter()
        .map(|(_, socket)| Answering {
            socket,
            bytes: vec![0; job.size as usize],
            moved: 0,
            back: false,
            full: false,
        })
        .collect();
    phase.set_up();
    let (mut ready, mut next_look) = (Vec::new(), 0);
    loop {
        wait.ready(tick, &mut ready).map_err(NetError::io("waiting"))?;
        let mut idle = true;
        for at in &ready {
            idle &= !answering[*at].progress(job, *at, &mut wait, &mut part)?;
        }
        // The client has all its answers when it says that it is done.
        if idle && phase.sent.get().is_some() {
            return Ok(part);
        }
        if idle && now_ns() >= next_look {
            next_look = now_ns() + tick.as_nanos() as u64;
            phase.goes_on()?;
        }
    }
}

impl Answering<'_> {
    /// Whether anything moved.
    fn progress(
        &mut self,
        job: &Job,
        at: usize,
        wait: &mut Wait,
        part: &mut Part,
    ) -> Result<bool, NetError> {
        if !self.back {
            let Step::Moved(count) = receive(self.socket, job, &mut self.bytes[self.moved..])?
            else {
                return Ok(false);
            };
            self.moved += count;
            if self.moved < job.size as usize && !job.transport.loses() {
                return Ok(true);
            }
            // A datagram goes back as it came.
            self.bytes.truncate(self.moved);
            (self.back, self.moved) = (true, 0);
            part.last_ns = now_ns();
        }
        let sent = match send_bytes(self.socket, &self.bytes[self.moved..])? {
            Step::Moved(count) => count,
            Step::Pause => 0,
        };
        self.moved += sent;
        let whole = self.moved == self.bytes.len();
        if whole {
            part.end.messages += 1;
            (self.back, self.moved) = (false, 0);
            self.bytes.resize(job.size as usize, 0);
        }
        look_for(self.socket, at, wait, &mut self.full, !whole)?;
        Ok(sent > 0)
    }
}

/// Waits for room in place of data while a message did not fit.
fn look_for(
    socket: &Socket,
    at: usize,
    wait: &mut Wait,
    full: &mut bool,
    now_full: bool,
) -> Result<(), NetError> {
    if *full != now_full {
        let what = if now_full { For::Room } else { For::Data };
        wait.change(socket, at, what).map_err(NetError::io("waiting"))?;
        *full = now_full;
    }
    Ok(())
}

fn waiting(sockets: &[&Socket], job: &Job) -> Result<Wait, NetError> {
    Wait::new(sockets.iter().copied(), job.busy_poll, For::Data, tick(job.timeout_s))
        .map_err(NetError::io("setting up a data socket"))
}
