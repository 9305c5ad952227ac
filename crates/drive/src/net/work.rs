//! The loop of one thread over its connections.

use std::time::Duration;

use model::Op;
use reactor::{Failure as Broken, Gather, Reactor, State};
use store::wire::{Answer, Kind, Parsed, Protocol, Refusal, Request as WireRequest, WireError};
use workload::{Ask, Workload};

use super::Network;
use super::demand::{Demand, Next};
use super::kernel_clock::KernelClock;
use super::line::{Down, Line, Server};
use super::operation::{Operation, Pool, Request, Then};
use crate::asks::{Asked, Asks, Dry};
use crate::clock::Ticks;
use crate::frontier::Lane;
use crate::outcome::{DriveError, FailureKind};
use crate::pace::{SPIN, Waited};
use crate::plan::Plan;
use crate::recorder::Recorder;
use crate::verdict::{MOST_IN_A_ROW, shown};
use crate::worker::{READING, Seen, Shared};

/// The longest sleep: stages of the phase and limits of requests are looked at that often.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);
/// How long a closed loop that pipelines lets answers lie for more to come, so that the thread is
/// not woken for each: `docs/decisions/0006-a-closed-loop-gathers.md`.
const PATIENCE: Duration = Duration::from_micros(50);
/// How long it looks without sleeping before that, where answers come in whole batches.
const LOOK: Duration = Duration::from_micros(20);
/// How long answers are waited for when nothing is asked any more; their own limit may be less.
const LAST_WAIT: Duration = Duration::from_secs(10);
/// Pauses between two tries to connect again.
const FIRST_RETRY: Duration = Duration::from_millis(10);
const LONGEST_RETRY: Duration = Duration::from_millis(500);

pub(super) struct Thread<'a, A> {
    shared: &'a Shared<Network>,
    network: &'a Network,
    clock: &'a Ticks,
    lane: &'a Lane,
    protocol: Protocol,
    depth: usize,
    queue_limit: usize,
    busy_poll: bool,
    asks: A,
    /// Operations left in the block that was claimed; None when there are no more blocks.
    block_left: Option<u64>,
    /// Drawn from a source that says when it is due, which is not yet.
    pending: Option<Asked>,
    /// Since when the source is asked for an operation that is not there yet.
    dry_since: Option<u64>,
    /// When it was waited for the last time: what was due before that came too late.
    came_at: u64,
    needs_frontier: bool,
    may_miss: bool,
    reactor: Reactor,
    lines: Vec<Line>,
    servers: Vec<Server>,
    /// Connections that were given requests since the last time they were sent.
    touched: Vec<usize>,
    queued: usize,
    pool: Pool,
    inserts: super::inserts::Inserts,
    value: Vec<u8>,
    kernel_clock: KernelClock,
    recorder: Recorder,
    seen: Seen,
    waited: Waited,
    done: u64,
    in_window: bool,
    next_look: u64,
    /// Answers that one look at a connection brings: a moving mean over some 16 looks.
    at_once: f32,
    /// Nothing more is asked: a server is gone, or all that comes are failures.
    gave_up: bool,
    /// Of a multi-get over several servers, by server.
    spread: Vec<Option<Request>>,
}

impl<'a, A: Asks> Thread<'a, A> {
    /// Connects; the phase has not begun.
    pub(super) fn new(
        shared: &'a Shared<Network>,
        thread: usize,
        plan: &Plan,
        asks: A,
        recorder: Recorder,
    ) -> Result<Self, DriveError> {
        let network = &*shared.target;
        let of = plan.connections;
        let mut reactor = network.reactor(plan)?;
        let mut lines = Vec::new();
        for server in 0..network.servers() {
            for _ in 0..of.count {
                let number = reactor.add(network.open(server)?).map_err(super::internal)?;
                debug_assert_eq!(number, lines.len());
                lines.push(Line::new(server, of.depth));
            }
        }
        let mut servers: Vec<Server> = (0..network.servers()).map(|_| Server::default()).collect();
        for (number, line) in lines.iter_mut().enumerate() {
            line.listed = true;
            servers[line.server].with_room.push_back(number);
        }
        let needs_frontier = asks.asks_for_inserted();
        let may_miss = network.forgets() || asks.may_miss();
        let spread = servers.iter().map(|_| None).collect();
        Ok(Thread {
            shared,
            network,
            clock: &shared.clock,
            lane: shared.frontier.lane(thread),
            protocol: network.protocol(),
            depth: of.depth,
            queue_limit: of.queue,
            busy_poll: of.busy_poll,
            asks,
            block_left: Some(0),
            pending: None,
            dry_since: None,
            came_at: 0,
            needs_frontier,
            may_miss,
            reactor,
            lines,
            servers,
            touched: Vec::new(),
            queued: 0,
            pool: Pool::default(),
            inserts: super::inserts::Inserts::default(),
            value: Vec::with_capacity(4096),
            kernel_clock: KernelClock::new(&shared.clock),
            recorder,
            seen: Seen::default(),
            waited: Waited::default(),
            done: 0,
            in_window: false,
            next_look: 0,
            at_once: 0.0,
            gave_up: false,
            spread,
        })
    }

    pub(super) fn run(mut self, thread: usize, plan: &Plan) -> Result<Seen, DriveError> {
        let gate = &self.shared.gate;
        gate.wait_for_the_start();
        let most = self.lines.len() * self.depth;
        let mut demand = Demand::new(plan, thread, self.clock, self.shared.begun(), most);
        let mut entered = Waited::default();
        let mut last_wait = None;
        loop {
            let mut now = self.clock.now();
            if !self.in_window && gate.opened() {
                entered = self.waited;
                self.enter_window(&mut demand);
                now = self.clock.now();
            }
            if self.gave_up || gate.stopped() {
                // Nothing that waits goes out any more; what is out is waited for.
                let until = *last_wait.get_or_insert_with(|| now + self.clock.ticks_of(LAST_WAIT));
                if now >= until || self.lines.iter().all(|line| line.under_way.is_empty()) {
                    break;
                }
            }
            let next = self.admit(&mut demand, now);
            self.send()?;
            if self.pool.under_way() == 0 {
                match next {
                    Next::Never => break,
                    Next::Answer if self.gathers() => {
                        gate.wait_if_gathering();
                        continue;
                    }
                    _ => {}
                }
            }
            self.poll(next)?;
            let now = self.clock.now();
            while let Some(number) = self.reactor.ready() {
                self.answers(number, &mut demand);
            }
            if now >= self.next_look {
                self.look_after_lines(now, &mut demand);
            }
        }
        self.give_up_the_rest();
        if !self.in_window {
            entered = self.waited;
            self.seen = std::mem::take(&mut self.seen).entering(self.clock.now());
        }
        if demand.is_open() && !self.shared.counted && gate.closes_at() != u64::MAX {
            let end = gate.closes_at();
            self.seen.never_sent += demand.skipped(end);
            self.seen.never_sent += self.asks.due_before(end.saturating_sub(self.shared.begun()));
        }
        self.seen.drawn -= u64::from(self.pending.is_some());
        self.lane.retire();
        if A::TRACED {
            self.lane.wait_until(u64::MAX);
        }
        self.recorder.finish();
        self.seen.waited = self.waited - entered;
        self.asks.account(&mut self.seen);
        Ok(self.seen)
    }

    /// What was begun before the window does not count; what waits unsent from a warm-up of
    /// another rate is dropped.
    fn enter_window(&mut self, demand: &mut Demand) {
        let gate = &self.shared.gate;
        self.in_window = true;
        self.recorder.open_window(gate.opened_at());
        self.seen = std::mem::take(&mut self.seen).entering(gate.opened_at());
        if demand.enter_window(gate.opened_at()) {
            for server in 0..self.servers.len() {
                while let Some(request) = self.servers[server].queue.pop_front() {
                    self.queued -= 1;
                    if let Some(operation) = self.abandon(request) {
                        self.insert_ended(operation.asked.ask, false);
                    }
                }
            }
        }
    }

    /// A request comes to nothing, and with its last request the operation. Answers the
    /// operation, if that has ended so.
    fn abandon(&mut self, request: Request) -> Option<Operation> {
        let operation = self.pool.operation(request.operation);
        operation.left -= 1;
        operation.failed = true;
        let operation = *operation;
        let number = request.operation;
        self.pool.give_back(request);
        if operation.left > 0 {
            return None;
        }
        self.pool.end(number);
        Some(operation)
    }

    fn insert_ended(&mut self, ask: Ask, stored: bool) {
        if ask.op == Op::Insert && self.needs_frontier {
            if !stored {
                self.shared.frontier.leave_hole();
            }
            self.inserts.end(ask.record);
            self.publish_floor();
        }
    }

    /// Takes every operation that is due and puts it on its way.
    fn admit(&mut self, demand: &mut Demand, now: u64) -> Next {
        loop {
            if self.gave_up {
                return Next::Never;
            }
            if A::TRACED && demand.wants_schedule() {
                match self.draw(now) {
                    Some(asked) => self.schedule(asked, demand, now),
                    None => return self.nothing_drawn(now),
                }
            }
            let next = demand.next(now, &self.shared.gate);
            let Next::Due(due) = next else { return next };
            let Some(asked) = self.pending.take().or_else(|| self.draw(now)) else {
                return self.nothing_drawn(now);
            };
            demand.take();
            self.begin(asked, due, demand);
        }
    }

    /// Keeps an operation until it is due.
    fn schedule(&mut self, asked: Asked, demand: &mut Demand, now: u64) {
        let due = demand.schedule(asked.at);
        self.lane.wait_until(due);
        self.came_at = if asked.awaited { now } else { self.came_at };
        self.seen.replayed.read_late += u64::from(due < self.came_at);
        self.pending = Some(asked);
    }

    fn nothing_drawn(&self, now: u64) -> Next {
        match self.dry_since {
            // A reader may be slow, as standard input is; that is no fault of the servers.
            Some(_) if A::TRACED => {
                self.lane.wait_until(now + self.clock.ticks(1e9));
                match self.shared.gate.closed() {
                    true => Next::Never,
                    false => Next::At(now + self.clock.ticks_of(SPIN + READING)),
                }
            }
            _ if self.block_left.is_some() => Next::Answer,
            _ => Next::Never,
        }
    }

    /// The threads are to come together between two blocks.
    fn gathers(&self) -> bool {
        self.block_left == Some(0) && self.shared.gate.gathers()
    }

    fn draw(&mut self, now: u64) -> Option<Asked> {
        loop {
            let left = self.block_left?;
            if left == 0 {
                if self.shared.gate.gathers() {
                    return None;
                }
                let turn = self.shared.frontier.claim();
                let length = self.shared.length_of(turn);
                if length == 0 {
                    self.block_left = None;
                    self.publish_floor();
                    return None;
                }
                self.asks.seek(self.shared.block(turn));
                self.block_left = Some(length);
                self.publish_floor();
                continue;
            }
            self.block_left = Some(left - 1);
            let known =
                if self.needs_frontier { self.shared.frontier.acknowledged() } else { u64::MAX };
            match self.asks.next(known) {
                Some(asked) => {
                    self.seen.drawn += 1;
                    if asked.ask.op == Op::Insert && self.needs_frontier {
                        self.inserts.begin(asked.ask.record);
                    }
                    if A::TRACED
                        && let Some(since) = self.dry_since.take()
                    {
                        self.seen.replayed.starved += now.saturating_sub(since);
                    }
                    return Some(asked);
                }
                None => match self.asks.dry() {
                    Dry::Block => self.block_left = Some(0),
                    Dry::NotYet => {
                        self.block_left = Some(left);
                        self.dry_since.get_or_insert(now);
                        return None;
                    }
                    Dry::End => {
                        (self.block_left, self.dry_since) = (None, None);
                        return None;
                    }
                },
            }
        }
    }

    fn publish_floor(&mut self) {
        if self.needs_frontier {
            let next = self.block_left.map_or(u64::MAX, |_| self.asks.next_insert());
            self.lane.advance(self.inserts.floor(next));
        }
    }

    fn begin(&mut self, asked: Asked, due: u64, demand: &mut Demand) {
        let ask = asked.ask;
        if demand.is_open() && self.queued >= self.queue_limit && self.would_wait(&ask) {
            self.seen.dropped += u64::from(self.in_window);
            self.insert_ended(ask, false);
            return;
        }
        let then = if ask.op == Op::ReadModifyWrite { Then::Write } else { Then::End };
        let number = self.pool.begin(Operation {
            asked,
            due,
            sent: 0,
            queued: 0,
            ideal: due,
            left: 0,
            then,
            counts: self.in_window,
            failed: false,
            refill: false,
        });
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
    fn would_wait(&mut self, ask: &Ask) -> bool {
        let keys = if ask.op == Op::Read { ask.keys.max(1) } else { 1 };
        (0..keys).any(|key| {
            self.asks.key(ask, key, &mut self.value);
            self.servers[self.network.server_of(&self.value)].with_room.is_empty()
        })
    }

    /// A multi-get over several servers: one request to each that has one of the keys.
    fn begin_spread(&mut self, ask: &Ask, keys: u32, number: u32, due: u64) {
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
    fn place(&mut self, request: Request, server: usize) {
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
    fn write(&mut self, number: usize, mut request: Request) {
        let line = &mut self.lines[number];
        if self.shared.open {
            request.ideal = request.ideal.max(line.take_slot());
        }
        let Request { kind, tag, ref keys, .. } = request;
        let mut ttl_s = 0;
        if kind == Kind::Set {
            let asked = &self.pool.operation(request.operation).asked;
            ttl_s = asked.ttl_s;
            self.asks.value(asked, keys.get(0), &mut self.value);
        }
        let value: &[u8] = if kind == Kind::Set { &self.value } else { &[] };
        let wire = WireRequest { kind, keys, value, ttl_s, tag };
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
    fn send(&mut self) -> Result<(), DriveError> {
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
                self.reactor.poll(Some(Duration::ZERO)).map_err(super::internal)?;
            }
            now = self.clock.now();
        }
        self.seen.in_store += now - begin;
        Ok(())
    }

    /// What a wait is to end for. One in which nothing can be asked before an answer comes, with
    /// several requests under way on a connection, goes on until half of the connections have
    /// some: the others keep the server busy meanwhile.
    fn gather(&self, next: Next) -> Gather {
        if next != Next::Answer || self.depth == 1 {
            return Gather::NONE;
        }
        let filled = self.pool.under_way().saturating_sub(self.queued) / self.depth;
        let least = u32::try_from(filled / 2).unwrap_or(u32::MAX).max(1);
        Gather { least, patience: PATIENCE }
    }

    /// Waits for answers, at most until the next operation is due.
    fn poll(&mut self, next: Next) -> Result<(), DriveError> {
        let mut begin = self.clock.now();
        let longest = match next {
            _ if self.busy_poll => Duration::ZERO,
            Next::At(due) => {
                Duration::from_nanos(self.clock.nanos(begin, due)).saturating_sub(SPIN)
            }
            Next::Due(_) => Duration::ZERO,
            Next::Answer | Next::Never => LONGEST_SLEEP,
        };
        let limit = Some(longest.min(LONGEST_SLEEP));
        let gather = self.gather(next);
        // The next batch is near, and to be woken costs both sides more.
        if gather != Gather::NONE && self.at_once * 2.0 >= self.depth as f32 {
            let until = begin + self.clock.ticks_of(LOOK);
            let mut now = begin;
            let mut ready = 0;
            while ready == 0 && now < until {
                ready = self.reactor.poll(Some(Duration::ZERO)).map_err(super::internal)?;
                now = self.clock.now();
            }
            self.waited.idle += now - begin;
            self.waited.spinning += now - begin;
            if ready > 0 {
                return Ok(());
            }
            begin = now;
        }
        let ready = self.reactor.poll_many(limit, gather).map_err(super::internal)?;
        let spent = self.clock.now() - begin;
        if ready > 0 && longest.is_zero() {
            self.seen.in_store += spent;
        } else {
            self.waited.idle += spent;
            if longest.is_zero() {
                self.waited.spinning += spent;
            }
        }
        Ok(())
    }

    /// Reads every whole answer of one connection.
    fn answers(&mut self, number: usize, demand: &mut Demand) {
        if self.lines[number].down.is_some() {
            // What a lost connection goes on to say is nothing to anybody.
            let rest = self.reactor.incoming(number).len();
            return self.reactor.consume(number, rest);
        }
        let now = self.clock.now();
        let arrived = self
            .reactor
            .arrived(number)
            .map(|kernel| self.kernel_clock.nanos_since(kernel, now, self.clock));
        let mut used = 0;
        let mut answers = 0;
        loop {
            let bytes = &self.reactor.incoming(number)[used..];
            let line = &mut self.lines[number];
            if bytes.is_empty() || bytes.len() < line.needs {
                break;
            }
            // What has not been sent cannot be what is answered.
            if line.under_way.len() <= line.unsent {
                let words = format!("the server sent unasked: {}", shown_bytes(bytes));
                return self.fail_line(number, FailureKind::Garbage, &words, demand);
            }
            let Some(request) = line.under_way.front() else { break };
            let (asks, verdicts) = (&self.asks, &mut self.seen.verdicts);
            let keys = &request.keys;
            let counts = self.pool.operation(request.operation).counts;
            let parsed =
                self.protocol.read(request.kind, keys, request.tag, bytes, |key, value| {
                    if counts {
                        verdicts.check(asks, keys.get(key), value);
                    } else {
                        verdicts.verify(asks, keys.get(key), value);
                    }
                });
            match parsed {
                Ok(Parsed::Incomplete { needs }) => {
                    line.needs = needs;
                    break;
                }
                Ok(Parsed::Whole { used: bytes, answer }) => {
                    used += bytes;
                    answers += 1;
                    line.needs = 0;
                    line.proved = true;
                    let server = line.server;
                    if let Some(request) = line.under_way.pop_front() {
                        if self.shared.open {
                            let served = now.saturating_sub(request.since);
                            let woken = arrived.map_or(0, |nanos| self.clock.ticks(nanos as f64));
                            let ideal = request.ideal + served.saturating_sub(woken);
                            line.free_slot(ideal);
                            let operation = self.pool.operation(request.operation);
                            operation.ideal = operation.ideal.max(ideal);
                        }
                        self.answered(request, answer, server, now, arrived, demand);
                    }
                }
                Err(error) => {
                    let kind = match error {
                        WireError::OtherKey { .. } => FailureKind::OtherKey,
                        _ => FailureKind::Garbage,
                    };
                    self.reactor.consume(number, used);
                    return self.fail_line(number, kind, &error.to_string(), demand);
                }
            }
        }
        self.at_once += (answers as f32 - self.at_once) / 16.0;
        self.reactor.consume(number, used);
        let words = match self.reactor.state(number) {
            State::Open => return self.refill_line(number, now),
            State::Closed => "the server closed the connection".to_owned(),
            State::Failed(failure @ Broken::AnswerTooLarge { .. }) => {
                return self.fail_line(number, FailureKind::Garbage, &failure.to_string(), demand);
            }
            State::Failed(failure) => failure.to_string(),
        };
        let words = match self.reactor.incoming(number).len() {
            0 => words,
            bytes => format!("{words} after {bytes} bytes of an answer"),
        };
        self.fail_line(number, FailureKind::Closed, &words, demand);
    }

    /// A connection may have room again: what waits for it goes out.
    fn refill_line(&mut self, number: usize, now: u64) {
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

    /// One request is answered.
    fn answered(
        &mut self,
        request: Request,
        answer: Answer,
        server: usize,
        now: u64,
        arrived: Option<u64>,
        demand: &mut Demand,
    ) {
        let number = request.operation;
        let operation = self.pool.operation(number);
        operation.left -= 1;
        let (asked, counts) = (operation.asked, operation.counts);
        let ask = asked.ask;
        let mut refused = None;
        let mut missed = 0;
        match answer {
            Answer::Found(found) => missed = request.keys.len() - found,
            Answer::Stored | Answer::Deleted(_) => {}
            Answer::Refused { why, words } => refused = Some((why, words)),
        }
        if let Some((why, words)) = refused {
            operation.failed = true;
            let kind = match why {
                Refusal::OutOfMemory => FailureKind::OutOfMemory,
                _ => FailureKind::Store,
            };
            self.seen.changes.refused += u64::from(request.kind != Kind::Get);
            let address = self.network.address(server);
            self.seen.verdicts.fail(kind, || format!("{}: {address}: {words}", ask.op));
            self.failed_again();
        } else {
            self.seen.verdicts.answered();
            if request.kind == Kind::Get {
                if counts {
                    self.seen.verdicts.hits += (request.keys.len() - missed) as u64;
                }
                if missed > 0 {
                    self.missed(&request, missed, ask, counts);
                } else if Workload::is_absent(ask.record) && ask.keys <= 1 {
                    self.seen.verdicts.invented(request.keys.get(0));
                }
            }
        }
        let operation = self.pool.operation(number);
        if operation.left == 0 {
            if operation.then == Then::Write && !operation.failed {
                operation.then = Then::End;
                let mut second = self.pool.request(number, Kind::Set, now);
                second.keys.push(request.keys.get(0));
                let server = self.network.server_of(request.keys.get(0));
                self.place(second, server);
            } else {
                let operation = *operation;
                self.end(&operation, now, arrived);
                self.pool.end(number);
                if !operation.refill {
                    demand.answered(now);
                }
                if missed > 0 && self.refills(&operation) {
                    self.refill(asked, &request, now);
                }
            }
        }
        self.pool.give_back(request);
    }

    /// Whether what a read missed is to be set: one key that belongs to the data.
    #[cold]
    fn refills(&self, operation: &Operation) -> bool {
        let asked = &operation.asked;
        asked.ask.op == Op::Read
            && !operation.refill
            && asked.ask.keys <= 1
            && self.asks.refills(asked)
            && !self.shared.gate.closed()
    }

    #[cold]
    fn missed(&mut self, request: &Request, missed: usize, ask: Ask, counts: bool) {
        let loaded = self.shared.workload.spec().records.0;
        // Which of several keys were never loaded, or inserted in vain, is not told apart.
        let several = ask.keys > 1;
        let some_absent = several && self.asks.asks_for_absent();
        let in_a_hole = self.shared.frontier.has_holes() && (several || ask.record >= loaded);
        if self.may_miss || some_absent || in_a_hole || Workload::is_absent(ask.record) {
            self.seen.verdicts.misses += if counts { missed as u64 } else { 0 };
        } else {
            let words = || match request.keys.len() {
                1 => format!("{} is not there", shown(request.keys.get(0))),
                all => format!("{missed} of {all} keys are not there"),
            };
            self.seen.verdicts.fail(FailureKind::Missing, words);
        }
    }

    /// Cache-aside: what was missed is set, as the application behind the cache would. It is the
    /// client's own traffic, counted apart.
    fn refill(&mut self, asked: Asked, missed: &Request, now: u64) {
        let number = self.pool.begin(Operation {
            asked,
            due: now,
            sent: 0,
            queued: 0,
            ideal: now,
            left: 0,
            then: Then::End,
            counts: self.in_window,
            failed: false,
            refill: true,
        });
        let mut request = self.pool.request(number, Kind::Set, now);
        request.keys.push(missed.keys.get(0));
        let server = self.network.server_of(missed.keys.get(0));
        self.place(request, server);
    }

    /// An operation has its last answer, or has failed.
    fn end(&mut self, operation: &Operation, now: u64, arrived: Option<u64>) {
        let Operation { asked: Asked { ask, .. }, due, sent, failed, .. } = *operation;
        if operation.refill {
            self.seen.refills += u64::from(operation.counts && !failed);
            return;
        }
        match ask.op {
            Op::Insert => {
                self.seen.changes.inserted += u64::from(!failed);
                self.insert_ended(ask, !failed);
            }
            Op::Delete => self.seen.changes.deleted += u64::from(!failed),
            _ => {}
        }
        self.done += 1;
        self.lane.count(self.done);
        if !operation.counts {
            return;
        }
        let seen = &mut self.seen;
        self.recorder.record(self.shared.open, self.clock, ask.op, due, sent, now);
        if let Some(woken_after) = arrived {
            let whole = self.clock.nanos(sent, now);
            let woken_after = woken_after.min(whole);
            self.recorder.record_arrival(ask.op, whole - woken_after);
            seen.woken += 1;
            seen.wake_ns += woken_after;
        }
        seen.operations += 1;
        seen.counts[ask.op] += 1;
        seen.ended = now;
        if self.shared.open {
            seen.waited = self.waited;
            seen.late += if failed { 0 } else { now.saturating_sub(operation.ideal) };
            seen.queued += u64::from(operation.queued > 0);
            seen.queue_ticks += operation.queued;
            seen.answered_in_time += u64::from(!failed && now <= self.shared.gate.closes_at());
            let opened_at = self.shared.gate.opened_at();
            if A::TRACED && due >= opened_at {
                let second = self.clock.ticks(1e9);
                let in_time = !failed && now.saturating_sub(due) <= second;
                seen.replayed.count(due - opened_at, second, in_time);
            }
        }
    }

    /// Everything under way on a connection has failed; it is connected to again.
    #[cold]
    fn fail_line(&mut self, number: usize, kind: FailureKind, words: &str, demand: &mut Demand) {
        let now = self.clock.now();
        let address = self.network.address(self.lines[number].server);
        let line = &mut self.lines[number];
        line.needs = 0;
        line.unsent = 0;
        // One that nothing was ever answered on is not hurried to the next try.
        line.tries = if std::mem::take(&mut line.proved) { 0 } else { line.tries + 1 };
        let retry_at = now + self.clock.ticks_of(pause(line.tries));
        line.down = Some(Down { since: now, retry_at });
        if std::mem::take(&mut line.listed) {
            self.servers[line.server].with_room.retain(|other| *other != number);
        }
        self.touched.retain(|other| *other != number);
        self.next_look = now;
        let lost: Vec<Request> = line.under_way.drain(..).collect();
        if lost.is_empty() {
            // Closed while nothing was asked, it has done no harm to an operation.
            if kind != FailureKind::Closed {
                self.seen.verdicts.fail(kind, || format!("{address}: {words}"));
                self.failed_again();
            }
            return;
        }
        for request in lost {
            self.fail_request(request, kind, &format!("{address}: {words}"), now, demand);
        }
        self.failed_again();
    }

    /// Something failed where an answer was due. Where nothing else happens any more, going on
    /// would measure the failing.
    #[cold]
    fn failed_again(&mut self) {
        let most = MOST_IN_A_ROW.max(2 * self.lines.len() as u64);
        let row = self.seen.verdicts.failed_again();
        if row >= most && !self.gave_up {
            let when = self.when(self.clock.now());
            self.give_up(format!("{when}: {row} failures in a row, and no answer between them"));
        }
    }

    /// No thread asks any more; what is under way ends.
    #[cold]
    fn give_up(&mut self, why: String) {
        self.gave_up = true;
        self.seen.gave_up = Some(why);
        self.shared.gate.close(self.clock.now());
    }

    fn when(&self, tick: u64) -> String {
        match self.shared.gate.opened_at() {
            opened if opened <= tick => {
                format!("{:.1} s into the window", self.clock.seconds(opened, tick))
            }
            _ => "before the window".to_owned(),
        }
    }

    fn fail_request(
        &mut self,
        request: Request,
        kind: FailureKind,
        words: &str,
        now: u64,
        demand: &mut Demand,
    ) {
        self.seen.changes.refused += u64::from(request.kind != Kind::Get);
        let op = self.pool.operation(request.operation).asked.ask.op;
        self.seen.verdicts.fail(kind, || format!("{op}: {words}"));
        let Some(mut operation) = self.abandon(request) else { return };
        if operation.sent == 0 {
            operation.sent = now;
        }
        self.end(&operation, now, None);
        if !operation.refill {
            demand.answered(now);
        }
    }

    /// Requests that wait too long, and connections that are to be tried again.
    #[cold]
    fn look_after_lines(&mut self, now: u64, demand: &mut Demand) {
        let pause = self.clock.ticks_of(LONGEST_SLEEP);
        self.next_look = now + pause;
        let limit = self.clock.ticks_of(self.network.timeout());
        for number in 0..self.lines.len() {
            let line = &self.lines[number];
            if let Some(down) = line.down {
                if now >= down.retry_at && !self.shared.gate.stopped() {
                    self.connect_again(number, down);
                }
                continue;
            }
            let sent = line.under_way.len() > line.unsent;
            let since = line.under_way.front().filter(|_| sent).map(|request| request.since);
            if since.is_some_and(|since| now.saturating_sub(since) > limit) {
                let timeout = model::Span(self.network.timeout());
                let words = match self.reactor.incoming(number).len() {
                    0 => format!("no answer within {timeout}"),
                    bytes => format!("no whole answer within {timeout}, only {bytes} bytes of it"),
                };
                self.fail_line(number, FailureKind::Timeout, &words, demand);
            } else if !matches!(self.reactor.state(number), State::Open) {
                self.answers(number, demand);
            }
        }
    }

    fn connect_again(&mut self, number: usize, down: Down) {
        let server = self.lines[number].server;
        let why = match self.network.open(server) {
            Ok(stream) => match self.reactor.replace(number, stream) {
                Ok(()) => {
                    self.seen.reconnected += 1;
                    let now = self.clock.now();
                    let line = &mut self.lines[number];
                    line.down = None;
                    line.free_all_slots(self.depth, now);
                    return self.refill_line(number, now);
                }
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        let now = self.clock.now();
        if now.saturating_sub(down.since) > self.clock.ticks_of(self.network.timeout()) {
            self.lose(server, down.since, &why);
            // It is tried no more.
            let retry_at = u64::MAX;
            self.lines[number].down = Some(Down { retry_at, ..down });
            return;
        }
        let line = &mut self.lines[number];
        line.tries += 1;
        let retry_at = now + self.clock.ticks_of(pause(line.tries));
        line.down = Some(Down { retry_at, ..down });
    }

    /// A server is gone: what is left of the phase would measure its absence.
    fn lose(&mut self, server: usize, since: u64, why: &str) {
        if self.gave_up {
            return;
        }
        let when = self.when(since);
        let words = format!("{when}: {} was lost and did not come back: {why}", {
            self.network.address(server)
        });
        self.seen.verdicts.fail(FailureKind::Lost, || words.clone());
        self.give_up(words);
    }

    /// The phase is over: what is queued was never sent, what is under way was never answered.
    fn give_up_the_rest(&mut self) {
        let now = self.clock.now();
        let mut rest: Vec<(usize, Request)> = Vec::new();
        for (number, server) in self.servers.iter_mut().enumerate() {
            rest.extend(server.queue.drain(..).map(|request| (number, request)));
        }
        for line in &mut self.lines {
            let server = line.server;
            rest.extend(line.under_way.drain(..).map(|request| (server, request)));
        }
        for (server, request) in rest {
            let sent = self.pool.operation(request.operation).sent > 0;
            self.seen.changes.refused += u64::from(sent && request.kind != Kind::Get);
            let Some(operation) = self.abandon(request) else { continue };
            let Operation { asked: Asked { ask, .. }, counts, refill, .. } = operation;
            if !sent {
                self.insert_ended(ask, false);
                self.seen.never_sent += u64::from(counts && !refill && self.shared.open);
                continue;
            }
            if counts {
                let address = self.network.address(server);
                self.seen.verdicts.fail(FailureKind::Timeout, || {
                    format!("{}: {address}: no answer before the phase ended", ask.op)
                });
            }
            self.end(&operation, now, None);
        }
        self.seen.never_sent += self.seen.dropped;
    }
}

/// How long to wait before a connection is tried again: not at all at first, then doubled each
/// time up to the longest.
fn pause(tries: u32) -> Duration {
    match tries {
        0 => Duration::ZERO,
        _ => FIRST_RETRY.saturating_mul(1 << (tries - 1).min(10)).min(LONGEST_RETRY),
    }
}

fn shown_bytes(bytes: &[u8]) -> String {
    format!("`{}`", bytes[..bytes.len().min(80)].escape_ascii())
}
