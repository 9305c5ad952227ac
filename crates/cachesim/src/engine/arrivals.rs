//! When packets arrive, how long they are and to which queue they go.

use std::sync::Arc;

use model::random::{Draws, below};

use super::time::{Picos, of_seconds, of_span};
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
    burst: Option<Burst>,
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

/// Spans of another rate, in picoseconds: the last `lasts` of each `every`.
#[derive(Debug, Clone, Copy)]
struct Burst {
    distance: f64,
    lasts: f64,
    every: f64,
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
        // Not more than the capacity of the wire.
        let apart = |seconds: f64| of_seconds(seconds.max(wire) * 1e3) as f64 / 1e3;
        let distance = apart(port.rate.as_ref().map_or(0.0, |rate| 1.0 / rate.get_ref().0));
        let burst = port.burst.as_ref().map(|burst| Burst {
            distance: apart(1.0 / burst.rate.get_ref().0),
            lasts: of_span(*burst.lasts.get_ref()) as f64,
            every: of_span(burst.every) as f64,
        });
        Arrivals {
            draws: Draws::from(seed),
            distance,
            burst,
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
            None => {
                let burst = self.burst.map_or(0.0, |burst| burst.lasts / burst.every);
                let rate = |distance: f64| 1.0 / distance;
                let other = self.burst.map_or(0.0, |burst| rate(burst.distance));
                let mean = (1.0 - burst) * rate(self.distance) + burst * other;
                1.0 / mean / super::time::SECOND
            }
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
                let packets = match self.kind {
                    Kind::Even => 1.0,
                    Kind::Poisson => -self.draws.unit().ln(),
                };
                self.pass(packets, slower);
                (self.at as Picos, self.bytes)
            }
        };
        Arrival { at, bytes, queue: self.queue() }
    }

    /// Moves on by `packets` mean distances, each as long as it is where it lies.
    fn pass(&mut self, mut packets: f64, slower: f64) {
        let Some(burst) = self.burst else {
            self.at += packets * (self.distance * slower);
            return;
        };
        let each = (burst.every - burst.lasts) / self.distance + burst.lasts / burst.distance;
        let whole = (packets * slower / each).floor();
        self.at += whole * burst.every;
        packets -= whole * each / slower;
        loop {
            let period = (self.at / burst.every).floor() * burst.every;
            let begins = period + burst.every - burst.lasts;
            let (distance, end) = if self.at < begins {
                (self.distance, begins)
            } else {
                (burst.distance, period + burst.every)
            };
            let distance = distance * slower;
            let left = (end - self.at) / distance;
            if packets <= left {
                self.at += packets * distance;
                return;
            }
            packets -= left;
            // An end that rounding puts at or before this instant would be met again.
            self.at = end.max(self.at + 1.0);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SimulatedMachine, Traffic};

    /// Packets of each tenth of a second, 200,000 a second with bursts of two million in the last
    /// quarter of each millisecond.
    fn in_tenths(kind: Kind) -> (Arrivals, [u64; 5], f64) {
        let machine = SimulatedMachine::open("xeon-gold-6140").unwrap();
        let mut port = Traffic::open("forward", &machine).unwrap().port;
        let spanned = |text: &str| toml::Spanned::new(0..0, text.parse().unwrap());
        port.rate = Some(spanned("200k"));
        port.arrivals = kind;
        port.burst = Some(crate::describe::traffic::BurstSpec {
            rate: spanned("2M"),
            lasts: toml::Spanned::new(0..0, "250us".parse().unwrap()),
            every: "1ms".parse().unwrap(),
        });
        let mut arrivals = Arrivals::new(&port, 1e11, 1, None, 3);
        let (mut tenths, mut in_bursts) = ([0; 5], 0);
        loop {
            let at = arrivals.next().at;
            let Some(tenth) = tenths.get_mut((at / 100_000_000_000) as usize) else { break };
            *tenth += 1;
            in_bursts += u64::from(at % 1_000_000_000 >= 750_000_000);
        }
        let share = in_bursts as f64 / tenths.iter().sum::<u64>() as f64;
        (arrivals, tenths, share)
    }

    #[test]
    fn a_packet_may_come_after_many_bursts() {
        let machine = SimulatedMachine::open("xeon-gold-6140").unwrap();
        let mut port = Traffic::open("forward", &machine).unwrap().port;
        let spanned = |text: &str| toml::Spanned::new(0..0, text.parse().unwrap());
        port.rate = Some(spanned("1/m"));
        port.burst = Some(crate::describe::traffic::BurstSpec {
            rate: spanned("2/m"),
            lasts: toml::Spanned::new(0..0, "1ns".parse().unwrap()),
            every: "2ns".parse().unwrap(),
        });
        let mut arrivals = Arrivals::new(&port, 1e11, 1, None, 3);
        let at = arrivals.next().at as f64 / 1e12;
        assert!((at - 40.0).abs() < 1e-6, "{at}");
    }

    #[test]
    fn bursts_bring_what_they_say() {
        // 150 and 500 packets in each millisecond.
        let (arrivals, tenths, share) = in_tenths(Kind::Even);
        assert!(tenths.iter().all(|count| count.abs_diff(65_000) <= 1), "{tenths:?}");
        assert!((share - 500.0 / 650.0).abs() < 1e-3, "{share}");
        assert!((arrivals.distance() * 650e3 - 1.0).abs() < 1e-6);
        let (_, tenths, share) = in_tenths(Kind::Poisson);
        assert!(tenths.iter().all(|count| count.abs_diff(65_000) < 1_300), "{tenths:?}");
        assert!((share - 500.0 / 650.0).abs() < 0.01, "{share}");
    }
}
