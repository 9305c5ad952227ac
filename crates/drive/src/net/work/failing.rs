//! What goes wrong: connections that are lost and made again, servers that are gone, requests
//! that come to nothing.

use std::time::Duration;

use reactor::ConnectionState;
use store::wire::Kind;

use super::super::demand::RequestSchedule;
use super::super::line::Reconnect;
use super::super::operation::{PendingOperation, PendingRequest};
use super::{LONGEST_SLEEP, NetworkWorker};
use crate::asks::{OperationSource, SourcedOperation};
use crate::outcome::FailureKind;
use crate::verdict::MOST_IN_A_ROW;

/// Pauses between two tries to connect again.
const FIRST_RETRY: Duration = Duration::from_millis(10);
const LONGEST_RETRY: Duration = Duration::from_millis(500);

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// A request comes to nothing, and with its last request the operation. Answers the
    /// operation, if that has ended so.
    pub(super) fn abandon(&mut self, request: PendingRequest) -> Option<PendingOperation> {
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

    /// Everything under way on a connection has failed; it is connected to again.
    #[cold]
    pub(super) fn fail_line(
        &mut self,
        number: usize,
        kind: FailureKind,
        words: &str,
        demand: &mut RequestSchedule,
    ) {
        let now = self.clock.now();
        let address = self.network.address(self.lines[number].server);
        let line = &mut self.lines[number];
        line.needs = 0;
        line.unsent = 0;
        // One that nothing was ever answered on is not hurried to the next try.
        line.tries = if std::mem::take(&mut line.proved) { 0 } else { line.tries + 1 };
        let retry_at = now + self.clock.ticks_of(pause(line.tries));
        line.down = Some(Reconnect { since: now, retry_at });
        if std::mem::take(&mut line.listed) {
            self.servers[line.server].with_room.retain(|other| *other != number);
        }
        self.touched.retain(|other| *other != number);
        self.next_look = now;
        let lost: Vec<PendingRequest> = line.under_way.drain(..).collect();
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
    pub(super) fn failed_again(&mut self) {
        let most = MOST_IN_A_ROW.max(2 * self.lines.len() as u64);
        let row = self.seen.verdicts.failed_again();
        if row >= most && !self.gave_up {
            let when = self.when(self.clock.now());
            self.give_up(format!("{when}: {row} failures in a row, and no answer between them"));
        }
    }

    /// No thread asks any more; what is under way ends.
    #[cold]
    pub(super) fn give_up(&mut self, why: String) {
        self.gave_up = true;
        self.seen.gave_up = Some(why);
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
        demand: &mut RequestSchedule,
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
    pub(super) fn look_after_lines(&mut self, now: u64, demand: &mut RequestSchedule) {
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
            } else if !matches!(self.reactor.state(number), ConnectionState::Open) {
                self.answers(number, demand);
            }
        }
    }

    pub(super) fn connect_again(&mut self, number: usize, down: Reconnect) {
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
            self.lines[number].down = Some(Reconnect { retry_at, ..down });
            return;
        }
        let line = &mut self.lines[number];
        line.tries += 1;
        let retry_at = now + self.clock.ticks_of(pause(line.tries));
        line.down = Some(Reconnect { retry_at, ..down });
    }

    /// A server is gone: what is left of the phase would measure its absence.
    pub(super) fn lose(&mut self, server: usize, since: u64, why: &str) {
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
    pub(super) fn give_up_the_rest(&mut self) {
        let now = self.clock.now();
        let mut rest: Vec<(usize, PendingRequest)> = Vec::new();
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
            let PendingOperation { asked: SourcedOperation { ask, .. }, counts, refill, .. } =
                operation;
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
