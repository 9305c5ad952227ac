//! A core of a co-runner.

use model::random::Draws;

use super::regions::{Region, Regions};
use super::socket::{Dependence, Socket};
use super::tally::Levels;
use super::time::{Picos, of_span};
use crate::describe::traffic::{CoRunnerSpec as Described, Pattern};

/// Accesses in one turn.
const ACCESSES_PER_TURN: u32 = 64;

#[derive(Debug)]
pub struct CoRunner {
    core: usize,
    /// Index of its description.
    pub of: usize,
    region: Region,
    pattern: Pattern,
    think: Picos,
    /// Writes among 2^32 accesses.
    writes: u64,
    phase: Option<Picos>,
    /// Its own mask of ways.
    ways: u32,
    draws: Draws,
    position: u64,
    pub levels: Levels,
}

impl CoRunner {
    pub fn new(
        core: usize,
        of: usize,
        described: &Described,
        regions: &mut Regions,
        seed: u64,
    ) -> CoRunner {
        let share = described.writes.as_ref().map_or(0.0, |share| *share.get_ref());
        CoRunner {
            core,
            of,
            region: regions.take(described.working_set.get_ref().0),
            pattern: described.pattern,
            think: of_span(described.think),
            writes: (share * (1_u64 << 32) as f64) as u64,
            phase: described.phase.as_ref().map(|phase| of_span(*phase.get_ref())),
            ways: described.ways.as_ref().map_or(u32::MAX, |ways| *ways.get_ref()),
            draws: Draws::from(seed ^ (core as u64 + 1) << 48),
            position: 0,
            levels: Levels::default(),
        }
    }

    /// The intersection of the co-runners' ways with its own; its own if that is empty.
    fn own_ways(&self, all: u32) -> u32 {
        match self.ways & all {
            0 => self.ways,
            both => both,
        }
    }

    /// Makes some accesses; returns when it continues.
    pub fn turn(&mut self, now: Picos, socket: &mut Socket) -> Picos {
        if let Some(phase) = self.phase
            && now / phase % 2 == 1
        {
            return (now / phase + 1) * phase;
        }
        let ways = self.own_ways(socket.setting.co_runners);
        let mut spent = 0;
        for _ in 0..ACCESSES_PER_TURN {
            let random = self.draws.next();
            let line = match self.pattern {
                Pattern::Random => self.region.drawn(random),
                Pattern::Sequential => self.region.round(self.position),
            };
            self.position += 1;
            let write = (random & 0xffff_ffff) < self.writes;
            let (level, waited) =
                socket.access(self.core, line, write, ways, now + spent, Dependence::Free);
            self.levels.count(level);
            spent += waited + self.think;
        }
        now + spent.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SimulatedMachine, Traffic};

    #[test]
    fn each_co_runner_stays_in_its_own_mask() {
        let machine = SimulatedMachine::open("xeon-gold-6140").unwrap();
        let traffic = Traffic::open("co-run", &machine).unwrap();
        let mut described = traffic.neighbours[0].clone();
        let mut regions = Regions::default();
        described.ways = Some(toml::Spanned::new(0..0, 0b0110));
        let confined = CoRunner::new(1, 0, &described, &mut regions, 1);
        assert_eq!(confined.own_ways(0x7ff), 0b0110);
        assert_eq!(confined.own_ways(0b0011), 0b0010);
        assert_eq!(confined.own_ways(0b1000), 0b0110, "it has to fill some way");
        described.ways = None;
        assert_eq!(CoRunner::new(1, 0, &described, &mut regions, 1).own_ways(0b1000), 0b1000);
    }
}
