//! When packets arrive, how long they are and to which queue they go.

use std::sync::Arc;

use model::random::{Draws, below};

use super::time::{Picos, of_seconds};
use crate::describe::traffic::{ArrivalsSpec as Kind, PortSpec};
use crate::recorded_arrivals::RecordedArrivals;

/// Bytes per frame on the wire besides its own: checksum, preamble and gap.
pub const FRAMING: u64 = 24;

/// Factor on the distance of packets during the ramp.
const RAMP: f64 = 1.5;

/// One packet that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub at: Picos,
    pub bytes: u32,
    pub queue: u32,
}

/// An endless row of arrivals.
#[derive(Debug, Clone)]
pub struct Arrivals {
    draws: Draws,
    /// Picoseconds between two packets on average.
    distance: f64,
    kind: Kind,
    bytes: u32,
    at: f64,
    ramp: Picos,
    trains: Vec<Train>,
    next: usize,
    length: u32,
    queues: u32,
    recorded: Option<(Arc<RecordedArrivals>, usize)>,
}

/// Packets of one flow that a generator still sends.
#[derive(Debug, Clone, Copy, Default)]
struct Train {
    remaining: u32,
    queue: u32,
}

impl Arrivals {
    /// `carried` is what the wire can carry in bits a second.
    pub fn new(
        port: &PortSpec,
        carried: f64,
        queues: u32,
        recorded: Option<Arc<RecordedArrivals>>,
        seed: u64,
    ) -> Arrivals {
        let bytes = port.packet.get_ref().0 as u32;
        let wire = (u64::from(bytes) + FRAMING) as f64 * 8.0 / carried;
        let requested = port.rate.as_ref().map_or(0.0, |rate| 1.0 / rate.get_ref().0);
        // Not more than the capacity of the wire.
        let distance = of_seconds(requested.max(wire) * 1e3) as f64 / 1e3;
        Arrivals {
            draws: Draws::from(seed),
            distance,
            kind: port.arrivals,
            bytes,
            at: 0.0,
            ramp: 0,
            trains: vec![Train::default(); port.generators.get_ref().0 as usize],
            next: 0,
            length: port.train.get_ref().0 as u32,
            queues,
            recorded: recorded.map(|recorded| (recorded, 0)),
        }
    }

    /// Seconds between two packets on average.
    pub fn distance(&self) -> f64 {
        match &self.recorded {
            Some((recorded, _)) => recorded.distance(),
            None => self.distance / super::time::SECOND,
        }
    }

    /// Slows arrivals until then: at a rate near capacity, the delay by empty caches at the beginning
    /// would stay in the queues for ever.
    pub fn ramp(&mut self, until: Picos) {
        self.ramp = until;
    }

    pub fn next(&mut self) -> Arrival {
        let (at, bytes) = match &mut self.recorded {
            Some((recorded, turn)) => {
                let (at, bytes) = recorded.at(*turn);
                *turn += 1;
                (at, bytes)
            }
            None => {
                let slower = if self.at < self.ramp as f64 { RAMP } else { 1.0 };
                let distance = self.distance * slower;
                self.at += match self.kind {
                    Kind::Even => distance,
                    Kind::Poisson => -self.draws.unit().ln() * distance,
                };
                (self.at as Picos, self.bytes)
            }
        };
        Arrival { at, bytes, queue: self.queue() }
    }

    fn queue(&mut self) -> u32 {
        if self.queues == 1 {
            return 0;
        }
        let own = self.next;
        self.next = (own + 1) % self.trains.len();
        if self.trains[own].remaining == 0 {
            let queue = below(self.draws.next(), u64::from(self.queues)) as u32;
            self.trains[own] = Train { remaining: self.length, queue };
        }
        self.trains[own].remaining -= 1;
        self.trains[own].queue
    }
}
