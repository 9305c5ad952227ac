//! Waiting: for answers, at most until the next operation is due.

use std::time::Duration;

use reactor::Gather;

use super::super::internal;
use super::super::schedule::NextAction;
use super::{LONGEST_SLEEP, NetworkWorker};
use crate::outcome::DriveError;
use crate::pace::{PaceWait, SPIN};
use crate::source::OperationSource;

/// How long a pipelining closed loop gathers answers, so that the thread is not woken for each: `docs/decisions/0006-a-closed-loop-gathers.md`.
const GATHER_TIMEOUT: Duration = Duration::from_micros(50);
/// How long it polls without sleeping before that, where answers come in whole batches.
const POLL_SPIN: Duration = Duration::from_micros(20);

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// How many answers a wait gathers. If nothing can be issued before an answer comes and
    /// connections are pipelined, it waits until half of the connections have answers: the others
    /// keep the server busy meanwhile.
    fn gather(&self, next: NextAction) -> Gather {
        if next != NextAction::WaitForAnswer || self.depth == 1 {
            return Gather::NONE;
        }
        let filled = self.pool.in_flight().saturating_sub(self.queued) / self.depth;
        let least = u32::try_from(filled / 2).unwrap_or(u32::MAX).max(1);
        Gather { least, max_wait: GATHER_TIMEOUT }
    }

    /// Waits for answers, at most until the next operation is due.
    pub(super) fn poll(&mut self, next: NextAction) -> Result<(), DriveError> {
        let mut begin = self.clock.now();
        let longest = match next {
            _ if self.busy_poll => Duration::ZERO,
            NextAction::WaitUntil(due) => {
                Duration::from_nanos(self.clock.nanos(begin, due)).saturating_sub(SPIN)
            }
            NextAction::Issue(_) => Duration::ZERO,
            NextAction::WaitForAnswer | NextAction::Done => LONGEST_SLEEP,
        };
        let limit = Some(longest.min(LONGEST_SLEEP));
        let gather = self.gather(next);
        // The next batch is near: polling costs less than a wake-up.
        if gather != Gather::NONE && self.answers_per_poll * 2.0 >= self.depth as f32 {
            if self.poll_spinning(begin)? {
                return Ok(());
            }
            begin = self.clock.now();
        }
        let ready = self.reactor.poll_many(limit, gather).map_err(internal)?;
        let spent = self.clock.now() - begin;
        if ready > 0 && longest.is_zero() {
            self.stats.in_store += spent;
        } else {
            self.waited.idle += spent;
            if longest.is_zero() {
                self.waited.spinning += spent;
            }
        }
        Ok(())
    }

    /// Polls for answers for a short time without sleeping; returns whether some came.
    fn poll_spinning(&mut self, begin: u64) -> Result<bool, DriveError> {
        let until = begin + self.clock.ticks_of(POLL_SPIN);
        let (mut now, mut ready) = (begin, 0);
        while ready == 0 && now < until {
            ready = self.reactor.poll(Some(Duration::ZERO)).map_err(internal)?;
            now = self.clock.now();
        }
        self.waited = self.waited + PaceWait { idle: now - begin, spinning: now - begin };
        Ok(ready > 0)
    }
}
