//! Results of a simulation, with units in their names.

use serde::Serialize;

use crate::cache::LINE;
use crate::describe::machine::{EnergySpec, SimulatedMachine};
use crate::describe::traffic::Traffic;
use crate::engine::{Counted, Levels, Simulation};
use crate::error::SimError;
use crate::policy::Policy;

/// One simulation. Every number is simulated; energy is modelled.
#[derive(Debug, Clone, Serialize)]
pub struct SimOutcome {
    /// Always `simulated`, so that it is not mistaken for a measurement.
    pub kind: &'static str,
    pub machine: String,
    pub traffic: String,
    pub policy: String,
    pub seed: u64,
    pub packet_bytes: u64,
    pub receive_descriptors: u64,
    pub workers: u32,
    pub warm_up_s: f64,
    pub window_s: f64,
    pub offered_packets_s: f64,
    pub throughput_packets_s: f64,
    /// Bits that were sent, frames without preamble and gap.
    pub sent_bits_s: f64,
    pub received_bits_s: f64,
    pub drops: Drops,
    /// Share of the card's written lines that hit the last-level cache; none without writes.
    pub pcie_write_hit_percent: Option<f64>,
    pub pcie_read_hit_percent: Option<f64>,
    pub pcie_write_lines_s: f64,
    pub pcie_read_lines_s: f64,
    pub memory: MemoryTraffic,
    /// From the arrival at the card to the last bit on the wire, or to the last touch where
    /// nothing is sent.
    pub latency_us: Option<Latency>,
    pub worker: Group,
    /// Share of their time that workers spent with packets.
    pub worker_busy: f64,
    /// Mean time that a worker spent with a packet.
    pub service_us: Option<f64>,
    pub neighbours: Vec<CoRunnerOutcome>,
    /// None without costs in the machine's description, or without a packet that was finished.
    pub energy: Option<ModelledEnergy>,
    /// Settings in the order in which they held.
    pub settings: Vec<SettingOutcome>,
    /// Memory that the simulated caches took.
    pub footprint_bytes: usize,
    #[serde(skip)]
    pub lost_buffers: i64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Drops {
    /// Share of the offered packets.
    pub share: f64,
    pub no_descriptor: u64,
    pub card_full: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct MemoryTraffic {
    pub read_bytes_s: f64,
    pub write_bytes_s: f64,
    pub core_reads_bytes_s: f64,
    pub device_reads_bytes_s: f64,
    pub write_backs_bytes_s: f64,
    pub device_writes_bytes_s: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// Accesses of a group of cores.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    pub accesses_s: f64,
    /// Of the accesses that reached the last-level cache.
    pub llc_miss_percent: Option<f64>,
    pub llc_misses_s: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct CoRunnerOutcome {
    pub name: String,
    #[serde(flatten)]
    pub group: Group,
}

/// Energy of the accesses of the last-level cache and of memory, from stated costs.
#[derive(Debug, Clone, Serialize)]
pub struct ModelledEnergy {
    /// Always `modelled`: the counts are simulated, the costs are published for another chip.
    pub kind: &'static str,
    pub llc_nj_per_line: f64,
    pub dram_nj_per_line: f64,
    /// Lines of all cores and the card, for each finished packet.
    pub llc_lines_per_packet: f64,
    pub dram_lines_per_packet: f64,
    pub nj_per_packet: f64,
    /// Energy of a packet times mean latency.
    pub energy_delay_nj_us: f64,
}

impl ModelledEnergy {
    fn of(costs: &EnergySpec, counted: &Counted) -> Option<ModelledEnergy> {
        let tally = &counted.tally;
        if tally.finished == 0 || tally.latency.is_empty() {
            return None;
        }
        let neighbours = counted.co_runners.iter().map(|levels| levels.beyond_private());
        let cores = tally.workers.beyond_private() + neighbours.sum::<u64>();
        // What the card writes past the cache, or reads from memory, is no access of the cache.
        let card = tally.write.total() - tally.memory.device_writes + tally.read.hits;
        let per_packet = |lines: u64| lines as f64 / tally.finished as f64;
        let llc = per_packet(cores + card);
        let dram = per_packet(tally.memory.reads() + tally.memory.writes());
        let (of_llc, of_dram) = (*costs.llc_nanojoules.get_ref(), *costs.dram_nanojoules.get_ref());
        let nj = llc * of_llc + dram * of_dram;
        Some(ModelledEnergy {
            kind: "modelled",
            llc_nj_per_line: of_llc,
            dram_nj_per_line: of_dram,
            llc_lines_per_packet: llc,
            dram_lines_per_packet: dram,
            nj_per_packet: nj,
            energy_delay_nj_us: nj * tally.latency.mean() / 1e3,
        })
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct SettingOutcome {
    pub at_s: f64,
    /// Masks of ways; a card without ways writes to memory.
    pub card_ways: String,
    pub worker_ways: String,
    pub neighbour_ways: String,
}

/// Runs one simulation from its beginning to its end.
pub fn simulate(
    machine: &SimulatedMachine,
    traffic: &Traffic,
    policy: Policy,
) -> Result<SimOutcome, SimError> {
    let counted = Simulation::new(machine, traffic, policy)?.run();
    Ok(SimOutcome::of(machine, traffic, policy, &counted))
}

impl SimOutcome {
    fn of(
        machine: &SimulatedMachine,
        traffic: &Traffic,
        policy: Policy,
        counted: &Counted,
    ) -> SimOutcome {
        let tally = &counted.tally;
        let window = counted.window;
        let rate = |count: u64| count as f64 / window;
        let bytes = |lines: u64| (lines * LINE) as f64 / window;
        let percent = |share: Option<f64>| share.map(|share| share * 100.0);
        let group = |levels: Levels| Group {
            accesses_s: rate(levels.total()),
            llc_miss_percent: percent(levels.miss_rate()),
            llc_misses_s: rate(levels.memory),
        };
        let dropped = tally.no_descriptor + tally.card_full;
        let workers = *traffic.workers.cores.get_ref();
        let busy = tally.busy as f64 / crate::engine::time::SECOND;
        let us = |ns: f64| ns / 1e3;
        let at = |percentile: f64| us(tally.latency.value_at_percentile(percentile) as f64);
        let names = traffic.neighbours.iter().map(|neighbour| neighbour.name.clone());
        SimOutcome {
            kind: "simulated",
            machine: machine.name.clone(),
            traffic: traffic.name.clone(),
            policy: policy.name(),
            seed: traffic.seed,
            packet_bytes: traffic.port.packet.get_ref().0,
            receive_descriptors: traffic.queues.receive.get_ref().0,
            workers,
            warm_up_s: counted.warm_up,
            window_s: window,
            offered_packets_s: rate(tally.offered),
            throughput_packets_s: rate(tally.finished),
            sent_bits_s: rate(tally.sent_bytes * 8),
            received_bits_s: rate(tally.received_bytes * 8),
            drops: Drops {
                share: dropped as f64 / tally.offered.max(1) as f64,
                no_descriptor: tally.no_descriptor,
                card_full: tally.card_full,
            },
            pcie_write_hit_percent: percent(tally.write.rate()),
            pcie_read_hit_percent: percent(tally.read.rate()),
            pcie_write_lines_s: rate(tally.write.total()),
            pcie_read_lines_s: rate(tally.read.total()),
            memory: MemoryTraffic {
                read_bytes_s: bytes(tally.memory.reads()),
                write_bytes_s: bytes(tally.memory.writes()),
                core_reads_bytes_s: bytes(tally.memory.core_reads),
                device_reads_bytes_s: bytes(tally.memory.device_reads),
                write_backs_bytes_s: bytes(tally.memory.write_backs),
                device_writes_bytes_s: bytes(tally.memory.device_writes),
            },
            latency_us: (!tally.latency.is_empty()).then(|| Latency {
                mean: us(tally.latency.mean()),
                p50: at(50.0),
                p90: at(90.0),
                p99: at(99.0),
                p999: at(99.9),
                max: us(tally.latency.max() as f64),
            }),
            worker: group(tally.workers),
            worker_busy: busy / window / f64::from(workers),
            service_us: (tally.finished > 0).then(|| busy * 1e6 / tally.finished as f64),
            neighbours: names
                .zip(&counted.co_runners)
                .map(|(name, levels)| CoRunnerOutcome { name, group: group(*levels) })
                .collect(),
            energy: machine.energy.as_ref().and_then(|costs| ModelledEnergy::of(costs, counted)),
            settings: counted
                .settings
                .iter()
                .map(|change| SettingOutcome {
                    at_s: change.at_s,
                    card_ways: format!("{:#x}", change.setting.card),
                    worker_ways: format!("{:#x}", change.setting.workers),
                    neighbour_ways: format!("{:#x}", change.setting.co_runners),
                })
                .collect(),
            footprint_bytes: counted.footprint,
            lost_buffers: counted.lost_buffers,
        }
    }
}
