//! Gives a controller its observations and applies its settings.

use super::co_runner::CoRunner;
use super::socket::Socket;
use super::tally::{Levels, Tally};
use super::time::{Picos, of_seconds, seconds};
use crate::policy::{Controller, WayMask, WindowObservation};

/// A setting and when it began to hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    pub at_s: f64,
    pub setting: WayMask,
}

#[derive(Debug)]
pub struct PolicyDriver {
    controller: Option<Box<dyn Controller>>,
    before: Totals,
    since: Picos,
    pub changes: Vec<Change>,
}

/// Counters at the beginning of a window.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    write: (u64, u64),
    read: (u64, u64),
    answered: u64,
    busy: u64,
    dropped: u64,
    workers: Levels,
    co_runners: Levels,
}

impl Totals {
    fn of(tally: &Tally, co_runners: &[CoRunner]) -> Totals {
        let mut all = Levels::default();
        for core in co_runners {
            all.add(core.levels);
        }
        Totals {
            write: (tally.write.hits, tally.write.misses),
            read: (tally.read.hits, tally.read.misses),
            answered: tally.finished,
            busy: tally.busy,
            dropped: tally.no_descriptor + tally.card_full,
            workers: tally.workers,
            co_runners: all,
        }
    }
}

impl PolicyDriver {
    pub fn new(controller: Option<Box<dyn Controller>>, setting: WayMask) -> PolicyDriver {
        let changes = vec![Change { at_s: 0.0, setting }];
        PolicyDriver { controller, before: Totals::default(), since: 0, changes }
    }

    /// The length of the controller's window, if there is one.
    pub fn window(&self) -> Option<Picos> {
        self.controller.as_ref().map(|controller| of_seconds(controller.window()).max(1))
    }

    /// Restarts the window after the counters were reset.
    pub fn reset_counters(&mut self, now: Picos) {
        (self.before, self.since) = (Totals::default(), now);
    }

    /// Ends a window; returns when the next one ends.
    pub fn turn(
        &mut self,
        now: Picos,
        socket: &mut Socket,
        co_runners: &[CoRunner],
    ) -> Option<Picos> {
        let window = self.window()?;
        let controller = self.controller.as_mut()?;
        let totals = Totals::of(&socket.tally, co_runners);
        if now - self.since < window / 2 {
            // The counters were just reset: the window is too short.
            return Some(now + window);
        }
        let before = std::mem::replace(&mut self.before, totals);
        let workers = totals.workers.since(before.workers);
        let others = totals.co_runners.since(before.co_runners);
        let setting = controller.next(&WindowObservation {
            seconds: seconds(now - self.since),
            write_hits: totals.write.0 - before.write.0,
            write_misses: totals.write.1 - before.write.1,
            read_hits: totals.read.0 - before.read.0,
            read_misses: totals.read.1 - before.read.1,
            answered: totals.answered - before.answered,
            busy_seconds: seconds(totals.busy - before.busy),
            dropped: totals.dropped - before.dropped,
            worker_reached: workers.beyond_private(),
            worker_misses: workers.memory,
            co_runner_accesses: others.total(),
            co_runner_reached: others.beyond_private(),
            co_runner_misses: others.memory,
        });
        self.since = now;
        if setting != socket.setting {
            socket.setting = setting;
            self.changes.push(Change { at_s: seconds(now), setting });
        }
        Some(now + window)
    }
}
