//! Draws operations from their source, holds them until they are due, and begins them.

use model::Op;
use workload::Operation;

use super::super::schedule::{NextAction, RequestSchedule};
use super::NetworkWorker;
use crate::pace::SPIN;
use crate::source::{Exhausted, OperationSource, SourcedOperation};
use crate::worker::READER_WAIT;

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// Begins every operation that is due.
    pub(super) fn issue_due(&mut self, schedule: &mut RequestSchedule, now: u64) -> NextAction {
        loop {
            if self.gave_up {
                return NextAction::Done;
            }
            if A::TRACED && schedule.needs_next() {
                match self.draw(now) {
                    Some(sourced) => self.hold_until_due(sourced, schedule, now),
                    None => return self.when_exhausted(now),
                }
            }
            let next = schedule.next(now, &self.shared.gate);
            let NextAction::Issue(due) = next else { return next };
            let Some(sourced) = self.next_operation.take().or_else(|| self.draw(now)) else {
                return self.when_exhausted(now);
            };
            schedule.take();
            self.begin(sourced, due, schedule);
        }
    }

    /// Holds an operation until it is due.
    pub(super) fn hold_until_due(
        &mut self,
        sourced: SourcedOperation,
        schedule: &mut RequestSchedule,
        now: u64,
    ) {
        let due = schedule.set_next(sourced.at);
        self.progress.wait_until(due);
        self.awaited_until = if sourced.awaited { now } else { self.awaited_until };
        self.stats.replayed.read_late += u64::from(due < self.awaited_until);
        self.next_operation = Some(sourced);
    }

    pub(super) fn when_exhausted(&self, now: u64) -> NextAction {
        match self.exhausted_since {
            // A slow reader, such as standard input, is not the servers' fault.
            Some(_) if A::TRACED => {
                self.progress.wait_until(now + self.clock.ticks(1e9));
                match self.shared.gate.closed() {
                    true => NextAction::Done,
                    false => NextAction::WaitUntil(now + self.clock.ticks_of(SPIN + READER_WAIT)),
                }
            }
            _ if self.block_left.is_some() => NextAction::WaitForAnswer,
            _ => NextAction::Done,
        }
    }

    /// Whether this thread is between two blocks while threads gather.
    pub(super) fn gathers(&self) -> bool {
        self.block_left == Some(0) && self.shared.gate.gathers()
    }

    pub(super) fn draw(&mut self, now: u64) -> Option<SourcedOperation> {
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
                self.source.seek(self.shared.block(turn));
                self.block_left = Some(length);
                self.publish_floor();
                continue;
            }
            self.block_left = Some(left - 1);
            let known =
                if self.needs_frontier { self.shared.frontier.acknowledged() } else { u64::MAX };
            match self.source.next(known) {
                Some(sourced) => {
                    self.stats.drawn += 1;
                    if sourced.operation.op == Op::Insert && self.needs_frontier {
                        self.inserts.begin(sourced.operation.record);
                    }
                    if A::TRACED
                        && let Some(since) = self.exhausted_since.take()
                    {
                        self.stats.replayed.starved += now.saturating_sub(since);
                    }
                    return Some(sourced);
                }
                None => match self.source.exhausted() {
                    Exhausted::Block => self.block_left = Some(0),
                    Exhausted::NotYet => {
                        self.block_left = Some(left);
                        self.exhausted_since.get_or_insert(now);
                        return None;
                    }
                    Exhausted::End => {
                        (self.block_left, self.exhausted_since) = (None, None);
                        return None;
                    }
                },
            }
        }
    }

    pub(super) fn publish_floor(&mut self) {
        if self.needs_frontier {
            let next = self.block_left.map_or(u64::MAX, |_| self.source.next_insert());
            self.progress.advance(self.inserts.floor(next));
        }
    }

    pub(super) fn finish_insert(&mut self, operation: Operation, stored: bool) {
        if operation.op == Op::Insert && self.needs_frontier {
            if !stored {
                self.shared.frontier.leave_hole();
            }
            self.inserts.end(operation.record);
            self.publish_floor();
        }
    }
}
