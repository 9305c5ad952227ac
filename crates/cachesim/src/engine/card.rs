//! The network card: writes received packets into posted buffers and reads packets to be sent.

use super::arrivals::{Arrival, FRAMING};
use super::socket::{Packet, Socket};
use super::time::{Picos, SECOND, of_span};
use super::worker::{Rings, Worker};
use crate::cache::LINE;
use crate::describe::machine::SimulatedMachine;
use crate::describe::traffic::Traffic;

/// Descriptors in a line.
const DESCRIPTORS_PER_LINE: u64 = 4;

#[derive(Debug)]
pub struct Card {
    /// Picoseconds a byte, on the bus and on the wire.
    bus_byte: f64,
    wire_byte: f64,
    latency: Picos,
    window: f64,
    /// How long before the wire is free a packet is fetched.
    ahead: Picos,
    send_packet: Picos,
    send_missed: Picos,
    send_fetch: Picos,
    buffer: f64,
    write_free: Picos,
    wire_free: Picos,
    /// It is fetching packets: a turn to send is under way.
    pub sending: bool,
    next_queue: usize,
    stride: u32,
    offset: u32,
}

impl Card {
    pub fn new(machine: &SimulatedMachine, traffic: &Traffic) -> Card {
        let wire_byte = SECOND * 8.0 / machine.card.line_rate.get_ref().0;
        let latency = of_span(machine.bus.latency);
        let window = machine.bus.read_window.get_ref().0 as f64;
        let ahead = machine.card.ahead.map_or(window, |bytes| bytes.0 as f64);
        Card {
            bus_byte: SECOND / machine.bus.bandwidth.get_ref().0,
            wire_byte,
            latency,
            window,
            ahead: (ahead * wire_byte) as Picos + latency,
            send_packet: machine.card.send_packet.map_or(0, of_span),
            send_missed: machine.card.send_missed.map_or(0, of_span),
            send_fetch: machine.card.send_fetch.map_or(0, of_span),
            buffer: machine.card.buffer.0 as f64,
            write_free: 0,
            wire_free: 0,
            sending: false,
            next_queue: 0,
            stride: (traffic.pool.stride.get_ref().0 / LINE) as u32,
            offset: (traffic.pool.offset.get_ref().0 / LINE) as u32,
        }
    }

    /// Receives a packet; returns when its worker can see it, unless it was dropped.
    pub fn receive(
        &mut self,
        arrival: Arrival,
        worker: &mut Worker,
        socket: &mut Socket,
    ) -> Option<Picos> {
        let now = arrival.at;
        socket.tally.offered += 1;
        let start = now.max(self.write_free);
        if (start - now) as f64 > self.buffer * self.bus_byte {
            socket.tally.card_full += 1;
            return None;
        }
        let rings = &mut worker.rings;
        let Some(buffer) = rings.posted.pop_front() else {
            socket.tally.no_descriptor += 1;
            return None;
        };
        if rings.received.is_multiple_of(DESCRIPTORS_PER_LINE) {
            let line = rings.receive_ring.round(rings.received / DESCRIPTORS_PER_LINE);
            socket.card_reads(line, 1, now);
        }
        let first = buffer * self.stride + self.offset;
        let lines = arrival.bytes.div_ceil(LINE as u32);
        let part = !u64::from(arrival.bytes).is_multiple_of(LINE);
        socket.card_writes(first, lines, part, now);
        if let Some(line) = socket.completion_line(rings.received) {
            socket.card_writes(rings.completions.round(line), 1, false, now);
        }
        rings.received += 1;
        // Writes that wait for memory block the bus.
        let bus = f64::from(arrival.bytes) * self.bus_byte * socket.dram.stretch(start);
        let done = start + bus as Picos;
        self.write_free = done;
        let visible = done + self.latency;
        rings.ready.push_back(Packet {
            buffer,
            bytes: arrival.bytes,
            arrived: now,
            visible,
            ends_fetch: false,
        });
        socket.tally.received += 1;
        socket.tally.received_bytes += u64::from(arrival.bytes);
        Some(visible)
    }

    /// Fetches one packet of the next queue that has one and sends it; returns when the next can be
    /// fetched, unless there is none.
    pub fn send(
        &mut self,
        now: Picos,
        workers: &mut [Worker],
        socket: &mut Socket,
    ) -> Option<Picos> {
        let queues = workers.len();
        let turns = (0..queues).map(|i| (self.next_queue + i) % queues);
        // The first that is ready, else the one that is soonest.
        let own = turns
            .filter(|i| !workers[*i].rings.sending.is_empty())
            .min_by_key(|i| workers[*i].rings.send_free.max(now));
        let Some(own) = own else {
            self.sending = false;
            return None;
        };
        let ready = workers[own].rings.send_free;
        if ready > now {
            return Some(ready);
        }
        self.next_queue = (own + 1) % queues;
        let rings: &mut Rings = &mut workers[own].rings;
        let packet = rings.sending.pop_front()?;
        if rings.fetched.is_multiple_of(DESCRIPTORS_PER_LINE) {
            let line = rings.send_ring.round(rings.fetched / DESCRIPTORS_PER_LINE);
            socket.card_reads(line, 1, now);
        }
        rings.fetched += 1;
        let first = packet.buffer * self.stride + self.offset;
        let hits = socket.card_reads(first, packet.bytes.div_ceil(LINE as u32), now);
        let missed = 1.0 - hits.rate().unwrap_or(1.0);
        let latency = self.latency as f64 + missed * socket.dram.latency(now) as f64;
        let bytes = f64::from(packet.bytes);
        // As much is under way as the window allows.
        let fetch = (bytes * self.bus_byte).max(bytes * latency / self.window);
        let fetched = now + latency as Picos;
        let wire = (f64::from(packet.bytes) + FRAMING as f64) * self.wire_byte;
        self.wire_free = fetched.max(self.wire_free) + wire as Picos;
        rings.sent.push_back((self.wire_free, packet.buffer));
        socket.finish(self.wire_free - packet.arrived, packet.bytes);
        let next = now + fetch as Picos;
        let descriptors = if packet.ends_fetch { self.send_fetch } else { 0 };
        let from_memory = (missed * self.send_missed as f64) as Picos;
        rings.send_free = next + self.send_packet + from_memory + descriptors;
        Some(next.max(self.wire_free.saturating_sub(self.ahead)))
    }
}
