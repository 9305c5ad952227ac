//! Reads answers, checks and records them, and starts follow-up requests.

use model::Op;
use reactor::{ConnectionFailure as Broken, ConnectionState};
use store::wire::{Kind, ParsedResponse, Protocol, Redirect, Refusal, Response, WireError};
use workload::{Operation, Workload};

use super::super::operation::{NextStep, PendingOperation, PendingRequest};
use super::super::schedule::RequestSchedule;
use super::NetworkWorker;
use crate::answer_counts::shown;
use crate::outcome::FailureKind;
use crate::source::{OperationSource, SourcedOperation};

/// When an answer came.
#[derive(Clone, Copy)]
struct AnsweredAt {
    now: u64,
    /// Nanoseconds since it reached the kernel, where that is known.
    woken_after: Option<u64>,
}

/// Why a connection is given up.
type ConnectionFault = (FailureKind, String);

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// Reads all complete answers of one connection.
    pub(super) fn read_answers(&mut self, number: usize, schedule: &mut RequestSchedule) {
        if self.connections[number].down.is_some() {
            // Late bytes of a lost connection are discarded.
            let rest = self.reactor.incoming(number).len();
            return self.reactor.consume(number, rest);
        }
        let now = self.clock.now();
        let arrived = self.reactor.arrived(number);
        let woken_after =
            arrived.map(|kernel| self.kernel_clock.nanos_since(kernel, now, self.clock));
        let (mut used, mut answers) = (0, 0);
        let fault = loop {
            match self.read_answer(number, &mut used) {
                Ok(Some(answer)) => {
                    answers += 1;
                    self.take_answer(number, answer, AnsweredAt { now, woken_after }, schedule);
                }
                Ok(None) => break self.connection_fault(number, used),
                Err(fault) => break Some(fault),
            }
        };
        self.answers_per_poll += (answers as f32 - self.answers_per_poll) / 16.0;
        self.reactor.consume(number, used);
        match fault {
            None => self.refill_connection(number, now),
            Some((kind, words)) => self.fail_connection(number, kind, &words, schedule),
        }
    }

    /// Reads and checks the answer behind the `used` bytes of a connection, and counts its bytes as
    /// used. None if it is not whole.
    #[inline(always)]
    fn read_answer(
        &mut self,
        number: usize,
        used: &mut usize,
    ) -> Result<Option<Response>, ConnectionFault> {
        let bytes = &self.reactor.incoming(number)[*used..];
        let connection = &mut self.connections[number];
        if bytes.is_empty() || bytes.len() < connection.needs {
            return Ok(None);
        }
        // A request that has not been sent cannot have been answered.
        if connection.in_flight.len() <= connection.unsent {
            *used += unrequested(self.protocol, bytes)?;
            return Ok(None);
        }
        let Some(request) = connection.in_flight.front() else { return Ok(None) };
        let asked = match request.asking.then(|| self.protocol.read_asking(bytes)) {
            None => 0,
            Some(Ok(Some(asked))) if bytes.len() > asked => asked,
            Some(Ok(_)) => return Ok(None),
            // Such as an error of a node that does not import the slot any more: repeated.
            Some(Err(error)) => return Err((FailureKind::Closed, error.to_string())),
        };
        let bytes = &bytes[asked..];
        let (source, answer_counts) = (&self.source, &mut self.stats.answer_counts);
        let keys = &request.keys;
        let counts = self.pool.operation(request.operation).counts;
        let parsed = self.protocol.read(request.kind, keys, request.tag, bytes, |key, value| {
            let key = keys.get(key);
            let verified = source.verify(key, value);
            match counts {
                true => answer_counts.count_value(key, value, verified),
                false => answer_counts.check(key, verified),
            }
        });
        match parsed {
            Ok(ParsedResponse::Whole { used: length, answer }) => {
                connection.needs = 0;
                *used += asked + length;
                Ok(Some(answer))
            }
            Ok(ParsedResponse::Incomplete { needs }) => {
                connection.needs = asked + needs;
                Ok(None)
            }
            Err(error @ WireError::OtherKey { .. }) => {
                Err((FailureKind::OtherKey, error.to_string()))
            }
            Err(error) => Err((FailureKind::Garbage, error.to_string())),
        }
    }

    /// Why no more answers can come from a connection of which `used` bytes were read; None while
    /// it is open.
    #[inline(always)]
    fn connection_fault(&self, number: usize, used: usize) -> Option<ConnectionFault> {
        let words = match self.reactor.state(number) {
            ConnectionState::Open => return None,
            ConnectionState::Closed => "the server closed the connection".to_owned(),
            ConnectionState::Failed(failure @ Broken::AnswerTooLarge { .. }) => {
                return Some((FailureKind::Garbage, failure.to_string()));
            }
            ConnectionState::Failed(failure) => failure.to_string(),
        };
        let words = match self.reactor.incoming(number).len() - used {
            0 => words,
            bytes => format!("{words} after {bytes} bytes of an answer"),
        };
        Some((FailureKind::Closed, words))
    }

    /// Takes the answer of a connection's oldest request.
    #[inline(always)]
    fn take_answer(
        &mut self,
        number: usize,
        answer: Response,
        at: AnsweredAt,
        schedule: &mut RequestSchedule,
    ) {
        let connection = &mut self.connections[number];
        connection.has_answered = true;
        let server = connection.server;
        let Some(request) = connection.in_flight.pop_front() else { return };
        if self.shared.open {
            let served = at.now.saturating_sub(request.since);
            let woken = at.woken_after.map_or(0, |nanos| self.clock.ticks(nanos as f64));
            let ideal = request.ideal + served.saturating_sub(woken);
            connection.free_slot(ideal);
            let pending = self.pool.operation(request.operation);
            pending.ideal = pending.ideal.max(ideal);
        }
        self.answered(request, answer, server, at, schedule);
    }

    /// One request is answered.
    fn answered(
        &mut self,
        request: PendingRequest,
        answer: Response,
        server: usize,
        at: AnsweredAt,
        schedule: &mut RequestSchedule,
    ) {
        let mut request = request;
        if matches!(answer, Response::Redirected(_) | Response::Refused { .. }) {
            match self.reroute(request, &answer, server, at.now) {
                Some(own) => request = own,
                None => return,
            }
        }
        let pending = self.pool.operation(request.operation);
        pending.unanswered -= 1;
        let is_last = pending.unanswered == 0;
        let mut missed = 0;
        match answer {
            Response::Found(found) => {
                missed = request.keys.len() - found;
                self.count_node(&request, missed, server, at.now);
                self.accepted(&request, missed);
            }
            Response::Stored | Response::Deleted(_) => {
                self.count_node(&request, missed, server, at.now);
                self.accepted(&request, missed);
            }
            Response::Refused { why, words } => self.refused(&request, server, why, &words),
            Response::Redirected(Redirect { slot, to, .. }) => {
                let hint =
                    if self.routes.is_some() { "is not among the nodes" } else { "`cluster=on`" };
                let words = format!("slot {slot} is served by {to} ({hint})");
                self.refused(&request, server, Refusal::Other, &words);
            }
        }
        if is_last {
            self.continue_operation(&request, missed, at, schedule);
        }
        self.pool.recycle(request);
    }

    /// Counts a request that the server refused.
    #[cold]
    fn refused(&mut self, request: &PendingRequest, server: usize, why: Refusal, words: &str) {
        let pending = self.pool.operation(request.operation);
        pending.failed = true;
        let op = pending.sourced.operation.op;
        let kind = match why {
            Refusal::OutOfMemory => FailureKind::OutOfMemory,
            _ => FailureKind::Store,
        };
        self.stats.changes.refused += u64::from(request.kind != Kind::Get);
        let address = self.network.address(server);
        self.stats.answer_counts.fail(kind, || format!("{op}: {address}: {words}"));
        self.count_failure();
    }

    /// Counts a request that the server served, and the keys that it missed.
    fn accepted(&mut self, request: &PendingRequest, missed: usize) {
        self.stats.answer_counts.answered();
        if request.kind != Kind::Get {
            return;
        }
        let pending = self.pool.operation(request.operation);
        let (operation, counts) = (pending.sourced.operation, pending.counts);
        if counts {
            self.stats.answer_counts.hits += (request.keys.len() - missed) as u64;
        }
        if missed > 0 {
            self.missed(request, missed, operation, counts);
        } else if Workload::is_absent(operation.record) && operation.keys <= 1 {
            self.stats.answer_counts.count_unexpected(request.keys.get(0));
        }
    }

    /// All requests of an operation are answered: issues its second half, or ends it.
    fn continue_operation(
        &mut self,
        request: &PendingRequest,
        missed: usize,
        at: AnsweredAt,
        schedule: &mut RequestSchedule,
    ) {
        let number = request.operation;
        let pending = self.pool.operation(number);
        if pending.next_step == NextStep::Write && !pending.failed {
            pending.next_step = NextStep::End;
            let mut second = self.pool.request(number, Kind::Set, at.now);
            second.keys.push(request.keys.get(0));
            let server = self.server_of(request.keys.get(0), Kind::Set);
            return self.dispatch(second, server);
        }
        let pending = *pending;
        self.end(&pending, at.now, at.woken_after);
        self.pool.end(number);
        if missed > 0
            && let Some(latency) = self.database_latency(&pending)
        {
            return self.fetch(&pending, request, at.now, latency);
        }
        if pending.holds_slot() {
            schedule.answered(at.now);
        }
        if missed > 0 && self.refills(&pending) {
            self.refill(pending.sourced, request, at.now);
        }
    }

    /// Whether a missed read is followed by a set: reads of one key that belongs to the dataset.
    #[cold]
    fn refills(&self, pending: &PendingOperation) -> bool {
        let sourced = &pending.sourced;
        sourced.operation.op == Op::Read
            && !pending.refill
            && sourced.operation.keys <= 1
            && self.source.refills(sourced)
            && !self.shared.gate.closed()
    }

    #[cold]
    fn missed(
        &mut self,
        request: &PendingRequest,
        missed: usize,
        operation: Operation,
        counts: bool,
    ) {
        let loaded = self.shared.workload.spec().records.0;
        // Of several keys it is not known which were never loaded or whose insert failed.
        let several = operation.keys > 1;
        let some_absent = several && self.source.reads_absent();
        let in_a_hole = self.shared.frontier.has_holes() && (several || operation.record >= loaded);
        if self.was_taken_over(request.keys.get(0)) {
            // The replica had not got the write: the store's promise, and no corruption.
            self.stats.cluster.lost_keys += if counts { missed as u64 } else { 0 };
            self.stats.answer_counts.misses += if counts { missed as u64 } else { 0 };
        } else if self.may_miss || some_absent || in_a_hole || Workload::is_absent(operation.record)
        {
            self.stats.answer_counts.misses += if counts { missed as u64 } else { 0 };
        } else {
            let words = || match request.keys.len() {
                1 => format!("{} is missing", shown(request.keys.get(0))),
                all => format!("{missed} of {all} keys are missing"),
            };
            self.stats.answer_counts.missing += if counts { missed as u64 } else { 0 };
            self.stats.answer_counts.fail(FailureKind::Missing, words);
        }
    }

    /// Cache-aside: sets a missed key, as the application would. Counted apart from the workload's
    /// operations.
    fn refill(&mut self, sourced: SourcedOperation, missed: &PendingRequest, now: u64) {
        let number = self.pool.begin(PendingOperation {
            refill: true,
            ..PendingOperation::new(sourced, now, self.in_window)
        });
        let mut request = self.pool.request(number, Kind::Set, now);
        request.keys.push(missed.keys.get(0));
        let server = self.server_of(missed.keys.get(0), Kind::Set);
        self.dispatch(request, server);
    }

    /// An operation has its last answer, or has failed.
    pub(super) fn end(&mut self, pending: &PendingOperation, now: u64, woken_after: Option<u64>) {
        let PendingOperation {
            sourced: SourcedOperation { operation, .. }, due, sent, failed, ..
        } = *pending;
        if pending.refill {
            self.end_fetch(pending, now);
            self.stats.refills += u64::from(pending.counts && !failed);
            return;
        }
        match operation.op {
            Op::Insert => {
                self.stats.changes.inserted += u64::from(!failed);
                self.finish_insert(operation, !failed);
            }
            Op::Delete => self.stats.changes.deleted += u64::from(!failed),
            _ => {}
        }
        self.done += 1;
        self.progress.count(self.done);
        if !pending.counts {
            return;
        }
        let stats = &mut self.stats;
        let (open, counts) = (self.shared.open, &stats.answer_counts);
        self.recorder.record(open, self.clock, operation.op, due, sent, now, counts);
        if let Some(woken_after) = woken_after {
            let whole = self.clock.nanos(sent, now);
            let woken_after = woken_after.min(whole);
            self.recorder.record_arrival(operation.op, whole - woken_after);
            stats.woken += 1;
            stats.wake_ns += woken_after;
        }
        stats.operations += 1;
        stats.counts[operation.op] += 1;
        stats.ended = now;
        if self.shared.open {
            stats.waited = self.waited;
            stats.late += if failed { 0 } else { now.saturating_sub(pending.ideal) };
            stats.queued += u64::from(pending.queued > 0);
            stats.queue_ticks += pending.queued;
            stats.answered_in_time += u64::from(!failed && now <= self.shared.gate.closes_at());
            let opened_at = self.shared.gate.opened_at();
            if A::TRACED && due >= opened_at {
                let second = self.clock.ticks(1e9);
                let in_time = !failed && now.saturating_sub(due) <= second;
                stats.replayed.count(due - opened_at, second, in_time);
            }
        }
    }
}

fn shown_bytes(bytes: &[u8]) -> String {
    format!("`{}`", bytes[..bytes.len().min(80)].escape_ascii())
}

/// The length of what a server may send without a request: whole push messages, or nothing yet of
/// one that has begun.
#[cold]
fn unrequested(protocol: Protocol, bytes: &[u8]) -> Result<usize, ConnectionFault> {
    let words = match protocol.read_pushes(bytes) {
        Ok(None) => return Ok(0),
        Ok(Some(used)) if used == bytes.len() => return Ok(used),
        Ok(Some(used)) => {
            format!("the server sent unrequested bytes: {}", shown_bytes(&bytes[used..]))
        }
        Err(error) => error.to_string(),
    };
    Err((FailureKind::Garbage, words))
}
