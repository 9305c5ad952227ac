//! The modelled database behind a cache: a read that missed waits for it, then its record is
//! written.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use model::Op;
use store::wire::Kind;

use super::super::operation::{MissedRead, PendingOperation, PendingRequest};
use super::super::schedule::{NextAction, RequestSchedule};
use super::NetworkWorker;
use crate::source::OperationSource;

/// Misses that wait for the modelled database: when it answers, and the write that follows.
#[derive(Debug, Default)]
pub(super) struct Database {
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// By the number of the operation.
    writes: Vec<Option<PendingRequest>>,
}

impl Database {
    fn push(&mut self, due: u64, write: PendingRequest) {
        let number = write.operation;
        if self.writes.len() <= number as usize {
            self.writes.resize_with(number as usize + 1, || None);
        }
        self.writes[number as usize] = Some(write);
        self.due.push(Reverse((due, number)));
    }

    fn pop(&mut self, now: u64) -> Option<PendingRequest> {
        let Reverse((due, number)) = *self.due.peek()?;
        if due > now {
            return None;
        }
        self.due.pop();
        self.writes[number as usize].take()
    }

    /// What is done next, where the database may answer before that.
    pub(super) fn sooner(&self, next: NextAction) -> NextAction {
        let Some(Reverse((answers, _))) = self.due.peek() else { return next };
        match next {
            NextAction::Issue(_) => next,
            NextAction::WaitUntil(due) => NextAction::WaitUntil(due.min(*answers)),
            NextAction::WaitForAnswer | NextAction::Done => NextAction::WaitUntil(*answers),
        }
    }
}

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// How long the modelled database takes for a read that missed; none where there is none.
    #[cold]
    pub(super) fn database_latency(&self, pending: &PendingOperation) -> Option<Duration> {
        let operation = &pending.sourced.operation;
        let is_read = operation.op == Op::Read && operation.keys <= 1 && pending.missed.is_none();
        (is_read && !pending.failed && !self.shared.gate.stopped())
            .then(|| self.source.miss_latency(&pending.sourced))
            .flatten()
    }

    /// The read has ended and is recorded; its miss waits for the database.
    pub(super) fn fetch(
        &mut self,
        read: &PendingOperation,
        request: &PendingRequest,
        now: u64,
        latency: Duration,
    ) {
        let since = if self.shared.open { read.due } else { read.sent };
        let number = self.pool.begin(PendingOperation {
            refill: true,
            missed: Some(MissedRead { since, latency }),
            ..PendingOperation::new(read.sourced, now, read.counts)
        });
        let mut write = self.pool.request(number, Kind::Set, now);
        write.keys.push(request.keys.get(0));
        let due = now + self.clock.ticks_of(latency);
        // Until then idling is no stall.
        self.progress.wait_until(due);
        self.database.push(due, write);
    }

    /// Writes what the database has answered by now. A key that belongs to no record is not there
    /// either, and is not written.
    pub(super) fn take_fetched(&mut self, schedule: &mut RequestSchedule, now: u64) {
        while let Some(mut write) = self.database.pop(now) {
            let number = write.operation;
            let pending = self.pool.operation(number);
            pending.ideal = now;
            if self.source.refills(&pending.sourced) {
                (write.since, write.ideal) = (now, now);
                let server = self.server_of(write.keys.get(0), Kind::Set);
                self.dispatch(write, server);
                continue;
            }
            let pending = *pending;
            self.pool.recycle(write);
            self.pool.end(number);
            self.end_fetch(&pending, now);
            schedule.answered(now);
        }
    }

    /// A miss is over: the client has its value, and the cache too.
    pub(super) fn end_fetch(&mut self, pending: &PendingOperation, now: u64) {
        let Some(missed) = pending.missed else { return };
        if pending.counts && !pending.failed {
            let whole = self.clock.nanos(missed.since, now);
            self.recorder.record_miss(now, whole, &self.stats.answer_counts);
            self.stats.modelled_ns += missed.latency.as_nanos() as u64;
        }
    }
}
