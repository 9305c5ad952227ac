//! Ping-pong over sockets.

use socket2::Socket;

use super::clock::now_ns;
use super::content::{MessageContent, MessageSource};
use super::error::NetError;
use super::job::NetJob;
use super::outcome::EndOutcome;
use super::sockets::{SocketStep, receive, send, send_bytes};
use super::wait::{Wait, WaitFor};
use super::workers::{EndPhase, SendUntil, ThreadPart, tick};

/// The state of a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PingState {
    Sending(usize),
    Awaiting(usize),
    Done,
}

struct PingClient<'a> {
    socket: &'a Socket,
    content: MessageContent,
    source: MessageSource,
    /// The current message; numbers continue from one phase to the next.
    number: &'a mut u64,
    remaining: u64,
    at: PingState,
    /// Waits for room in the socket.
    full: bool,
    since_ns: u64,
    /// When the message last made progress.
    moved_ns: u64,
}

/// A client thread: sends on its connections until the phase is over, and records round trips.
pub fn run_client(
    job: &NetJob,
    phase: &EndPhase<'_>,
    connections: Vec<(usize, &Socket, &mut u64)>,
    until: SendUntil,
) -> Result<ThreadPart, NetError> {
    let tick = tick(job.timeout_s);
    let mut wait = waiting(&connections.iter().map(|c| c.1).collect::<Vec<_>>(), job)?;
    let mut buffer = vec![0; job.size as usize];
    let mut part = ThreadPart::new(EndOutcome::timing());
    let mut clients: Vec<PingClient<'_>> = connections
        .into_iter()
        .map(|(connection, socket, number)| {
            let content = MessageContent::new(connection, job.size, false);
            let source = MessageSource::new(content);
            let (left, at) = (until.messages, PingState::Done);
            PingClient {
                socket,
                content,
                source,
                number,
                remaining: left,
                at,
                full: false,
                since_ns: 0,
                moved_ns: 0,
            }
        })
        .collect();
    // A stream's answers arrive in parts, so each connection has a buffer of its own.
    let mut answers = vec![Vec::new(); if clients.len() > 1 { clients.len() } else { 0 }];
    let timeout_ns = (job.timeout_s * 1e9) as u64;
    for (at, one) in clients.iter_mut().enumerate() {
        one.begin(job, at, &until, &mut wait)?;
    }
    let (mut ready, mut next_look) = (Vec::new(), 0);
    while clients.iter().any(|one| one.at != PingState::Done) {
        wait.ready(tick, &mut ready).map_err(NetError::io("waiting"))?;
        for at in &ready {
            let one = &mut clients[*at];
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
        phase.check_running()?;
        for (at, one) in clients.iter_mut().enumerate() {
            // A stream that makes progress is alive, however long its message takes.
            let since = if job.transport.is_lossy() { one.since_ns } else { one.moved_ns };
            if one.at == PingState::Done || now.saturating_sub(since) < timeout_ns {
                continue;
            }
            if !job.transport.is_lossy() {
                return Err(NetError::Timeout { what: "answer", seconds: job.timeout_s });
            }
            part.end.lost += 1;
            one.next(job, at, &until, &mut wait)?;
        }
    }
    Ok(part)
}

impl PingClient<'_> {
    fn begin(
        &mut self,
        job: &NetJob,
        at: usize,
        until: &SendUntil,
        wait: &mut Wait,
    ) -> Result<(), NetError> {
        self.at = PingState::Done;
        if self.remaining == 0 || now_ns() >= until.instant_ns {
            return Ok(());
        }
        self.remaining -= 1;
        self.source.set(*self.number, 0);
        self.at = PingState::Sending(0);
        self.since_ns = now_ns();
        self.moved_ns = self.since_ns;
        self.send(job, at, wait, 0)
    }

    /// Continues with the next message, whatever became of this one.
    fn next(
        &mut self,
        job: &NetJob,
        at: usize,
        until: &SendUntil,
        wait: &mut Wait,
    ) -> Result<(), NetError> {
        *self.number += 1;
        self.begin(job, at, until, wait)
    }

    fn send(
        &mut self,
        job: &NetJob,
        at: usize,
        wait: &mut Wait,
        from: usize,
    ) -> Result<(), NetError> {
        let moved = match send(self.socket, &self.source, from)? {
            SocketStep::Moved(count) => count,
            SocketStep::Pause => 0,
        };
        let whole = from + moved == job.size as usize;
        if moved > 0 && !whole {
            self.moved_ns = now_ns();
        }
        self.at = if whole { PingState::Awaiting(0) } else { PingState::Sending(from + moved) };
        wait_for(self.socket, at, wait, &mut self.full, !whole)
    }

    fn progress(
        &mut self,
        job: &NetJob,
        at: usize,
        until: &SendUntil,
        wait: &mut Wait,
        answer: &mut [u8],
        part: &mut ThreadPart,
    ) -> Result<(), NetError> {
        let from = match self.at {
            PingState::Done => return Ok(()),
            PingState::Sending(from) => return self.send(job, at, wait, from),
            PingState::Awaiting(from) => from,
        };
        let SocketStep::Moved(count) = receive(self.socket, job, &mut answer[from..])? else {
            return Ok(());
        };
        if job.transport.is_lossy() {
            let number = self.content.message_number(&answer[..count], *self.number);
            if number < *self.number {
                // The answer to a message that was given up.
                part.end.late += 1;
                return Ok(());
            }
        } else if from + count < job.size as usize {
            (self.at, self.moved_ns) = (PingState::Awaiting(from + count), now_ns());
            return Ok(());
        }
        let now = now_ns();
        part.end.latency.record(now - self.since_ns);
        part.end.messages += 1;
        part.last_ns = now;
        let whole = &answer[..from + count];
        if whole.len() != job.size as usize || !self.content.matches(*self.number, 0, whole) {
            part.end.corrupt += 1;
        }
        self.next(job, at, until, wait)
    }
}

/// A connection of the server.
struct PingServer<'a> {
    socket: &'a Socket,
    /// The message that is received or sent back.
    bytes: Vec<u8>,
    moved: usize,
    back: bool,
    full: bool,
}

/// A server thread: sends every message back when it is whole.
pub fn run_server(
    job: &NetJob,
    phase: &EndPhase<'_>,
    connections: Vec<(usize, &Socket)>,
) -> Result<ThreadPart, NetError> {
    let tick = tick(job.timeout_s);
    let mut wait = waiting(&connections.iter().map(|c| c.1).collect::<Vec<_>>(), job)?;
    let mut part = ThreadPart::new(EndOutcome::default());
    let mut answering: Vec<PingServer<'_>> = connections
        .into_iter()
        .map(|(_, socket)| PingServer {
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
        // The client has all its answers when it reports its end.
        if idle && phase.sent.get().is_some() {
            return Ok(part);
        }
        if idle && now_ns() >= next_look {
            next_look = now_ns() + tick.as_nanos() as u64;
            phase.check_running()?;
        }
    }
}

impl PingServer<'_> {
    /// Whether anything moved.
    fn progress(
        &mut self,
        job: &NetJob,
        at: usize,
        wait: &mut Wait,
        part: &mut ThreadPart,
    ) -> Result<bool, NetError> {
        if !self.back {
            let SocketStep::Moved(count) =
                receive(self.socket, job, &mut self.bytes[self.moved..])?
            else {
                return Ok(false);
            };
            self.moved += count;
            if self.moved < job.size as usize && !job.transport.is_lossy() {
                return Ok(true);
            }
            // A datagram is sent back as it was received.
            self.bytes.truncate(self.moved);
            (self.back, self.moved) = (true, 0);
            part.last_ns = now_ns();
        }
        let sent = match send_bytes(self.socket, &self.bytes[self.moved..])? {
            SocketStep::Moved(count) => count,
            SocketStep::Pause => 0,
        };
        self.moved += sent;
        let whole = self.moved == self.bytes.len();
        if whole {
            part.end.messages += 1;
            (self.back, self.moved) = (false, 0);
            self.bytes.resize(job.size as usize, 0);
        }
        wait_for(self.socket, at, wait, &mut self.full, !whole)?;
        Ok(sent > 0)
    }
}

/// Waits for room instead of data while a message does not fit.
fn wait_for(
    socket: &Socket,
    at: usize,
    wait: &mut Wait,
    full: &mut bool,
    now_full: bool,
) -> Result<(), NetError> {
    if *full != now_full {
        let what = if now_full { WaitFor::Room } else { WaitFor::Data };
        wait.change(socket, at, what).map_err(NetError::io("waiting"))?;
        *full = now_full;
    }
    Ok(())
}

fn waiting(sockets: &[&Socket], job: &NetJob) -> Result<Wait, NetError> {
    Wait::new(sockets.iter().copied(), job.busy_poll, WaitFor::Data, tick(job.timeout_s))
        .map_err(NetError::io("setting up a data socket"))
}
