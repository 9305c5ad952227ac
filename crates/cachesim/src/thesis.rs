//! Figures 4.1 to 4.9 of the thesis, as simulations of its machine: H. Basavaraj, "A case for
//! effective utilization of Direct Cache Access for big data workloads", UC San Diego, 2017.
//!
//! They show misses of the last-level cache and latencies of the receiving machine. The thesis has
//! no tables of its figures, so there are no numbers to compare with.

use std::time::Duration;

use model::{Bytes, Rate, Span};

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

/// All figures for a machine; the thesis's own is `xeon-e5-2697-v2`.
pub fn figures(machine: &SimulatedMachine) -> Result<Vec<ThesisFigure>, SimError> {
    let kernel = |mut traffic: Traffic| {
        traffic.workers.cycles = Rate(KERNEL_CYCLES);
        traffic.port.rate = Some(toml::Spanned::new(0..0, Rate(400e3)));
        if let Some(read) = &mut traffic.workers.read {
            read.copy = Some(Bytes(SOCKET_BUFFER));
        }
        traffic
    };
    let open = |name: &str| Traffic::open(name, machine);
    let caching = |cores: u32| -> Result<Traffic, SimError> {
        let mut traffic = open("data-caching")?;
        traffic.workers.cores = toml::Spanned::new(0..0, cores);
        Ok(traffic)
    };
    let make = |id, title, key, values: &[&str], shown, traffic: &Traffic, on: bool, off: bool| {
        let line = |label: &str, policy| FigureLine {
            label: label.to_owned(),
            traffic: traffic.clone(),
            policy,
        };
        let mut lines = Vec::new();
        lines.extend(on.then(|| line("DDIO on", Policy::On)));
        lines.extend(off.then(|| line("DDIO off", Policy::Off)));
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        ThesisFigure { id, title, key, values, metric: shown, lines, machine: machine.clone() }
    };
    let (ping, flow) = (open("ping-pong")?, open("flow")?);
    let (one, four) = (caching(1)?, caching(4)?);
    use FigureMetric::{Both, Latency, MissRate};
    let many: Vec<String> = RATES
        .iter()
        .filter_map(|rate| rate.parse::<Rate>().ok())
        .map(|rate| Rate(rate.0 * 4.0).to_string())
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    Ok(vec![
        make(
            "4.1",
            "Miss rate by payload, kernel's stack",
            "packet",
            &PAYLOADS,
            MissRate,
            &kernel(ping.clone()),
            true,
            true,
        ),
        make("4.2", "Miss rate by payload, DPDK", "packet", &PAYLOADS, MissRate, &ping, true, true),
        make(
            "4.3",
            "Miss rate by stride, kernel's stack",
            "stride",
            &STRIDES,
            MissRate,
            &kernel(flow.clone()),
            true,
            true,
        ),
        make("4.4", "Miss rate by stride, DPDK", "stride", &STRIDES, MissRate, &flow, true, true),
        make(
            "4.5",
            "Data caching: latency and miss rate by rate, DDIO on",
            "rate",
            &RATES,
            Both,
            &one,
            true,
            false,
        ),
        make(
            "4.6",
            "Data caching: latency and miss rate by rate, DDIO off",
            "rate",
            &RATES,
            Both,
            &one,
            false,
            true,
        ),
        make("4.7", "Data caching: miss rate by rate", "rate", &RATES, MissRate, &one, true, true),
        make("4.8", "Data caching: latency by rate", "rate", &RATES, Latency, &one, true, true),
        make(
            "4.9",
            "Data caching: latency by rate, four pairs of server and client",
            "rate",
            &many,
            Latency,
            &four,
            true,
            true,
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

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
