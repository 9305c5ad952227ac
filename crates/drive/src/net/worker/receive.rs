//! Reads answers, checks and records them, and starts follow-up requests.

use model::Op;
use reactor::{ConnectionFailure as Broken, ConnectionState};
use store::wire::{Kind, ParsedResponse, Refusal, Response, WireError};
use workload::{Operation, Workload};

use super::super::operation::{NextStep, PendingOperation, PendingRequest};
use super::super::schedule::RequestSchedule;
use super::NetworkWorker;
use crate::answer_counts::shown;
use crate::outcome::FailureKind;
use crate::source::{OperationSource, SourcedOperation};

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// Reads all complete answers of one connection.
    pub(super) fn read_answers(&mut self, number: usize, schedule: &mut RequestSchedule) {
        if self.connections[number].down.is_some() {
            // Late bytes of a lost connection are discarded.
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
            let connection = &mut self.connections[number];
            if bytes.is_empty() || bytes.len() < connection.needs {
                break;
            }
            // A request that has not been sent cannot have been answered.
            if connection.in_flight.len() <= connection.unsent {
                let words = format!("the server sent unrequested bytes: {}", shown_bytes(bytes));
                return self.fail_connection(number, FailureKind::Garbage, &words, schedule);
            }
            let Some(request) = connection.in_flight.front() else { break };
            let (source, answer_counts) = (&self.source, &mut self.stats.answer_counts);
            let keys = &request.keys;
            let counts = self.pool.operation(request.operation).counts;
            let parsed =
                self.protocol.read(request.kind, keys, request.tag, bytes, |key, value| {
                    if counts {
                        answer_counts.check(source, keys.get(key), value);
                    } else {
                        answer_counts.verify(source, keys.get(key), value);
                    }
                });
            match parsed {
                Ok(ParsedResponse::Incomplete { needs }) => {
                    connection.needs = needs;
                    break;
                }
                Ok(ParsedResponse::Whole { used: bytes, answer }) => {
                    used += bytes;
                    answers += 1;
                    connection.needs = 0;
                    connection.has_answered = true;
                    let server = connection.server;
                    if let Some(request) = connection.in_flight.pop_front() {
                        if self.shared.open {
                            let served = now.saturating_sub(request.since);
                            let woken = arrived.map_or(0, |nanos| self.clock.ticks(nanos as f64));
                            let ideal = request.ideal + served.saturating_sub(woken);
                            connection.free_slot(ideal);
                            let pending = self.pool.operation(request.operation);
                            pending.ideal = pending.ideal.max(ideal);
                        }
                        self.answered(request, answer, server, now, arrived, schedule);
                    }
                }
                Err(error) => {
                    let kind = match error {
                        WireError::OtherKey { .. } => FailureKind::OtherKey,
                        _ => FailureKind::Garbage,
                    };
                    self.reactor.consume(number, used);
                    return self.fail_connection(number, kind, &error.to_string(), schedule);
                }
            }
        }
        self.answers_per_poll += (answers as f32 - self.answers_per_poll) / 16.0;
        self.reactor.consume(number, used);
        let words = match self.reactor.state(number) {
            ConnectionState::Open => return self.refill_connection(number, now),
            ConnectionState::Closed => "the server closed the connection".to_owned(),
            ConnectionState::Failed(failure @ Broken::AnswerTooLarge { .. }) => {
                return self.fail_connection(
                    number,
                    FailureKind::Garbage,
                    &failure.to_string(),
                    schedule,
                );
            }
            ConnectionState::Failed(failure) => failure.to_string(),
        };
        let words = match self.reactor.incoming(number).len() {
            0 => words,
            bytes => format!("{words} after {bytes} bytes of an answer"),
        };
        self.fail_connection(number, FailureKind::Closed, &words, schedule);
    }

    /// One request is answered.
    pub(super) fn answered(
        &mut self,
        request: PendingRequest,
        answer: Response,
        server: usize,
        now: u64,
        arrived: Option<u64>,
        schedule: &mut RequestSchedule,
    ) {
        let number = request.operation;
        let pending = self.pool.operation(number);
        pending.unanswered -= 1;
        let (sourced, counts) = (pending.sourced, pending.counts);
        let operation = sourced.operation;
        let mut refused = None;
        let mut missed = 0;
        match answer {
            Response::Found(found) => missed = request.keys.len() - found,
            Response::Stored | Response::Deleted(_) => {}
            Response::Refused { why, words } => refused = Some((why, words)),
        }
        if let Some((why, words)) = refused {
            pending.failed = true;
            let kind = match why {
                Refusal::OutOfMemory => FailureKind::OutOfMemory,
                _ => FailureKind::Store,
            };
            self.stats.changes.refused += u64::from(request.kind != Kind::Get);
            let address = self.network.address(server);
            self.stats.answer_counts.fail(kind, || format!("{}: {address}: {words}", operation.op));
            self.count_failure();
        } else {
            self.stats.answer_counts.answered();
            if request.kind == Kind::Get {
                if counts {
                    self.stats.answer_counts.hits += (request.keys.len() - missed) as u64;
                }
                if missed > 0 {
                    self.missed(&request, missed, operation, counts);
                } else if Workload::is_absent(operation.record) && operation.keys <= 1 {
                    self.stats.answer_counts.count_unexpected(request.keys.get(0));
                }
            }
        }
        let pending = self.pool.operation(number);
        if pending.unanswered == 0 {
            if pending.next_step == NextStep::Write && !pending.failed {
                pending.next_step = NextStep::End;
                let mut second = self.pool.request(number, Kind::Set, now);
                second.keys.push(request.keys.get(0));
                let server = self.network.server_of(request.keys.get(0));
                self.dispatch(second, server);
            } else {
                let pending = *pending;
                self.end(&pending, now, arrived);
                self.pool.end(number);
                if !pending.refill {
                    schedule.answered(now);
                }
                if missed > 0 && self.refills(&pending) {
                    self.refill(sourced, &request, now);
                }
            }
        }
        self.pool.recycle(request);
    }

    /// Whether a missed read is followed by a set: reads of one key that belongs to the dataset.
    #[cold]
    pub(super) fn refills(&self, pending: &PendingOperation) -> bool {
        let sourced = &pending.sourced;
        sourced.operation.op == Op::Read
            && !pending.refill
            && sourced.operation.keys <= 1
            && self.source.refills(sourced)
            && !self.shared.gate.closed()
    }

    #[cold]
    pub(super) fn missed(
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
        if self.may_miss || some_absent || in_a_hole || Workload::is_absent(operation.record) {
            self.stats.answer_counts.misses += if counts { missed as u64 } else { 0 };
        } else {
            let words = || match request.keys.len() {
                1 => format!("{} is not there", shown(request.keys.get(0))),
                all => format!("{missed} of {all} keys are not there"),
            };
            self.stats.answer_counts.missing += if counts { missed as u64 } else { 0 };
            self.stats.answer_counts.fail(FailureKind::Missing, words);
        }
    }

    /// Cache-aside: sets a missed key, as the application would. Counted apart from the workload's
    /// operations.
    pub(super) fn refill(&mut self, sourced: SourcedOperation, missed: &PendingRequest, now: u64) {
        let number = self.pool.begin(PendingOperation {
            refill: true,
            ..PendingOperation::new(sourced, now, self.in_window)
        });
        let mut request = self.pool.request(number, Kind::Set, now);
        request.keys.push(missed.keys.get(0));
        let server = self.network.server_of(missed.keys.get(0));
        self.dispatch(request, server);
    }

    /// An operation has its last answer, or has failed.
    pub(super) fn end(&mut self, pending: &PendingOperation, now: u64, arrived: Option<u64>) {
        let PendingOperation {
            sourced: SourcedOperation { operation, .. }, due, sent, failed, ..
        } = *pending;
        if pending.refill {
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
        self.recorder.record(self.shared.open, self.clock, operation.op, due, sent, now);
        if let Some(woken_after) = arrived {
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
