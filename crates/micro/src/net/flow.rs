//! One-way flow over sockets.

use std::time::Duration;

use socket2::Socket;

use super::clock::now_ns;
use super::content::{MessageContent, MessageSource};
use super::error::NetError;
use super::job::NetJob;
use super::outcome::EndOutcome;
use super::sockets::{SocketStep, receive, send};
use super::touch::{DatagramTouch, Delays, StreamTouch};
use super::wait::{Wait, WaitFor};
use super::workers::{EndPhase, SendUntil, ThreadPart, tick};

/// Messages on one connection before the next one is served.
const BURST: u32 = 16;
/// Shortest sleep of a sender with a rate.
const MIN_SLEEP: Duration = Duration::from_micros(100);

/// How long to wait for another datagram after the last one.
pub const DRAIN_TIME: Duration = Duration::from_millis(200);

struct FlowSender<'a> {
    socket: &'a Socket,
    source: MessageSource,
    number: u64,
    remaining: u64,
    /// Bytes of the current message that are sent.
    at: usize,
}

/// Paces the messages of a thread.
pub struct Pace {
    began_ns: u64,
    rate: Option<f64>,
    sent: u64,
    busy: bool,
}

impl Pace {
    /// A share of the cell's rate.
    pub fn new(job: &NetJob, connections: usize) -> Pace {
        let share = connections as f64 / f64::from(job.connections);
        let rate = job.rate.map(|rate| rate * share);
        Pace { began_ns: now_ns(), rate, sent: 0, busy: job.busy_poll }
    }

    /// Whether a message is due; sleeps a little if it is far off.
    pub fn allows(&self) -> bool {
        let Some(rate) = self.rate else { return true };
        let due = self.began_ns + (self.sent as f64 / rate * 1e9) as u64;
        let Some(early) = due.checked_sub(now_ns()).filter(|early| *early > 0) else { return true };
        let early = Duration::from_nanos(early);
        if !self.busy && early > MIN_SLEEP {
            std::thread::sleep((early - MIN_SLEEP).min(Duration::from_millis(10)));
        }
        false
    }

    pub fn record_sent(&mut self) {
        self.sent += 1;
    }
}

/// A client thread: sends on its connections until the phase is over.
pub fn send_all(
    job: &NetJob,
    phase: &EndPhase<'_>,
    connections: Vec<(usize, &Socket, &mut u64)>,
    until: SendUntil,
) -> Result<ThreadPart, NetError> {
    let tick = tick(job.timeout_s);
    let sockets: Vec<&Socket> = connections.iter().map(|c| c.1).collect();
    let mut wait = Wait::new(sockets.iter().copied(), job.busy_poll, WaitFor::Room, tick)
        .map_err(NetError::io("setting up a data socket"))?;
    let mut part = ThreadPart::new(EndOutcome::default());
    let mut pace = Pace::new(job, connections.len());
    let (mut counts, mut sending) = (Vec::new(), Vec::new());
    for (connection, socket, count) in connections {
        let source = MessageSource::new(MessageContent::new(connection, job.size, true));
        sending.push(FlowSender { socket, source, number: 0, remaining: until.messages, at: 0 });
        counts.push(count);
    }
    let (mut ready, mut next_look, mut moved_ns) = (Vec::new(), 0, now_ns());
    let timeout_ns = (job.timeout_s * 1e9) as u64;
    let mut over = false;
    loop {
        wait.ready(tick, &mut ready).map_err(NetError::io("waiting"))?;
        let mut moved = false;
        for at in &ready {
            moved |= sending[*at].progress(job, &mut pace, over)?;
        }
        let now = now_ns();
        over |= now >= until.instant_ns;
        if moved {
            (moved_ns, part.last_ns) = (now, now);
        }
        // A message that was begun is completed, or the stream would be torn.
        if sending.iter().all(|one| one.at == 0 && (over || one.remaining == 0)) {
            break;
        }
        if now >= next_look {
            next_look = now + tick.as_nanos() as u64;
            phase.check_running()?;
            let paused = job.rate.is_some() && sending.iter().all(|one| one.at == 0);
            if !paused && now - moved_ns > timeout_ns {
                return Err(NetError::Timeout {
                    what: "room for more data",
                    seconds: job.timeout_s,
                });
            }
        }
    }
    for (one, count) in sending.iter().zip(counts) {
        *count = one.number;
        part.end.messages += one.number;
    }
    Ok(part)
}

impl FlowSender<'_> {
    /// Sends messages as far as there is room. Returns whether anything moved.
    fn progress(&mut self, job: &NetJob, pace: &mut Pace, over: bool) -> Result<bool, NetError> {
        let mut moved = false;
        for _ in 0..BURST {
            if self.at == 0 {
                if over || self.remaining == 0 || !pace.allows() {
                    return Ok(moved);
                }
                let stamp = match self.number.is_multiple_of(job.stamp_every()) {
                    true => now_ns(),
                    false => 0,
                };
                self.source.set(self.number, stamp);
            }
            let SocketStep::Moved(count) = send(self.socket, &self.source, self.at)? else {
                return Ok(moved);
            };
            moved = true;
            self.at += count;
            if self.at < job.size as usize {
                continue;
            }
            self.at = 0;
            self.number += 1;
            self.remaining -= 1;
            pace.record_sent();
        }
        Ok(moved)
    }
}

enum FlowTouch {
    Stream(StreamTouch),
    Datagrams(DatagramTouch),
}

struct FlowReceiver<'a> {
    number: usize,
    socket: &'a Socket,
    touch: FlowTouch,
    end: EndOutcome,
}

/// A server thread: receives and touches until its connections are complete or nothing arrives
/// any more.
pub fn receive_all(
    job: &NetJob,
    phase: &EndPhase<'_>,
    connections: Vec<(usize, &Socket)>,
    shared_clock: bool,
) -> Result<ThreadPart, NetError> {
    let tick = tick(job.timeout_s);
    let sockets: Vec<&Socket> = connections.iter().map(|c| c.1).collect();
    let mut wait = Wait::new(sockets.iter().copied(), job.busy_poll, WaitFor::Data, tick)
        .map_err(NetError::io("setting up a data socket"))?;
    let mut receiving: Vec<FlowReceiver<'_>> =
        connections.into_iter().map(|(n, s)| FlowReceiver::new(job, n, s, shared_clock)).collect();
    phase.set_up();
    let mut part = ThreadPart::new(EndOutcome::timing());
    let (mut first, mut ready, mut next_look) = (None, Vec::new(), 0);
    loop {
        wait.ready(tick, &mut ready).map_err(NetError::io("waiting"))?;
        let mut moved = false;
        for at in &ready {
            moved |= receiving[*at].progress(job)?;
        }
        let now = now_ns();
        if moved {
            part.last_ns = now;
            first.get_or_insert(now);
        }
        if let Some(sent) = phase.sent.get() {
            let idle = now.saturating_sub(part.last_ns) > DRAIN_TIME.as_nanos() as u64;
            let whole = receiving.iter().all(|one| one.is_complete(job, sent));
            if whole || (job.transport.is_lossy() && idle) {
                break;
            }
            if !job.transport.is_lossy()
                && now.saturating_sub(part.last_ns) > (job.timeout_s * 1e9) as u64
            {
                return Err(NetError::Timeout {
                    what: "rest of the stream",
                    seconds: job.timeout_s,
                });
            }
        }
        if now >= next_look {
            next_look = now + tick.as_nanos() as u64;
            phase.check_running()?;
        }
    }
    part.first_ns = first.unwrap_or(part.last_ns);
    let sent = phase.sent.get();
    for one in &mut receiving {
        match &mut one.touch {
            FlowTouch::Stream(touch) => touch.finish(job, &mut one.end),
            FlowTouch::Datagrams(touch) => touch.finish(job, &mut one.end),
        }
        let sent = sent.and_then(|sent| sent.get(one.number)).copied().unwrap_or_default();
        one.end.lost = sent.saturating_sub(one.end.messages);
        part.end.add(&one.end);
    }
    Ok(part)
}

impl<'a> FlowReceiver<'a> {
    fn new(
        job: &NetJob,
        number: usize,
        socket: &'a Socket,
        shared_clock: bool,
    ) -> FlowReceiver<'a> {
        let content = MessageContent::new(number, job.size, true);
        let delays = Delays::new(job, shared_clock);
        let touch = match job.transport.is_lossy() {
            true => FlowTouch::Datagrams(DatagramTouch::new(content, job, delays)),
            false => FlowTouch::Stream(StreamTouch::new(content, job, delays)),
        };
        FlowReceiver { number, socket, touch, end: EndOutcome::timing() }
    }

    fn progress(&mut self, job: &NetJob) -> Result<bool, NetError> {
        let space = match &mut self.touch {
            FlowTouch::Stream(touch) => touch.space(),
            FlowTouch::Datagrams(touch) => touch.space(job),
        };
        let SocketStep::Moved(count) = receive(self.socket, job, space)? else { return Ok(false) };
        match &mut self.touch {
            FlowTouch::Stream(touch) => touch.take(count, job, &mut self.end),
            FlowTouch::Datagrams(touch) => touch.take(count, job, &mut self.end),
        }
        Ok(true)
    }

    /// Whether everything that was sent has arrived.
    fn is_complete(&self, job: &NetJob, sent: &[u64]) -> bool {
        let sent = sent.get(self.number).copied().unwrap_or_default();
        match &self.touch {
            FlowTouch::Stream(touch) => touch.received() >= sent * job.size,
            FlowTouch::Datagrams(touch) => touch.arrived() >= sent,
        }
    }
}
