//! Requests on their way: to a connection of their server, or into the queue for one.

use std::time::Duration;

use model::{Expiry, Op};
use store::wire::{Kind, Request as WireRequest};
use workload::Operation;

use super::super::demand::RequestSchedule;
use super::super::internal;
use super::super::operation::{NextStep, PendingOperation, PendingRequest};
use super::NetworkWorker;
use crate::asks::{OperationSource, SourcedOperation};
use crate::outcome::DriveError;

impl<A: OperationSource> NetworkWorker<'_, A> {
    pub(super) fn begin(
        &mut self,
        asked: SourcedOperation,
        due: u64,
        demand: &mut RequestSchedule,
    ) {
        let ask = asked.ask;
        if demand.is_open() && self.queued >= self.queue_limit && self.would_wait(&ask) {
            self.seen.dropped += u64::from(self.in_window);
            self.insert_ended(ask, false);
            return;
        }
        let then = if ask.op == Op::ReadModifyWrite { NextStep::Write } else { NextStep::End };
        let number = self
            .pool
            .begin(PendingOperation { then, ..PendingOperation::new(asked, due, self.in_window) });
        let kind = match ask.op {
            Op::Read | Op::ReadModifyWrite | Op::Scan => Kind::Get,
            Op::Update | Op::Insert => Kind::Set,
            Op::Delete => Kind::Delete,
        };
        let keys = if ask.op == Op::Read { ask.keys.max(1) } else { 1 };
        if keys == 1 || self.servers.len() == 1 {
            let mut request = self.pool.request(number, kind, due);
            for key in 0..keys {
                self.asks.key(&ask, key, &mut self.value);
                request.keys.push(&self.value);
            }
            let server = self.network.server_of(request.keys.get(0));
            self.place(request, server);
        } else {
            self.begin_spread(&ask, keys, number, due);
        }
    }

    /// Whether a request of it finds no connection with room.
    #[cold]
    pub(super) fn would_wait(&mut self, ask: &Operation) -> bool {
        let keys = if ask.op == Op::Read { ask.keys.max(1) } else { 1 };
        (0..keys).any(|key| {
            self.asks.key(ask, key, &mut self.value);
            self.servers[self.network.server_of(&self.value)].with_room.is_empty()
        })
    }

    /// A multi-get over several servers: one request to each that has one of the keys.
    pub(super) fn begin_spread(&mut self, ask: &Operation, keys: u32, number: u32, due: u64) {
        for key in 0..keys {
            self.asks.key(ask, key, &mut self.value);
            let server = self.network.server_of(&self.value);
            let request = self.spread[server]
                .get_or_insert_with(|| self.pool.request(number, Kind::Get, due));
            request.keys.push(&self.value);
        }
        for server in 0..self.spread.len() {
            if let Some(request) = self.spread[server].take() {
                self.place(request, server);
            }
        }
    }

    /// Gives a request to a connection of its server, or lets it wait for one.
    pub(super) fn place(&mut self, request: PendingRequest, server: usize) {
        self.pool.operation(request.operation).left += 1;
        match self.servers[server].with_room.front() {
            Some(&number) => self.write(number, request),
            None => {
                self.servers[server].queue.push_back(request);
                self.queued += 1;
                self.seen.most_queued = self.seen.most_queued.max(self.queued as u64);
            }
        }
    }

    /// Appends a request to what the next connection with room will send.
    pub(super) fn write(&mut self, number: usize, mut request: PendingRequest) {
        let line = &mut self.lines[number];
        if self.shared.open {
            request.ideal = request.ideal.max(line.take_slot());
        }
        let PendingRequest { kind, tag, ref keys, .. } = request;
        let mut expiry = Expiry::Never;
        if kind == Kind::Set {
            let asked = &self.pool.operation(request.operation).asked;
            expiry = asked.expiry;
            self.asks.value(asked, keys.get(0), &mut self.value);
        }
        let value: &[u8] = if kind == Kind::Set { &self.value } else { &[] };
        let wire = WireRequest { kind, keys, value, expiry, tag };
        self.protocol.write(&wire, self.reactor.outgoing(number));
        if self.pool.operation(request.operation).counts && request.kind == Kind::Set {
            self.seen.bytes_written += (request.keys.get(0).len() + value.len()) as u64;
        }
        line.under_way.push_back(request);
        if line.unsent == 0 {
            self.touched.push(number);
        }
        line.unsent += 1;
        let with_room = &mut self.servers[line.server].with_room;
        let full = line.under_way.len() >= self.depth;
        debug_assert_eq!(with_room.front(), Some(&number));
        // A closed loop fills a connection before it turns to the next; an open one takes turns.
        if full || self.shared.open {
            with_room.pop_front();
            line.listed = !full;
            if !full {
                with_room.push_back(number);
            }
        }
    }

    /// Hands what was written to the kernel. In an open loop each connection's requests are with
    /// it before the next are stamped: io_uring would send all of them with the next wait, and
    /// what the client is busy with the first would count as the server's with the last. In a
    /// closed loop they share a system call, and their times begin before it.
    pub(super) fn send(&mut self) -> Result<(), DriveError> {
        if self.touched.is_empty() {
            return Ok(());
        }
        let apart = self.shared.open && self.touched.len() > 1;
        let begin = self.clock.now();
        let mut now = begin;
        for number in self.touched.drain(..) {
            let line = &mut self.lines[number];
            let first = line.under_way.len() - line.unsent;
            for request in line.under_way.range_mut(first..) {
                let operation = self.pool.operation(request.operation);
                if operation.sent == 0 {
                    operation.sent = now;
                }
                request.since = now;
            }
            line.unsent = 0;
            self.reactor.send(number);
            if apart {
                self.reactor.poll(Some(Duration::ZERO)).map_err(internal)?;
            }
            now = self.clock.now();
        }
        self.seen.in_store += now - begin;
        Ok(())
    }

    /// A connection may have room again: what waits for it goes out.
    pub(super) fn refill_line(&mut self, number: usize, now: u64) {
        let line = &mut self.lines[number];
        if self.gave_up || self.shared.gate.stopped() {
            return;
        }
        // A closed loop refills a connection when half of it is answered, so that several
        // requests share a write.
        let most = if self.shared.open { self.depth - 1 } else { self.depth / 2 };
        if line.listed || line.down.is_some() || line.under_way.len() > most {
            return;
        }
        line.listed = true;
        let server = line.server;
        self.servers[server].with_room.push_back(number);
        while !self.servers[server].with_room.is_empty()
            && let Some(request) = self.servers[server].queue.pop_front()
        {
            self.queued -= 1;
            let operation = self.pool.operation(request.operation);
            operation.queued = operation.queued.max(now.saturating_sub(request.since));
            if let Some(&number) = self.servers[server].with_room.front() {
                self.write(number, request);
            }
        }
    }
}
