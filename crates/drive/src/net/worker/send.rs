//! Sends requests: to a connection of their server, or into the queue for one.

use std::time::Duration;

use model::{Expiry, Op};
use store::wire::{Kind, Request as WireRequest};
use workload::Operation;

use super::super::internal;
use super::super::operation::{NextStep, PendingOperation, PendingRequest};
use super::super::schedule::RequestSchedule;
use super::{NetworkWorker, ring};
use crate::outcome::DriveError;
use crate::source::{OperationSource, SourcedOperation};

impl<A: OperationSource> NetworkWorker<'_, A> {
    pub(super) fn begin(
        &mut self,
        sourced: SourcedOperation,
        due: u64,
        schedule: &mut RequestSchedule,
    ) {
        let operation = sourced.operation;
        if schedule.is_open() && self.queued >= self.queue_limit && self.would_queue(&operation) {
            self.stats.dropped += u64::from(self.in_window);
            self.finish_insert(operation, false);
            return;
        }
        let next_step =
            if operation.op == Op::ReadModifyWrite { NextStep::Write } else { NextStep::End };
        let number = self.pool.begin(PendingOperation {
            next_step,
            ..PendingOperation::new(sourced, due, self.in_window)
        });
        let kind = match operation.op {
            Op::Read | Op::ReadModifyWrite | Op::Scan => Kind::Get,
            Op::Update | Op::Insert => Kind::Set,
            Op::Delete => Kind::Delete,
        };
        let keys = if operation.op == Op::Read { operation.keys.max(1) } else { 1 };
        if keys == 1 || (self.servers.len() == 1 && self.routes.is_none()) {
            let mut request = self.pool.request(number, kind, due);
            for key in 0..keys {
                self.source.key(&operation, key, &mut self.value);
                request.keys.push(&self.value);
            }
            let server = self.server_of(request.keys.get(0), kind);
            self.dispatch(request, server);
        } else {
            self.begin_multi_get(&operation, keys, number, due);
        }
    }

    /// Whether one of its requests finds no connection with a free slot.
    #[cold]
    pub(super) fn would_queue(&mut self, operation: &Operation) -> bool {
        let keys = if operation.op == Op::Read { operation.keys.max(1) } else { 1 };
        (0..keys).any(|key| {
            self.source.key(operation, key, &mut self.value);
            let key = std::mem::take(&mut self.value);
            // Replicas are taken in turn, so this may look at another than will be taken.
            let server = self.server_of(&key, Kind::Set);
            self.value = key;
            self.servers[server].with_room.is_empty()
        })
    }

    /// A multi-get over several servers: one request to each that has one of the keys; of a cluster,
    /// one for each slot.
    pub(super) fn begin_multi_get(
        &mut self,
        operation: &Operation,
        keys: u32,
        number: u32,
        due: u64,
    ) {
        for key in 0..keys {
            self.source.key(operation, key, &mut self.value);
            if let Some(slot) = self.slot_of(&self.value) {
                let known = self.spread_slots.iter().position(|(other, _)| *other == slot);
                let at = known.unwrap_or_else(|| {
                    let request = self.pool.request(number, Kind::Get, due);
                    self.spread_slots.push((slot, request));
                    self.spread_slots.len() - 1
                });
                self.spread_slots[at].1.keys.push(&self.value);
                continue;
            }
            let server = ring::server_of(self.network, self.ejected.as_ref(), &self.value);
            let request = self.spread[server]
                .get_or_insert_with(|| self.pool.request(number, Kind::Get, due));
            request.keys.push(&self.value);
        }
        let mut slots = std::mem::take(&mut self.spread_slots);
        for (_, request) in slots.drain(..) {
            let server = self.server_of(request.keys.get(0), Kind::Get);
            self.dispatch(request, server);
        }
        self.spread_slots = slots;
        for server in 0..self.spread.len() {
            if let Some(request) = self.spread[server].take() {
                self.dispatch(request, server);
            }
        }
    }

    /// Writes a request to a connection of its server, or queues it.
    pub(super) fn dispatch(&mut self, request: PendingRequest, server: usize) {
        self.pool.operation(request.operation).unanswered += 1;
        self.place(request, server);
    }

    /// The same for a request that is counted already.
    pub(super) fn place(&mut self, request: PendingRequest, server: usize) {
        match self.servers[server].with_room.front() {
            Some(&number) => self.write(number, request),
            None => {
                self.servers[server].queue.push_back(request);
                self.queued += 1;
                self.stats.most_queued = self.stats.most_queued.max(self.queued as u64);
            }
        }
    }

    /// Appends a request to the output of a connection.
    pub(super) fn write(&mut self, number: usize, mut request: PendingRequest) {
        let connection = &mut self.connections[number];
        if self.shared.open {
            request.ideal = request.ideal.max(connection.take_slot());
        }
        let PendingRequest { kind, tag, ref keys, .. } = request;
        let mut expiry = Expiry::Never;
        if kind == Kind::Set {
            let sourced = &self.pool.operation(request.operation).sourced;
            expiry = sourced.expiry;
            self.source.value(sourced, keys.get(0), &mut self.value);
        }
        let value: &[u8] = if kind == Kind::Set { &self.value } else { &[] };
        let wire = WireRequest { kind, keys, value, expiry, tag };
        if request.asking {
            self.protocol.write_asking(self.reactor.outgoing(number));
        }
        self.protocol.write(&wire, self.reactor.outgoing(number));
        if self.pool.operation(request.operation).counts && request.kind == Kind::Set {
            self.stats.bytes_written += (request.keys.get(0).len() + value.len()) as u64;
        }
        connection.in_flight.push_back(request);
        if connection.unsent == 0 {
            self.unflushed.push(number);
        }
        connection.unsent += 1;
        let with_room = &mut self.servers[connection.server].with_room;
        let full = connection.in_flight.len() >= self.depth;
        debug_assert_eq!(with_room.front(), Some(&number));
        // A closed loop fills a connection before the next; an open loop alternates.
        if full || self.shared.open {
            with_room.pop_front();
            connection.listed = !full;
            if !full {
                with_room.push_back(number);
            }
        }
    }

    /// Hands the output to the kernel. In an open loop each connection is sent before the next is
    /// stamped: io_uring would send all of them with the next wait, so that the client's work for
    /// the first would count as service time of the last. In a closed loop they share a system
    /// call, and their times begin before it.
    pub(super) fn send(&mut self) -> Result<(), DriveError> {
        if self.unflushed.is_empty() {
            return Ok(());
        }
        let apart = self.shared.open && self.unflushed.len() > 1;
        let begin = self.clock.now();
        let mut now = begin;
        for number in self.unflushed.drain(..) {
            let connection = &mut self.connections[number];
            let first = connection.in_flight.len() - connection.unsent;
            for request in connection.in_flight.range_mut(first..) {
                let pending = self.pool.operation(request.operation);
                if pending.sent == 0 {
                    pending.sent = now;
                }
                request.since = now;
                if request.begun == 0 {
                    request.begun = now;
                }
            }
            connection.unsent = 0;
            self.reactor.send(number);
            if apart {
                self.reactor.poll(Some(Duration::ZERO)).map_err(internal)?;
            }
            now = self.clock.now();
        }
        self.stats.in_store += now - begin;
        Ok(())
    }

    /// Sends queued requests when a connection has free slots again.
    pub(super) fn refill_connection(&mut self, number: usize, now: u64) {
        let connection = &mut self.connections[number];
        let stopped = self.gave_up || self.shared.gate.stopped();
        if stopped && self.routes.is_none() {
            return;
        }
        // A closed loop refills a connection only when half of it is answered, so that requests
        // share a write.
        let most = if self.shared.open { self.depth - 1 } else { self.depth / 2 };
        if connection.listed || connection.down.is_some() || connection.in_flight.len() > most {
            return;
        }
        connection.listed = true;
        let server = connection.server;
        self.servers[server].with_room.push_back(number);
        while !self.servers[server].with_room.is_empty()
            && let Some(request) =
                self.servers[server].queue.pop_front_if(|request| !stopped || request.begun != 0)
        {
            self.queued -= 1;
            let pending = self.pool.operation(request.operation);
            pending.queued = pending.queued.max(now.saturating_sub(request.since));
            if let Some(&number) = self.servers[server].with_room.front() {
                self.write(number, request);
            }
        }
    }
}
