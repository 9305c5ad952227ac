//! Figures 4.1 to 4.9 of the thesis, as simulations of its machine: H. Basavaraj, "A case for
//! effective utilization of Direct Cache Access for big data workloads", UC San Diego, 2017.
//!
//! They show misses of the last-level cache and latencies of the receiving machine. The thesis has
//! no tables of its figures, so there are no numbers to compare with.

use std::time::Duration;

use model::{Bytes, Rate, Span};
use toml::Spanned;

use crate::describe::machine::SimulatedMachine;
use crate::describe::traffic::Traffic;
use crate::error::SimError;
use crate::policy::Policy;
use crate::sweep::SweepJob;

/// The metrics of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureMetric {
    MissRate,
    Latency,
    Both,
}

/// One figure: a sweep of one key, with a line a policy (and pair of server and client).
#[derive(Debug, Clone)]
pub struct ThesisFigure {
    pub id: &'static str,
    pub title: &'static str,
    pub key: &'static str,
    pub values: Vec<String>,
    pub metric: FigureMetric,
    pub lines: Vec<FigureLine>,
    machine: SimulatedMachine,
}

#[derive(Debug, Clone)]
pub struct FigureLine {
    pub label: String,
    traffic: Traffic,
    policy: Policy,
}

impl ThesisFigure {
    /// Its simulations: line by line, value by value. The values were checked.
    pub fn jobs(&self) -> Vec<SweepJob> {
        let mut jobs = Vec::new();
        for line in &self.lines {
            for value in &self.values {
                let mut traffic = line.traffic.clone();
                if traffic.set(self.key, value).is_ok() {
                    if let Some(rate) = &traffic.port.rate {
                        let span =
                            |packets: f64| Duration::try_from_secs_f64(packets / rate.get_ref().0);
                        traffic.run.warm_up = span(WARM_UP).ok().map(Span);
                        traffic.run.measure = span(MEASURED).ok().map(Span);
                    }
                    jobs.push(SweepJob {
                        machine: self.machine.clone(),
                        traffic,
                        policy: line.policy,
                    });
                }
            }
        }
        jobs
    }
}

/// Packets before anything counts (a few rounds of the largest ring) and that count.
const WARM_UP: f64 = 25e3;
const MEASURED: f64 = 30e3;
/// Cycles that the kernel's stack takes for a packet, and memory that it copies packets to.
const KERNEL_CYCLES: f64 = 4000.0;
const SOCKET_BUFFER: u64 = 6 << 20;
/// Bytes between two reads of one packet.
const STRIDES: [&str; 5] = ["64", "128", "256", "512", "1024"];
const PAYLOADS: [&str; 6] = ["64", "128", "256", "512", "1024", "1500"];
const RATES: [&str; 6] = ["200k", "400k", "600k", "800k", "1M", "1.2M"];

/// The same for four pairs of server and client together.
const RATES_OF_FOUR: [&str; 6] = ["800k", "1600k", "2400k", "3200k", "4M", "4800k"];
const BOTH: &[Policy] = &[Policy::On, Policy::Off];

/// What a figure shows, whatever the machine.
struct FigureDesign {
    id: &'static str,
    title: &'static str,
    key: &'static str,
    values: &'static [&'static str],
    metric: FigureMetric,
    traffic: ThesisTraffic,
    policies: &'static [Policy],
}

/// The traffic of a figure.
#[derive(Clone, Copy)]
enum ThesisTraffic {
    PingPong { kernel: bool },
    Flow { kernel: bool },
    DataCaching { pairs: u32 },
}

const FIGURES: [FigureDesign; 9] = [
    FigureDesign {
        id: "4.1",
        title: "Miss rate by payload, kernel's stack",
        key: "packet",
        values: &PAYLOADS,
        metric: FigureMetric::MissRate,
        traffic: ThesisTraffic::PingPong { kernel: true },
        policies: BOTH,
    },
    FigureDesign {
        id: "4.2",
        title: "Miss rate by payload, DPDK",
        key: "packet",
        values: &PAYLOADS,
        metric: FigureMetric::MissRate,
        traffic: ThesisTraffic::PingPong { kernel: false },
        policies: BOTH,
    },
    FigureDesign {
        id: "4.3",
        title: "Miss rate by stride, kernel's stack",
        key: "stride",
        values: &STRIDES,
        metric: FigureMetric::MissRate,
        traffic: ThesisTraffic::Flow { kernel: true },
        policies: BOTH,
    },
    FigureDesign {
        id: "4.4",
        title: "Miss rate by stride, DPDK",
        key: "stride",
        values: &STRIDES,
        metric: FigureMetric::MissRate,
        traffic: ThesisTraffic::Flow { kernel: false },
        policies: BOTH,
    },
    FigureDesign {
        id: "4.5",
        title: "Data caching: latency and miss rate by rate, DDIO on",
        key: "rate",
        values: &RATES,
        metric: FigureMetric::Both,
        traffic: ThesisTraffic::DataCaching { pairs: 1 },
        policies: &[Policy::On],
    },
    FigureDesign {
        id: "4.6",
        title: "Data caching: latency and miss rate by rate, DDIO off",
        key: "rate",
        values: &RATES,
        metric: FigureMetric::Both,
        traffic: ThesisTraffic::DataCaching { pairs: 1 },
        policies: &[Policy::Off],
    },
    FigureDesign {
        id: "4.7",
        title: "Data caching: miss rate by rate",
        key: "rate",
        values: &RATES,
        metric: FigureMetric::MissRate,
        traffic: ThesisTraffic::DataCaching { pairs: 1 },
        policies: BOTH,
    },
    FigureDesign {
        id: "4.8",
        title: "Data caching: latency by rate",
        key: "rate",
        values: &RATES,
        metric: FigureMetric::Latency,
        traffic: ThesisTraffic::DataCaching { pairs: 1 },
        policies: BOTH,
    },
    FigureDesign {
        id: "4.9",
        title: "Data caching: latency by rate, four pairs of server and client",
        key: "rate",
        values: &RATES_OF_FOUR,
        metric: FigureMetric::Latency,
        traffic: ThesisTraffic::DataCaching { pairs: 4 },
        policies: BOTH,
    },
];

/// All figures for a machine; the thesis's own is `xeon-e5-2697-v2`.
pub fn figures(machine: &SimulatedMachine) -> Result<Vec<ThesisFigure>, SimError> {
    FIGURES.iter().map(|design| design.on(machine)).collect()
}

impl FigureDesign {
    fn on(&self, machine: &SimulatedMachine) -> Result<ThesisFigure, SimError> {
        let traffic = self.traffic.on(machine)?;
        let line = |policy: &Policy| FigureLine {
            label: if *policy == Policy::Off { "DDIO off" } else { "DDIO on" }.to_owned(),
            traffic: traffic.clone(),
            policy: *policy,
        };
        Ok(ThesisFigure {
            id: self.id,
            title: self.title,
            key: self.key,
            values: self.values.iter().map(|value| (*value).to_owned()).collect(),
            metric: self.metric,
            lines: self.policies.iter().map(line).collect(),
            machine: machine.clone(),
        })
    }
}

impl ThesisTraffic {
    fn on(self, machine: &SimulatedMachine) -> Result<Traffic, SimError> {
        let (name, is_of_kernel) = match self {
            ThesisTraffic::PingPong { kernel } => ("ping-pong", kernel),
            ThesisTraffic::Flow { kernel } => ("flow", kernel),
            ThesisTraffic::DataCaching { .. } => ("data-caching", false),
        };
        let mut traffic = Traffic::open(name, machine)?;
        if let ThesisTraffic::DataCaching { pairs } = self {
            traffic.workers.cores = Spanned::new(0..0, pairs);
        }
        if is_of_kernel {
            traffic.workers.cycles = Rate(KERNEL_CYCLES);
            traffic.port.rate = Some(Spanned::new(0..0, Rate(400e3)));
            if let Some(read) = &mut traffic.workers.read {
                read.copy = Some(Bytes(SOCKET_BUFFER));
            }
        }
        Ok(traffic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_pairs_have_four_times_the_rate() {
        for (one, four) in RATES.iter().zip(RATES_OF_FOUR) {
            assert_eq!(Rate(one.parse::<Rate>().unwrap().0 * 4.0).to_string(), four);
        }
    }

    #[test]
    fn all_nine_figures_have_all_their_simulations() {
        let figures = figures(&SimulatedMachine::open("xeon-e5-2697-v2").unwrap()).unwrap();
        assert_eq!(figures.len(), 9);
        for figure in &figures {
            let jobs = figure.jobs();
            assert_eq!(jobs.len(), figure.lines.len() * figure.values.len(), "{}", figure.id);
            for job in jobs {
                job.traffic.recheck(&job.machine).unwrap();
            }
        }
    }
}
