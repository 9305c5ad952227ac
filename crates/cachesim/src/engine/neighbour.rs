//! A core that uses the cache for something else.

use model::random::Draws;

use super::regions::{Region, Regions};
use super::socket::Socket;
use super::tally::Levels;
use super::time::{Picos, of_span};
use crate::describe::traffic::{Neighbour as Described, Pattern};

/// Accesses in one turn.
const TURN: u32 = 64;

#[derive(Debug)]
pub struct Neighbour {
    core: usize,
    /// Which of the described neighbours it is a core of.
    pub of: usize,
    region: Region,
    pattern: Pattern,
    think: Picos,
    /// Writes among 2^32 accesses.
    writes: u64,
    phase: Option<Picos>,
    draws: Draws,
    position: u64,
    pub levels: Levels,
}

impl Neighbour {
    pub fn new(
        core: usize,
        of: usize,
        described: &Described,
        regions: &mut Regions,
        seed: u64,
    ) -> Neighbour {
        let share = described.writes.as_ref().map_or(0.0, |share| *share.get_ref());
        Neighbour {
            core,
            of,
            region: regions.take(described.working_set.get_ref().0),
            pattern: described.pattern,
            think: of_span(described.think),
            writes: (share * (1_u64 << 32) as f64) as u64,
            phase: described.phase.as_ref().map(|phase| of_span(*phase.get_ref())),
            draws: Draws::from(seed ^ (core as u64 + 1) << 48),
            position: 0,
            levels: Levels::default(),
        }
    }

    /// Some accesses; says when it goes on.
    pub fn turn(&mut self, now: Picos, socket: &mut Socket) -> Picos {
        if let Some(phase) = self.phase
            && now / phase % 2 == 1
        {
            return (now / phase + 1) * phase;
        }
        let ways = socket.setting.neighbours;
        let mut spent = 0;
        for _ in 0..TURN {
            let random = self.draws.next();
            let line = match self.pattern {
                Pattern::Random => self.region.drawn(random),
                Pattern::Sequential => self.region.round(self.position),
            };
            self.position += 1;
            let write = (random & 0xffff_ffff) < self.writes;
            let (level, waited) = socket.access(self.core, line, write, ways, now + spent);
            self.levels.count(level);
            spent += waited + self.think;
        }
        now + spent.max(1)
    }
}
