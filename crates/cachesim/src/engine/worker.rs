//! A core that takes packets from its receive ring and answers them.

use std::collections::VecDeque;

use model::random::{Draws, below};

use super::regions::{Region, Regions};
use super::socket::{Dependence, Packet, Socket};
use super::time::{Picos, of_seconds};
use crate::cache::LINE;
use crate::describe::machine::SimulatedMachine;
use crate::describe::traffic::Traffic;
use crate::pool::{Buffer, Pool};

/// Receive descriptors and send descriptors in one line.
const DESCRIPTORS_PER_LINE: u64 = 4;
/// Descriptors that are filled at a time, at most: mlx5's vector receive.
const REFILL: usize = 64;
/// Sent packets that the card reports at a time, at most: mlx5 asks for one completion for half as
/// many (`MLX5_TX_COMP_THRESH`), and the last ones are not done when the next are asked for. Their
/// buffers come back together.
const RECLAIM: usize = 64;
/// The card fetches the descriptors of so many packets or more together when they are posted
/// together; of fewer, one by one.
const FETCHED_TOGETHER: usize = 6;
/// Poll interval of an idle worker.
const POLL_INTERVAL: Picos = 200_000;

/// The rings of one worker as its core and the card see them.
#[derive(Debug)]
pub struct Rings {
    /// Buffers for packets to come.
    pub posted: VecDeque<Buffer>,
    /// Received packets that were not taken.
    pub ready: VecDeque<Packet>,
    /// Packets to be sent.
    pub sending: VecDeque<Packet>,
    /// Buffers of packets that were sent, and since when; not yet reclaimed.
    pub sent: VecDeque<(Picos, Buffer)>,
    pub receive_ring: Region,
    pub completions: Region,
    pub send_ring: Region,
    /// Packets received and sent since the beginning: positions in the rings.
    pub received: u64,
    pub fetched: u64,
    /// No packet of it is fetched before then.
    pub send_free: Picos,
}

/// The work on a packet.
#[derive(Debug)]
enum Work {
    Forward,
    Read { stride: u64, behind: usize, copy: Option<(Region, u64)>, pending: VecDeque<Packet> },
    Store { index: Region, lookups: u64, values: Region, value: u64, shape: f64 },
}

#[derive(Debug)]
pub struct Worker {
    core: usize,
    pub rings: Rings,
    pub idle: bool,
    work: Work,
    /// Memory of the program, and the lines of it that a packet touches.
    program: Option<(Region, u64)>,
    outgoing: Vec<Packet>,
    software: VecDeque<Packet>,
    draws: Draws,
    receive: usize,
    send: usize,
    queue: usize,
    burst: usize,
    cycles: Picos,
    /// Of a poll that finds packets, besides those per packet.
    turn: Picos,
    posts: u64,
    refills: u64,
    taken: u64,
    /// Lines from the beginning of a buffer to its data, and lines of its descriptor.
    offset: u32,
    described: u32,
    stride: u32,
    reply: u32,
    prefetch: Prefetch,
    /// Its last poll found nothing.
    rested: bool,
}

/// Lines after the first of a packet that the core's prefetchers fetch.
#[derive(Debug)]
struct Prefetch {
    /// If the core was idle before the packet.
    rested: u32,
    /// If it came from another packet.
    busy: u32,
}

/// When a worker continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerNext {
    At(Picos),
    /// When a packet arrives.
    Idle,
}

impl Worker {
    pub fn new(
        core: usize,
        machine: &SimulatedMachine,
        traffic: &Traffic,
        regions: &mut Regions,
        shared: Option<(Region, Region)>,
        program: Option<(Region, u64)>,
    ) -> Worker {
        let queues = &traffic.queues;
        let receive = queues.receive.get_ref().0;
        let send = queues.send.get_ref().0;
        let workers = &traffic.workers;
        let mut reply = 0;
        let work = match (&workers.read, &workers.store, shared) {
            (_, Some(store), Some((index, values))) => {
                reply = store.value.get_ref().0 as u32;
                Work::Store {
                    index,
                    lookups: store.lookups.0,
                    values,
                    value: store.value.get_ref().0,
                    shape: 1.0 / (1.0 - store.skew.as_ref().map_or(0.0, |skew| *skew.get_ref())),
                }
            }
            (Some(read), _, _) => Work::Read {
                stride: read.stride.get_ref().0,
                behind: read.behind.0 as usize,
                copy: read.copy.map(|bytes| (regions.take(bytes.0.max(LINE)), 0)),
                pending: VecDeque::new(),
            },
            _ => Work::Forward,
        };
        let offset = (traffic.pool.offset.get_ref().0 / LINE) as u32;
        Worker {
            core,
            rings: Rings {
                posted: VecDeque::with_capacity(receive as usize),
                ready: VecDeque::with_capacity(receive as usize),
                sending: VecDeque::with_capacity(send as usize),
                sent: VecDeque::with_capacity(send as usize),
                receive_ring: regions.take(receive * LINE / DESCRIPTORS_PER_LINE),
                completions: regions.take(receive * LINE),
                send_ring: regions.take(send * LINE / DESCRIPTORS_PER_LINE),
                received: 0,
                fetched: 0,
                send_free: 0,
            },
            idle: false,
            work,
            program,
            outgoing: Vec::new(),
            software: VecDeque::new(),
            draws: Draws::from(traffic.seed ^ (core as u64 + 1) << 40),
            receive: receive as usize,
            send: send as usize,
            queue: queues.software.get_ref().0 as usize,
            burst: queues.burst.get_ref().0 as usize,
            cycles: of_seconds(workers.cycles.0 / machine.frequency.0),
            turn: of_seconds(workers.turn.0 / machine.frequency.0),
            posts: 0,
            refills: 0,
            taken: 0,
            offset,
            // The descriptor of a buffer lies in front of its headroom.
            described: if offset >= 3 { 2 } else { 0 },
            stride: (traffic.pool.stride.get_ref().0 / LINE) as u32,
            reply,
            prefetch: Prefetch {
                rested: machine.private.prefetch,
                busy: machine.private.prefetch_busy.unwrap_or(machine.private.prefetch),
            },
            rested: true,
        }
    }

    /// Fills the receive ring before the first packet comes.
    pub fn fill(&mut self, pool: &mut Pool) {
        pool.fill(self.receive, &mut self.rings.posted);
        self.refills = self.rings.posted.len() as u64;
    }

    /// Buffers that this worker and its rings hold.
    pub fn buffers_held(&self) -> usize {
        let pending = match &self.work {
            Work::Read { pending, .. } => pending.len(),
            _ => 0,
        };
        let rings = &self.rings;
        rings.posted.len()
            + rings.ready.len()
            + rings.sending.len()
            + rings.sent.len()
            + self.outgoing.len()
            + self.software.len()
            + pending
    }

    /// One turn: posts packets to the card, refills the receive ring, takes a burst and answers it.
    /// Returns the next turn, and whether the card got packets to send.
    pub fn turn(&mut self, now: Picos, socket: &mut Socket, pool: &mut Pool) -> (WorkerNext, bool) {
        self.software.extend(self.outgoing.drain(..));
        let mut spent = 0;
        let sends = self.send(now, &mut spent, socket, pool);
        if self.software.len() > self.queue {
            // Blocked until the send ring has room.
            let last = self.reported_together() - 1;
            let next = self.rings.sent.get(last).map_or(now + POLL_INTERVAL, |(at, _)| *at);
            return (WorkerNext::At(next.max(now + spent + 1)), sends);
        }
        self.refill(now, &mut spent, socket, pool);
        let ready = self.rings.ready.iter().take(self.burst);
        let count = ready.take_while(|packet| packet.visible <= now).count();
        let rested = std::mem::replace(&mut self.rested, count == 0);
        if count == 0 {
            let next = match self.rings.ready.front() {
                Some(packet) => WorkerNext::At(packet.visible.max(now + spent)),
                None if !self.software.is_empty() => WorkerNext::At(now + spent.max(POLL_INTERVAL)),
                None if self.rings.posted.len() < self.receive => {
                    WorkerNext::At(now + spent.max(POLL_INTERVAL))
                }
                None => WorkerNext::Idle,
            };
            self.idle = next == WorkerNext::Idle;
            return (next, sends);
        }
        for _ in 0..count {
            if let Some(packet) = self.rings.ready.pop_front() {
                spent += self.cycles;
                self.answer(packet, rested, now, &mut spent, socket, pool);
            }
        }
        spent += self.turn;
        socket.tally.busy += spent;
        (WorkerNext::At(now + spent), sends)
    }

    /// Reclaims sent buffers and posts packets to be sent.
    fn send(
        &mut self,
        now: Picos,
        spent: &mut Picos,
        socket: &mut Socket,
        pool: &mut Pool,
    ) -> bool {
        if self.software.is_empty() {
            return false;
        }
        let done = self.rings.sent.iter().take_while(|(at, _)| *at <= now).count();
        let done = done - done % self.reported_together();
        pool.give(self.core, self.rings.sent.drain(..done).map(|(_, buffer)| buffer));
        let room = self.send - (self.rings.sending.len() + self.rings.sent.len()).min(self.send);
        let count = room.min(self.software.len());
        for (i, packet) in self.software.drain(..count).enumerate() {
            if self.posts.is_multiple_of(DESCRIPTORS_PER_LINE) {
                let line = self.rings.send_ring.round(self.posts / DESCRIPTORS_PER_LINE);
                *spent +=
                    socket.worker_access(self.core, line, true, now + *spent, Dependence::Free);
            }
            self.posts += 1;
            let ends_fetch = count < FETCHED_TOGETHER || i + 1 == count;
            self.rings.sending.push_back(Packet { ends_fetch, ..packet });
        }
        count > 0
    }

    /// Sent packets per completion.
    fn reported_together(&self) -> usize {
        RECLAIM.min(self.send / 4).max(1)
    }

    fn refill(&mut self, now: Picos, spent: &mut Picos, socket: &mut Socket, pool: &mut Pool) {
        let missing = self.receive - self.rings.posted.len() - self.rings.ready.len();
        if missing < REFILL.min(self.receive / 4).max(1) {
            return;
        }
        if !pool.take(self.core, missing, &mut self.rings.posted) {
            return;
        }
        for _ in 0..missing {
            if self.refills.is_multiple_of(DESCRIPTORS_PER_LINE) {
                let line = self.rings.receive_ring.round(self.refills / DESCRIPTORS_PER_LINE);
                *spent +=
                    socket.worker_access(self.core, line, true, now + *spent, Dependence::Free);
            }
            self.refills += 1;
        }
    }

    fn answer(
        &mut self,
        packet: Packet,
        rested: bool,
        now: Picos,
        spent: &mut Picos,
        socket: &mut Socket,
        pool: &mut Pool,
    ) {
        let core = self.core;
        let mut wait = |socket: &mut Socket, line, write, dependence| {
            *spent += socket.worker_access(core, line, write, now + *spent, dependence);
        };
        if let Some((memory, lookups)) = self.program {
            for _ in 0..lookups {
                wait(socket, memory.drawn(self.draws.next()), false, Dependence::Chained);
            }
        }
        let mut access = |socket: &mut Socket, line, write| {
            wait(socket, line, write, Dependence::Free);
        };
        let base = packet.buffer * self.stride;
        if let Some(line) = socket.completion_line(self.taken) {
            access(socket, self.rings.completions.round(line), false);
        }
        self.taken += 1;
        for line in 1..=self.described {
            access(socket, base + line, true);
        }
        let data = base + self.offset;
        match &mut self.work {
            Work::Forward => {
                access(socket, data, true);
                let lines = packet.bytes.div_ceil(LINE as u32);
                let Prefetch { rested: more, busy: few } = self.prefetch;
                for line in 1..lines.min(1 + if rested { more } else { few }) {
                    socket.prefetch(core, data + line, now);
                }
                self.outgoing.push(packet);
            }
            Work::Read { stride, behind, copy, pending } => {
                access(socket, data, false);
                pending.push_back(packet);
                if pending.len() <= *behind {
                    return;
                }
                let Some(packet) = pending.pop_front() else { return };
                let data = packet.buffer * self.stride + self.offset;
                let mut at = 0;
                while at < u64::from(packet.bytes) {
                    wait(socket, data + (at / LINE) as u32, false, Dependence::Stream);
                    if let Some((region, position)) = copy {
                        wait(socket, region.round(*position), true, Dependence::Stream);
                        *position += 1;
                    }
                    at += *stride;
                }
                let took = now + *spent - packet.arrived;
                socket.finish(took, 0);
                pool.give(core, [packet.buffer]);
            }
            Work::Store { index, lookups, values, value, shape } => {
                for line in 0..packet.bytes.div_ceil(LINE as u32) {
                    access(socket, data + line, false);
                }
                for _ in 0..*lookups {
                    access(socket, index.drawn(self.draws.next()), false);
                }
                let lines = value.div_ceil(LINE);
                let count = u64::from(values.lines) / lines;
                // A power of a uniform number: rank r has popularity r^-skew.
                let share = self.draws.unit().powf(*shape);
                let rank = ((count as f64 * share) as u64).min(count - 1);
                // Popular values are scattered.
                let place = below(model::random::mix(rank), count) * lines;
                let mut reply = VecDeque::new();
                if !pool.take(core, 1, &mut reply) {
                    // No buffer for an answer: the request is lost.
                    pool.give(core, [packet.buffer]);
                    return;
                }
                let buffer = reply[0];
                let into = buffer * self.stride + self.offset;
                for line in 0..lines {
                    access(socket, values.first + (place + line) as u32, false);
                    access(socket, into + line as u32, true);
                }
                pool.give(core, [packet.buffer]);
                self.outgoing.push(Packet { buffer, bytes: self.reply, ..packet });
            }
        }
    }
}
