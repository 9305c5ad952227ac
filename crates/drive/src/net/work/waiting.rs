//! Waiting: for answers, at most until the next operation is due.

use std::time::Duration;

use reactor::Gather;

use super::super::demand::NextAction;
use super::super::internal;
use super::{LONGEST_SLEEP, NetworkWorker};
use crate::asks::OperationSource;
use crate::outcome::DriveError;
use crate::pace::{PaceWait, SPIN};

/// How long a closed loop that pipelines lets answers lie for more to come, so that the thread is
/// not woken for each: `docs/decisions/0006-a-closed-loop-gathers.md`.
const PATIENCE: Duration = Duration::from_micros(50);
/// How long it looks without sleeping before that, where answers come in whole batches.
const LOOK: Duration = Duration::from_micros(20);

impl<A: OperationSource> NetworkWorker<'_, A> {
    /// What a wait is to end for. One in which nothing can be asked before an answer comes, with
    /// several requests under way on a connection, goes on until half of the connections have
    /// some: the others keep the server busy meanwhile.
    fn gather(&self, next: NextAction) -> Gather {
        if next != NextAction::Answer || self.depth == 1 {
            return Gather::NONE;
        }
        let filled = self.pool.under_way().saturating_sub(self.queued) / self.depth;
        let least = u32::try_from(filled / 2).unwrap_or(u32::MAX).max(1);
        Gather { least, max_wait: PATIENCE }
    }

    /// Waits for answers, at most until the next operation is due.
    pub(super) fn poll(&mut self, next: NextAction) -> Result<(), DriveError> {
        let mut begin = self.clock.now();
        let longest = match next {
            _ if self.busy_poll => Duration::ZERO,
            NextAction::At(due) => {
                Duration::from_nanos(self.clock.nanos(begin, due)).saturating_sub(SPIN)
            }
            NextAction::Due(_) => Duration::ZERO,
            NextAction::Answer | NextAction::Never => LONGEST_SLEEP,
        };
        let limit = Some(longest.min(LONGEST_SLEEP));
        let gather = self.gather(next);
        // The next batch is near, and to be woken costs both sides more.
        if gather != Gather::NONE && self.at_once * 2.0 >= self.depth as f32 {
            if self.look(begin)? {
                return Ok(());
            }
            begin = self.clock.now();
        }
        let ready = self.reactor.poll_many(limit, gather).map_err(internal)?;
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

    /// Looks for answers for a while without sleeping; whether some came.
    fn look(&mut self, begin: u64) -> Result<bool, DriveError> {
        let until = begin + self.clock.ticks_of(LOOK);
        let (mut now, mut ready) = (begin, 0);
        while ready == 0 && now < until {
            ready = self.reactor.poll(Some(Duration::ZERO)).map_err(internal)?;
            now = self.clock.now();
        }
        self.waited = self.waited + PaceWait { idle: now - begin, spinning: now - begin };
        Ok(ready > 0)
    }
}
