//! Failures: lost connections and reconnects, lost servers, failed requests.

use std::time::Duration;

use reactor::{ConnectionState, Stream};
use store::StoreError;
use store::wire::Kind;

use super::super::connection::Reconnect;
use super::super::operation::{PendingOperation, PendingRequest};
use super::super::schedule::RequestSchedule;
use super::{LONGEST_SLEEP, NetworkWorker};
use crate::answer_counts::MAX_CONSECUTIVE_FAILURES;
use crate::outcome::FailureKind;
use crate::source::{OperationSource, SourcedOperation};

/// Backoff between two attempts to reconnect.
const FIRST_RETRY: Duration = Duration::from_millis(10);
const LONGEST_RETRY: Duration = Duration::from_millis(500);

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// Fails a request, and with its last request the operation. Returns the operation if it has
    /// ended.
    pub(super) fn abandon(&mut self, request: PendingRequest) -> Option<PendingOperation> {
        let pending = self.pool.operation(request.operation);
        pending.unanswered -= 1;
        pending.failed = true;
        let pending = *pending;
        let number = request.operation;
        self.pool.recycle(request);
        if pending.unanswered > 0 {
            return None;
        }
        self.pool.end(number);
        Some(pending)
    }

    /// Fails all requests in flight on a connection and schedules a reconnect.
    #[cold]
    pub(super) fn fail_connection(
        &mut self,
        number: usize,
        kind: FailureKind,
        words: &str,
        schedule: &mut RequestSchedule,
    ) {
        let now = self.clock.now();
        let address = self.network.address(self.connections[number].server);
        let connection = &mut self.connections[number];
        connection.needs = 0;
        connection.unsent = 0;
        // A connection on which nothing was answered backs off further.
        connection.attempts =
            if std::mem::take(&mut connection.has_answered) { 0 } else { connection.attempts + 1 };
        let retry_at = now + self.clock.ticks_of(backoff(connection.attempts));
        connection.down = Some(Reconnect { since: now, retry_at });
        if std::mem::take(&mut connection.listed) {
            self.servers[connection.server].with_room.retain(|other| *other != number);
        }
        self.unflushed.retain(|other| *other != number);
        self.next_check = now;
        let server = connection.server;
        self.note_lost(server);
        self.eject(server);
        let connection = &mut self.connections[number];
        let lost: Vec<PendingRequest> = connection.in_flight.drain(..).collect();
        if lost.is_empty() {
            // A connection that was closed while idle has harmed no operation.
            if kind != FailureKind::Closed {
                self.stats.answer_counts.fail(kind, || format!("{address}: {words}"));
                self.count_failure();
            }
            return;
        }
        let lost = match kind {
            FailureKind::Closed | FailureKind::Timeout => self.retry_lost(lost, now),
            _ => lost,
        };
        if lost.is_empty() {
            return;
        }
        if let Some(nodes) = &mut self.nodes {
            nodes.fail(server, lost.len());
        }
        if self.ejected.is_some() && matches!(kind, FailureKind::Closed | FailureKind::Timeout) {
            // What ejection costs, and no fault of the run.
            self.stats.ring.failed += lost.len() as u64;
            lost.into_iter().for_each(|request| self.end_failed(request, now, schedule));
            return;
        }
        for request in lost {
            self.fail_request(request, kind, &format!("{address}: {words}"), now, schedule);
        }
        self.count_failure();
    }

    /// Counts a failure, and gives up after too many in a row: more of them would not be a
    /// measurement.
    #[cold]
    pub(super) fn count_failure(&mut self) {
        let most = MAX_CONSECUTIVE_FAILURES.max(2 * self.connections.len() as u64);
        let row = self.stats.answer_counts.count_failure();
        if row >= most && !self.gave_up {
            let when = self.when(self.clock.now());
            self.give_up(format!("{when}: {row} failures in a row, and no answer between them"));
        }
    }

    /// Closes the window: no thread issues more operations, those in flight end.
    #[cold]
    pub(super) fn give_up(&mut self, why: String) {
        self.gave_up = true;
        self.stats.gave_up = Some(why);
        self.shared.gate.close(self.clock.now());
    }

    pub(super) fn when(&self, tick: u64) -> String {
        let phase = if self.shared.loads { "load" } else { "window" };
        match self.shared.gate.opened_at() {
            opened if opened <= tick => {
                format!("{:.1} s into the {phase}", self.clock.seconds(opened, tick))
            }
            _ => format!("before the {phase}"),
        }
    }

    pub(super) fn fail_request(
        &mut self,
        request: PendingRequest,
        kind: FailureKind,
        words: &str,
        now: u64,
        schedule: &mut RequestSchedule,
    ) {
        let op = self.pool.operation(request.operation).sourced.operation.op;
        self.stats.answer_counts.fail(kind, || format!("{op}: {words}"));
        self.end_failed(request, now, schedule);
    }

    /// Ends a request that was not answered, and with its last request the operation.
    fn end_failed(&mut self, request: PendingRequest, now: u64, schedule: &mut RequestSchedule) {
        self.stats.changes.refused += u64::from(request.kind != Kind::Get);
        let Some(mut pending) = self.abandon(request) else { return };
        if pending.sent == 0 {
            pending.sent = now;
        }
        self.end(&pending, now, None);
        if pending.holds_slot() {
            schedule.answered(now);
        }
    }

    /// Times out requests and retries lost connections.
    #[cold]
    pub(super) fn check_connections(&mut self, now: u64, schedule: &mut RequestSchedule) {
        let pause = self.clock.ticks_of(LONGEST_SLEEP);
        self.next_check = now + pause;
        self.follow_cluster(now, schedule);
        if !self.joining.is_empty() && !self.shared.gate.stopped() {
            self.take_joined(now);
        }
        let limit = self.clock.ticks_of(self.network.timeout());
        for number in 0..self.connections.len() {
            let connection = &self.connections[number];
            if let Some(down) = connection.down {
                if now >= down.retry_at && !self.shared.gate.stopped() {
                    self.reconnect(number, down);
                }
                continue;
            }
            let sent = connection.in_flight.len() > connection.unsent;
            let since = connection.in_flight.front().filter(|_| sent).map(|request| request.since);
            if since.is_some_and(|since| now.saturating_sub(since) > limit) {
                let timeout = model::Span(self.network.timeout());
                let words = match self.reactor.incoming(number).len() {
                    0 => format!("no answer within {timeout}"),
                    bytes => {
                        format!("no complete answer within {timeout}, only {bytes} bytes of it")
                    }
                };
                self.fail_connection(number, FailureKind::Timeout, &words, schedule);
            } else if since.is_some_and(|since| self.was_replaced(number, now - since.min(now))) {
                let words = "the cluster has replaced it, and it does not answer";
                self.fail_connection(number, FailureKind::Closed, words, schedule);
            } else if !matches!(self.reactor.state(number), ConnectionState::Open) {
                self.read_answers(number, schedule);
            }
        }
    }

    /// The opened successor of a connection. Where other servers go on, another thread opens it;
    /// `None` while it does.
    fn open_again(&mut self, number: usize) -> Option<Result<Stream, StoreError>> {
        let server = self.connections[number].server;
        if self.routes.is_none() && self.ejected.is_none() {
            return Some(self.network.open(server));
        }
        self.connections[number].opening.poll(self.network, server)
    }

    pub(super) fn reconnect(&mut self, number: usize, down: Reconnect) {
        let server = self.connections[number].server;
        let Some(opened) = self.open_again(number) else { return };
        let why = match opened {
            Ok(stream) => match self.reactor.replace(number, stream) {
                Ok(()) => {
                    self.stats.reconnected += 1;
                    let now = self.clock.now();
                    let connection = &mut self.connections[number];
                    connection.down = None;
                    connection.free_all_slots(self.depth, now);
                    self.readmit(server);
                    return self.refill_connection(number, now);
                }
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        let now = self.clock.now();
        let is_lost = now.saturating_sub(down.since) > self.clock.ticks_of(self.network.timeout());
        if is_lost && self.has_no_successor() {
            self.lose_server(server, down.since, &why);
            // It is not retried any more.
            let retry_at = u64::MAX;
            self.connections[number].down = Some(Reconnect { retry_at, ..down });
            return;
        }
        let connection = &mut self.connections[number];
        connection.attempts += 1;
        let retry_at = now + self.clock.ticks_of(backoff(connection.attempts));
        connection.down = Some(Reconnect { retry_at, ..down });
    }

    /// A server is lost: the rest of the phase would measure its absence.
    pub(super) fn lose_server(&mut self, server: usize, since: u64, why: &str) {
        if self.gave_up {
            return;
        }
        let when = self.when(since);
        let share = self.network.share(server).map_or_else(String::new, |share| {
            format!(", which has {:.0} % of the keys,", share * 100.0)
        });
        let address = self.network.address(server);
        let words = format!("{when}: {address}{share} was lost and did not come back: {why}");
        self.stats.answer_counts.fail(FailureKind::Lost, || words.clone());
        self.give_up(words);
    }

    /// Ends unfinished operations at the end of the phase: queued ones were never sent, those in
    /// flight never answered.
    pub(super) fn abandon_unfinished(&mut self) {
        let now = self.clock.now();
        let mut rest: Vec<(usize, PendingRequest)> = Vec::new();
        for (number, server) in self.servers.iter_mut().enumerate() {
            rest.extend(server.queue.drain(..).map(|request| (number, request)));
        }
        rest.extend(self.take_retries().into_iter().map(|request| (0, request)));
        for connection in &mut self.connections {
            let server = connection.server;
            rest.extend(connection.in_flight.drain(..).map(|request| (server, request)));
        }
        for (server, request) in rest {
            let sent = self.pool.operation(request.operation).sent > 0;
            self.stats.changes.refused += u64::from(sent && request.kind != Kind::Get);
            let Some(pending) = self.abandon(request) else { continue };
            let PendingOperation {
                sourced: SourcedOperation { operation, .. },
                counts,
                refill,
                ..
            } = pending;
            if !sent {
                self.finish_insert(operation, false);
                self.stats.never_sent += u64::from(counts && !refill && self.shared.open);
                continue;
            }
            if counts {
                let address = self.network.address(server);
                self.stats.answer_counts.fail(FailureKind::Timeout, || {
                    format!("{}: {address}: no answer before the phase ended", operation.op)
                });
            }
            self.end(&pending, now, None);
        }
        self.stats.never_sent += self.stats.dropped;
    }
}

/// Backoff before a reconnect: none at first, then doubled each time up to the longest.
pub(super) fn backoff(attempts: u32) -> Duration {
    match attempts {
        0 => Duration::ZERO,
        _ => FIRST_RETRY.saturating_mul(1 << (attempts - 1).min(10)).min(LONGEST_RETRY),
    }
}
