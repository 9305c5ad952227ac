//! Shows a controller what happened and turns what it wants turned.

use super::neighbour::Neighbour;
use super::socket::Socket;
use super::tally::{Levels, Tally};
use super::time::{Picos, of_seconds, seconds};
use crate::policy::{Controller, Observed, Setting};

/// A setting and when it began to hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    pub at_s: f64,
    pub setting: Setting,
}

#[derive(Debug)]
pub struct Overseer {
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
    neighbours: Levels,
}

impl Totals {
    fn of(tally: &Tally, neighbours: &[Neighbour]) -> Totals {
        let mut all = Levels::default();
        for neighbour in neighbours {
            all.add(neighbour.levels);
        }
        Totals {
            write: (tally.write.hits, tally.write.misses),
            read: (tally.read.hits, tally.read.misses),
            answered: tally.finished,
            busy: tally.busy,
            dropped: tally.no_descriptor + tally.card_full,
            workers: tally.workers,
            neighbours: all,
        }
    }
}

impl Overseer {
    pub fn new(controller: Option<Box<dyn Controller>>, setting: Setting) -> Overseer {
        let changes = vec![Change { at_s: 0.0, setting }];
        Overseer { controller, before: Totals::default(), since: 0, changes }
    }

    /// The window of the controller, if there is one.
    pub fn window(&self) -> Option<Picos> {
        self.controller.as_ref().map(|controller| of_seconds(controller.window()).max(1))
    }

    /// The counters were set to nothing.
    pub fn counters_begin_again(&mut self, now: Picos) {
        (self.before, self.since) = (Totals::default(), now);
    }

    /// The end of a window; says when the next ends.
    pub fn turn(
        &mut self,
        now: Picos,
        socket: &mut Socket,
        neighbours: &[Neighbour],
    ) -> Option<Picos> {
        let window = self.window()?;
        let controller = self.controller.as_mut()?;
        let totals = Totals::of(&socket.tally, neighbours);
        if now - self.since < window / 2 {
            // The counters have just begun again: too short a window to judge by.
            return Some(now + window);
        }
        let before = std::mem::replace(&mut self.before, totals);
        let workers = totals.workers.since(before.workers);
        let others = totals.neighbours.since(before.neighbours);
        let setting = controller.next(&Observed {
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
            neighbour_accesses: others.total(),
            neighbour_reached: others.beyond_private(),
            neighbour_misses: others.memory,
        });
        self.since = now;
        if setting != socket.setting {
            socket.setting = setting;
            self.changes.push(Change { at_s: seconds(now), setting });
        }
        Some(now + window)
    }
}
