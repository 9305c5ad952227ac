//! Answers: read, judged, recorded, and what they leave to be done.

use model::Op;
use reactor::{ConnectionFailure as Broken, ConnectionState};
use store::wire::{Kind, ParsedResponse, Refusal, Response, WireError};
use workload::{Operation, Workload};

use super::super::demand::RequestSchedule;
use super::super::operation::{NextStep, PendingOperation, PendingRequest};
use super::NetworkWorker;
use crate::asks::{OperationSource, SourcedOperation};
use crate::outcome::FailureKind;
use crate::verdict::shown;

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// Reads every whole answer of one connection.
    pub(super) fn answers(&mut self, number: usize, demand: &mut RequestSchedule) {
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
                Ok(ParsedResponse::Incomplete { needs }) => {
                    line.needs = needs;
                    break;
                }
                Ok(ParsedResponse::Whole { used: bytes, answer }) => {
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
            ConnectionState::Open => return self.refill_line(number, now),
            ConnectionState::Closed => "the server closed the connection".to_owned(),
            ConnectionState::Failed(failure @ Broken::AnswerTooLarge { .. }) => {
                return self.fail_line(number, FailureKind::Garbage, &failure.to_string(), demand);
            }
            ConnectionState::Failed(failure) => failure.to_string(),
        };
        let words = match self.reactor.incoming(number).len() {
            0 => words,
            bytes => format!("{words} after {bytes} bytes of an answer"),
        };
        self.fail_line(number, FailureKind::Closed, &words, demand);
    }

    /// One request is answered.
    pub(super) fn answered(
        &mut self,
        request: PendingRequest,
        answer: Response,
        server: usize,
        now: u64,
        arrived: Option<u64>,
        demand: &mut RequestSchedule,
    ) {
        let number = request.operation;
        let operation = self.pool.operation(number);
        operation.left -= 1;
        let (asked, counts) = (operation.asked, operation.counts);
        let ask = asked.ask;
        let mut refused = None;
        let mut missed = 0;
        match answer {
            Response::Found(found) => missed = request.keys.len() - found,
            Response::Stored | Response::Deleted(_) => {}
            Response::Refused { why, words } => refused = Some((why, words)),
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
            if operation.then == NextStep::Write && !operation.failed {
                operation.then = NextStep::End;
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
    pub(super) fn refills(&self, operation: &PendingOperation) -> bool {
        let asked = &operation.asked;
        asked.ask.op == Op::Read
            && !operation.refill
            && asked.ask.keys <= 1
            && self.asks.refills(asked)
            && !self.shared.gate.closed()
    }

    #[cold]
    pub(super) fn missed(
        &mut self,
        request: &PendingRequest,
        missed: usize,
        ask: Operation,
        counts: bool,
    ) {
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
            self.seen.verdicts.missing += if counts { missed as u64 } else { 0 };
            self.seen.verdicts.fail(FailureKind::Missing, words);
        }
    }

    /// Cache-aside: what was missed is set, as the application behind the cache would. It is the
    /// client's own traffic, counted apart.
    pub(super) fn refill(&mut self, asked: SourcedOperation, missed: &PendingRequest, now: u64) {
        let number = self.pool.begin(PendingOperation {
            refill: true,
            ..PendingOperation::new(asked, now, self.in_window)
        });
        let mut request = self.pool.request(number, Kind::Set, now);
        request.keys.push(missed.keys.get(0));
        let server = self.network.server_of(missed.keys.get(0));
        self.place(request, server);
    }

    /// An operation has its last answer, or has failed.
    pub(super) fn end(&mut self, operation: &PendingOperation, now: u64, arrived: Option<u64>) {
        let PendingOperation { asked: SourcedOperation { ask, .. }, due, sent, failed, .. } =
            *operation;
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
}

fn shown_bytes(bytes: &[u8]) -> String {
    format!("`{}`", bytes[..bytes.len().min(80)].escape_ascii())
}
