//! Stations that answer requests: what a server is to the search.

use analyse::search::{ClientHealth, RateTrial};
use analyse::slo::Objective;
use hdrhistogram::Histogram;
use model::random::Draws;
use model::{LatencyClock, Op, RunLatency};

const NANOS: f64 = 1e9;

fn trial(
    rate: f64,
    achieved: f64,
    histogram: Histogram<u64>,
    objective: &Objective,
    client: ClientHealth,
) -> RateTrial {
    let latency = RunLatency {
        op: Op::Read.into(),
        clock: LatencyClock::Response,
        histogram: histogram.into(),
    };
    let judgement = objective.judge(&[latency], LatencyClock::Response);
    RateTrial {
        rate_ops_s: rate,
        achieved_ops_s: achieved,
        judgement,
        client,
        failed: None,
        hit_ratio: None,
        disturbed: None,
    }
}

/// Every answer takes as long.
pub fn constant(rate: f64, seconds: f64, count: u64, objective: &Objective) -> RateTrial {
    let mut histogram = Histogram::new(3).expect("digits that exist");
    histogram.record_n((seconds * NANOS) as u64, count).expect("it grows");
    trial(rate, rate, histogram, objective, ClientHealth { busy: 0.1, late: None })
}

/// The distribution of the formula itself, as so many samples that no interval is wide.
pub struct Exact {
    capacity: f64,
    /// The `q`-quantile of the response time in seconds at a rate below capacity.
    quantile: fn(capacity: f64, rate: f64, q: f64) -> f64,
}

impl Exact {
    pub fn mm1(capacity: f64) -> Exact {
        Exact { capacity, quantile: |capacity, rate, q| -(-q).ln_1p() / (capacity - rate) }
    }

    /// Only the mean is that of the formula: all samples have it.
    pub fn md1(capacity: f64) -> Exact {
        let mean = |capacity: f64, rate: f64, _| {
            let used = rate / capacity;
            (1.0 + used / (2.0 * (1.0 - used))) / capacity
        };
        Exact { capacity, quantile: mean }
    }

    pub fn trial(&self, rate: f64, objective: &Objective, client: ClientHealth) -> RateTrial {
        const SLICES: u64 = 5_000;
        const EACH: u64 = 1 << 24;
        // Beyond capacity the queue grows all along the trial.
        if rate >= self.capacity {
            let mut histogram = Histogram::new(3).expect("digits that exist");
            histogram.record_n((NANOS * 0.5) as u64, SLICES * EACH).expect("it grows");
            return trial(rate, self.capacity, histogram, objective, client);
        }
        // Five digits: the knee is to be found more exactly than a histogram of three has it.
        let mut histogram = Histogram::new(5).expect("digits that exist");
        for slice in 0..SLICES {
            let q = (slice as f64 + 0.5) / SLICES as f64;
            let seconds = (self.quantile)(self.capacity, rate, q);
            histogram.record_n((seconds * NANOS).round() as u64, EACH).expect("it grows");
        }
        trial(rate, rate, histogram, objective, client)
    }
}

#[derive(Clone, Copy)]
pub enum Service {
    Exponential,
    Constant,
}

#[derive(Clone, Copy)]
pub struct Station {
    pub capacity: f64,
    pub service: Service,
}

/// One server and its queue, request by request.
pub struct Served {
    station: Station,
    dice: Draws,
}

impl Served {
    pub fn new(station: Station, seed: u64) -> Served {
        Served { station, dice: Draws::from(seed) }
    }

    /// `count` Poisson arrivals; the first tenth fills the queue and is not counted.
    pub fn trial(
        &mut self,
        rate: f64,
        count: u64,
        objective: &Objective,
        client: ClientHealth,
    ) -> RateTrial {
        let mut histogram = Histogram::new(3).expect("digits that exist");
        let (mut due, mut free) = (0.0_f64, 0.0_f64);
        let (mut begun, warm) = (0.0, count / 10);
        for nth in 0..count {
            due -= self.dice.unit().ln() / rate;
            let service = match self.station.service {
                Service::Exponential => -self.dice.unit().ln() / self.station.capacity,
                Service::Constant => 1.0 / self.station.capacity,
            };
            free = free.max(due) + service;
            if nth == warm {
                begun = free;
            }
            if nth >= warm {
                histogram.record(((free - due) * NANOS) as u64).expect("it grows");
            }
        }
        let achieved = (rate).min((count - warm) as f64 / (free - begun));
        // A count of random arrivals is not exactly its rate; only falling behind counts.
        let achieved = if achieved > 0.98 * rate { rate } else { achieved };
        trial(rate, achieved, histogram, objective, client)
    }
}
