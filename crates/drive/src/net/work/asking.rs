//! What is asked next: operations drawn from their source, kept until they are due, begun.

use model::Op;
use workload::Operation;

use super::super::demand::{NextAction, RequestSchedule};
use super::NetworkWorker;
use crate::asks::{Exhausted, OperationSource, SourcedOperation};
use crate::pace::SPIN;
use crate::worker::READING;

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// Takes every operation that is due and puts it on its way.
    pub(super) fn admit(&mut self, demand: &mut RequestSchedule, now: u64) -> NextAction {
        loop {
            if self.gave_up {
                return NextAction::Never;
            }
            if A::TRACED && demand.wants_schedule() {
                match self.draw(now) {
                    Some(asked) => self.schedule(asked, demand, now),
                    None => return self.nothing_drawn(now),
                }
            }
            let next = demand.next(now, &self.shared.gate);
            let NextAction::Due(due) = next else { return next };
            let Some(asked) = self.pending.take().or_else(|| self.draw(now)) else {
                return self.nothing_drawn(now);
            };
            demand.take();
            self.begin(asked, due, demand);
        }
    }

    /// Keeps an operation until it is due.
    pub(super) fn schedule(
        &mut self,
        asked: SourcedOperation,
        demand: &mut RequestSchedule,
        now: u64,
    ) {
        let due = demand.schedule(asked.at);
        self.lane.wait_until(due);
        self.came_at = if asked.awaited { now } else { self.came_at };
        self.seen.replayed.read_late += u64::from(due < self.came_at);
        self.pending = Some(asked);
    }

    pub(super) fn nothing_drawn(&self, now: u64) -> NextAction {
        match self.dry_since {
            // A reader may be slow, as standard input is; that is no fault of the servers.
            Some(_) if A::TRACED => {
                self.lane.wait_until(now + self.clock.ticks(1e9));
                match self.shared.gate.closed() {
                    true => NextAction::Never,
                    false => NextAction::At(now + self.clock.ticks_of(SPIN + READING)),
                }
            }
            _ if self.block_left.is_some() => NextAction::Answer,
            _ => NextAction::Never,
        }
    }

    /// The threads are to come together between two blocks.
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
                    Exhausted::Block => self.block_left = Some(0),
                    Exhausted::NotYet => {
                        self.block_left = Some(left);
                        self.dry_since.get_or_insert(now);
                        return None;
                    }
                    Exhausted::End => {
                        (self.block_left, self.dry_since) = (None, None);
                        return None;
                    }
                },
            }
        }
    }

    pub(super) fn publish_floor(&mut self) {
        if self.needs_frontier {
            let next = self.block_left.map_or(u64::MAX, |_| self.asks.next_insert());
            self.lane.advance(self.inserts.floor(next));
        }
    }

    pub(super) fn insert_ended(&mut self, ask: Operation, stored: bool) {
        if ask.op == Op::Insert && self.needs_frontier {
            if !stored {
                self.shared.frontier.leave_hole();
            }
            self.inserts.end(ask.record);
            self.publish_floor();
        }
    }
}
