//! Outcomes of simulations as they might have been stored.

use cachesim::outcome::{
    CoRunnerOutcome, Drops, Group, Latency, MemoryTraffic, ModelledEnergy, SettingOutcome,
    SimOutcome,
};
use cachesim::sweep::SweepPoint;
use cachesim::validate::{Metric, Validation, ValidationErrors, ValidationPoint, VariedKey};

pub fn outcome(hits: f64, neighbours: &[f64]) -> SimOutcome {
    let group = |accesses_s, miss| Group {
        accesses_s,
        llc_miss_percent: Some(miss),
        llc_misses_s: accesses_s * miss / 100.0,
    };
    let neighbour = |accesses_s: &f64| CoRunnerOutcome {
        name: "copy".to_owned(),
        group: group(*accesses_s, 40.0),
    };
    SimOutcome {
        kind: "simulated",
        machine: "m".to_owned(),
        traffic: "t".to_owned(),
        policy: "on".to_owned(),
        seed: 1,
        packet_bytes: 1500,
        receive_descriptors: 128,
        workers: 1,
        warm_up_s: 0.001,
        window_s: 0.002,
        offered_packets_s: 8e6,
        throughput_packets_s: 7.5e6,
        sent_bits_s: 9e10,
        received_bits_s: 9e10,
        drops: Drops { share: 0.0625, no_descriptor: 10, card_full: 0 },
        pcie_write_hit_percent: Some(hits),
        pcie_read_hit_percent: None,
        pcie_write_lines_s: 1e8,
        pcie_read_lines_s: 0.0,
        memory: MemoryTraffic {
            read_bytes_s: 3e9,
            write_bytes_s: 1.5e9,
            core_reads_bytes_s: 3e9,
            device_reads_bytes_s: 0.0,
            write_backs_bytes_s: 1.5e9,
            device_writes_bytes_s: 0.0,
        },
        latency_us: Some(Latency {
            mean: 4.0,
            p50: 3.0,
            p90: 6.0,
            p99: 9.5,
            p999: 12.0,
            max: 20.0,
        }),
        worker: group(1e9, 2.5),
        worker_busy: 0.9,
        service_us: Some(0.125),
        neighbours: neighbours.iter().map(neighbour).collect(),
        energy: Some(ModelledEnergy {
            kind: "modelled",
            llc_nj_per_line: 0.8,
            dram_nj_per_line: 15.6,
            llc_lines_per_packet: 50.0,
            dram_lines_per_packet: 10.0,
            nj_per_packet: 196.0,
            energy_delay_nj_us: 784.0,
        }),
        settings: Vec::<SettingOutcome>::new(),
        footprint_bytes: 0,
        lost_buffers: 0,
    }
}

pub fn point(ways: &str) -> SweepPoint {
    SweepPoint { at: vec![("ways".to_owned(), ways.to_owned())], policy: "on".to_owned() }
}

/// A series with one point beyond its limit.
pub fn validation() -> Validation {
    let point = |ways, published_percent: f64, simulated_percent: f64| ValidationPoint {
        series: "ways".to_owned(),
        by: VariedKey::Ways,
        metric: Metric::Writes,
        read: "figure 3".to_owned(),
        packet_bytes: 1500,
        workers: 1,
        receive_descriptors: 1024,
        ways,
        rate_packets_s: None,
        published_percent,
        simulated_percent,
        error_points: simulated_percent - published_percent,
    };
    Validation {
        kind: "simulated",
        machine: "m".to_owned(),
        source: "a paper".to_owned(),
        points: vec![point(2, 50.0, 51.0), point(4, 90.0, 70.0)],
        series: vec![ValidationErrors {
            series: "ways".to_owned(),
            metric: Metric::Writes,
            seen: true,
            points: 2,
            mean_error_points: 10.5,
            max_error_points: 20.0,
            valid: false,
        }],
        mean_error_points: 10.5,
        max_error_points: 20.0,
        mean_limit_points: 3.0,
        point_limit_points: 10.0,
        valid: false,
    }
}
