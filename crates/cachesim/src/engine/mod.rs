//! Discrete-event simulation: packets arrive, workers answer, co-runners compute, and each waits for
//! lines as the caches and memory dictate.
//!
//! One queue of events, each the turn of one actor. Within a turn the caches change at once; turns
//! are short (a burst of packets, 64 accesses), so that actors interleave about as finely as cores
//! of a real machine.

mod arrivals;
mod card;
mod co_runner;
mod dram;
mod policy_driver;
mod regions;
mod socket;
mod tally;
pub(crate) mod time;
mod worker;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::time::Duration;

use hdrhistogram::Histogram;
use model::Span;
use model::random::mix;

use crate::describe::machine::SimulatedMachine;
use crate::describe::traffic::{CoRunnerSpec as Described, Traffic};
use crate::error::SimError;
use crate::memory::Caches;
use crate::policy::{Policy, PolicyOptions};
use crate::pool::Pool;
use crate::recorded_arrivals::RecordedArrivals;
use arrivals::{Arrival, Arrivals};
use card::Card;
use co_runner::CoRunner;
pub use policy_driver::Change;
use policy_driver::PolicyDriver;
use regions::Regions;
use socket::Socket;
pub use tally::{Levels, Tally};
use time::{Picos, of_seconds, of_span, seconds};
use worker::{Worker, WorkerNext};

/// Default number of measured packets.
const MEASURED: f64 = 200_000.0;
/// Default warm-up in rounds of all rings.
const ROUNDS: f64 = 6.0;
/// Shortest warm-up, or this many packets if they take less: a queue that is a few thousandths
/// slower than its packets takes that long to fill.
pub(crate) const SETTLED: Duration = Duration::from_millis(150);
const SETTLED_PACKETS: f64 = 1_200_000.0;
/// From the card's doorbell to its first fetch.
const DOORBELL: Picos = 150_000;
/// The longest simulated time.
const MAX_TIME: f64 = 3600.0;

/// The next actor; this is the order at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NextActor {
    Measure,
    DrivePolicy,
    Arrive,
    Send,
    Work(usize),
    Compute(usize),
    End,
}

/// A machine under traffic.
#[derive(Debug)]
pub struct Simulation {
    socket: Socket,
    pool: Pool,
    card: Card,
    arrivals: Arrivals,
    next: Arrival,
    workers: Vec<Worker>,
    co_runners: Vec<CoRunner>,
    policy_driver: PolicyDriver,
    queue: BinaryHeap<Reverse<(Picos, NextActor)>>,
    warm_up: Picos,
    measure: Picos,
    buffers: usize,
}

/// Counts of one simulation in its window.
#[derive(Debug, Clone)]
pub struct Counted {
    /// Seconds of the window, and of the warm-up before it.
    pub window: f64,
    pub warm_up: f64,
    pub tally: Tally,
    /// One per described co-runner.
    pub co_runners: Vec<Levels>,
    /// Bytes of memory that the simulated caches took.
    pub footprint: usize,
    /// Every setting, and when it began.
    pub settings: Vec<Change>,
    /// Buffers that are neither in the pool nor in a ring: 0, or something was lost.
    pub lost_buffers: i64,
}

impl Simulation {
    pub fn new(
        machine: &SimulatedMachine,
        traffic: &Traffic,
        policy: Policy,
    ) -> Result<Simulation, SimError> {
        traffic.recheck(machine)?;
        let workers = *traffic.workers.cores.get_ref() as usize;
        let others: u32 = traffic.neighbours.iter().map(|n| *n.cores.get_ref()).sum();
        let mut regions = Regions::default();
        // Buffers come first, so that number times stride is their address.
        let count = traffic.pool.buffers.get_ref().0;
        regions.take(count * traffic.pool.stride.get_ref().0);
        let shared = traffic.workers.store.as_ref().map(|store| {
            (regions.take(store.index.get_ref().0), regions.take(store.values.get_ref().0))
        });
        let program = traffic.workers.program.as_ref();
        let program =
            program.map(|program| (regions.take(program.memory.get_ref().0), program.lookups.0));
        let worker = |core| Worker::new(core, machine, traffic, &mut regions, shared, program);
        let mut workers: Vec<Worker> = (0..workers).map(worker).collect();
        let mut co_runners = Vec::new();
        for (of, described) in traffic.neighbours.iter().enumerate() {
            for _ in 0..*described.cores.get_ref() {
                let core = workers.len() + co_runners.len();
                co_runners.push(CoRunner::new(core, of, described, &mut regions, traffic.seed));
            }
        }
        let stride = traffic.pool.stride.get_ref().0 - traffic.pool.offset.get_ref().0;
        let recorded = match (&traffic.port.recording, &traffic.port.recorded) {
            (Some(recording), _) => Some(recording.clone()),
            (None, Some(path)) => {
                Some(RecordedArrivals::read(Path::new(path.get_ref()), stride)?.into())
            }
            (None, None) => None,
        };
        let carried = machine.card.line_rate.get_ref().0 * machine.card.filled.get_ref();
        let mut arrivals = Arrivals::new(
            &traffic.port,
            carried,
            workers.len() as u32,
            recorded,
            mix(traffic.seed ^ 0x5eed),
        );
        let round = workers.len() as f64 * traffic.queues.receive.get_ref().0 as f64;
        let packets = |count: f64| of_seconds((count * arrivals.distance()).min(MAX_TIME));
        let rounds = packets(ROUNDS * round.max(8192.0));
        let settled = rounds.max(packets(SETTLED_PACKETS).min(of_span(Span(SETTLED))));
        let warm_up = traffic.run.warm_up.map_or(settled, of_span);
        let measure = traffic.run.measure.map_or(packets(MEASURED.max(4.0 * round)), of_span);
        let caches = Caches::new(machine.shape(workers.len() + others as usize), traffic.seed);
        let latency = Histogram::new(3)
            .map_err(|error| SimError::Value(format!("cannot make a histogram: {error}")))?;
        arrivals.ramp(rounds.min(warm_up) / 2);
        let next = arrivals.next();
        let usual = machine.choice();
        let own = |n: &Described| n.ways.as_ref().map_or(usual.co_runners, |ways| *ways.get_ref());
        let masks = traffic.neighbours.iter().map(own).reduce(|all, ways| all | ways);
        let choice = PolicyOptions {
            workers: traffic.workers.ways.as_ref().map_or(usual.workers, |ways| *ways.get_ref()),
            co_runners: masks.unwrap_or(usual.co_runners),
            ..usual
        };
        let (setting, controller) = policy.start(choice)?;
        let mut pool = Pool::new(count as u32, workers.len(), traffic.pool.cache.0 as usize);
        for worker in &mut workers {
            worker.fill(&mut pool);
        }
        let mut simulation = Simulation {
            socket: Socket::new(caches, machine, Tally::new(latency), setting),
            pool,
            card: Card::new(machine, traffic),
            arrivals,
            next,
            workers,
            co_runners,
            policy_driver: PolicyDriver::new(controller, setting),
            queue: BinaryHeap::new(),
            warm_up,
            measure,
            buffers: count as usize,
        };
        simulation.begin();
        Ok(simulation)
    }

    fn begin(&mut self) {
        self.at(self.warm_up, NextActor::Measure);
        self.at(self.warm_up + self.measure, NextActor::End);
        for i in 0..self.workers.len() {
            self.at(0, NextActor::Work(i));
        }
        for i in 0..self.co_runners.len() {
            self.at(0, NextActor::Compute(i));
        }
        self.at(self.next.at, NextActor::Arrive);
        if let Some(window) = self.policy_driver.window() {
            self.at(window, NextActor::DrivePolicy);
        }
    }

    fn at(&mut self, time: Picos, turn: NextActor) {
        self.queue.push(Reverse((time, turn)));
    }

    /// Runs to the end.
    pub fn run(mut self) -> Counted {
        while let Some(Reverse((now, turn))) = self.queue.pop() {
            match turn {
                NextActor::Measure => self.reset(),
                NextActor::DrivePolicy => {
                    let next = self.policy_driver.turn(now, &mut self.socket, &self.co_runners);
                    if let Some(next) = next {
                        self.at(next, NextActor::DrivePolicy);
                    }
                }
                NextActor::Arrive => self.arrive(),
                NextActor::Send => {
                    if let Some(next) = self.card.send(now, &mut self.workers, &mut self.socket) {
                        self.at(next, NextActor::Send);
                    }
                }
                NextActor::Work(i) => self.work(i, now),
                NextActor::Compute(i) => {
                    let next = self.co_runners[i].turn(now, &mut self.socket);
                    self.at(next, NextActor::Compute(i));
                }
                NextActor::End => break,
            }
        }
        self.counted()
    }

    fn arrive(&mut self) {
        let arrival = self.next;
        let own = arrival.queue as usize;
        let worker = &mut self.workers[own];
        if let Some(visible) = self.card.receive(arrival, worker, &mut self.socket)
            && worker.idle
        {
            worker.idle = false;
            self.at(visible, NextActor::Work(own));
        }
        self.next = self.arrivals.next();
        self.at(self.next.at, NextActor::Arrive);
    }

    fn work(&mut self, own: usize, now: Picos) {
        let worker = &mut self.workers[own];
        let (next, sends) = worker.turn(now, &mut self.socket, &mut self.pool);
        if let WorkerNext::At(next) = next {
            self.at(next.max(now + 1), NextActor::Work(own));
        }
        if sends && !self.card.sending {
            self.card.sending = true;
            self.at(now + DOORBELL, NextActor::Send);
        }
    }

    /// Resets the counters after the warm-up.
    fn reset(&mut self) {
        let mut latency = self.socket.tally.latency.clone();
        latency.reset();
        self.socket.tally = Tally::new(latency);
        self.socket.caches.memory = Default::default();
        for core in &mut self.co_runners {
            core.levels = Levels::default();
        }
        self.policy_driver.reset_counters(self.warm_up);
    }

    fn counted(self) -> Counted {
        let mut tally = self.socket.tally;
        tally.memory = self.socket.caches.memory;
        let count = self.co_runners.iter().map(|core| core.of + 1).max().unwrap_or(0);
        let mut co_runners = vec![Levels::default(); count];
        for core in &self.co_runners {
            co_runners[core.of].add(core.levels);
        }
        let buffers_in_use: usize = self.workers.iter().map(Worker::buffers_held).sum();
        Counted {
            window: seconds(self.measure),
            warm_up: seconds(self.warm_up),
            tally,
            co_runners,
            settings: self.policy_driver.changes,
            footprint: self.socket.caches.footprint(),
            lost_buffers: self.buffers as i64 - (self.pool.available() + buffers_in_use) as i64,
        }
    }
}
