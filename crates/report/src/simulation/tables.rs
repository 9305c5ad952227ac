//! Tables of simulation results.

use cachesim::SimOutcome;
use cachesim::outcome::ModelledEnergy;
use cachesim::sweep::SweepPoint;
use cachesim::trace::TraceOutcome;

use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table};

const SIMULATED: &str = "Every number is simulated.";

/// A row an outcome.
pub fn outcomes(points: &[SweepPoint], outcomes: &[SimOutcome]) -> Table {
    let mut table = Table::new("Direct cache access");
    let swept = points.first().map(|point| point.at.as_slice()).unwrap_or_default();
    for (key, _) in swept {
        table = table.column(key.clone(), Align::Right, ALWAYS);
    }
    let heads = [
        ("policy", Align::Left, 9),
        ("PCIe write hit %", Align::Decimal, ALWAYS),
        ("read hit %", Align::Decimal, 9),
        ("memory GB/s", Align::Decimal, 8),
        ("packets/s", Align::Right, 8),
        ("dropped %", Align::Decimal, 7),
        ("p50 µs", Align::Decimal, 6),
        ("p99 µs", Align::Decimal, 8),
        ("worker miss %", Align::Decimal, 5),
        ("service µs", Align::Decimal, 4),
        ("neighbours/s", Align::Right, 5),
        ("neighbours' miss %", Align::Decimal, 3),
        ("modelled nJ/packet", Align::Decimal, 2),
        ("modelled nJ·µs", Align::Decimal, 2),
    ];
    for (head, align, keep) in heads {
        table = table.column(head, align, keep);
    }
    for (point, outcome) in points.iter().zip(outcomes) {
        let mut cells: Vec<Cell> = point.at.iter().map(|(_, value)| value.clone().into()).collect();
        let memory = (outcome.memory.read_bytes_s + outcome.memory.write_bytes_s) / 1e9;
        let latency = |of: fn(&cachesim::outcome::Latency) -> f64| {
            outcome.latency_us.as_ref().map_or(String::new(), |all| number(of(all), 2))
        };
        let energy = |of: fn(&ModelledEnergy) -> f64| {
            outcome.energy.as_ref().map_or(String::new(), |all| number(of(all), 1))
        };
        let neighbours: f64 = outcome.neighbours.iter().map(|n| n.group.accesses_s).sum();
        let missed: f64 = outcome.neighbours.iter().filter_map(|n| n.group.llc_miss_percent).sum();
        let count = outcome.neighbours.len();
        cells.extend::<[Cell; 14]>([
            point.policy.clone().into(),
            percent(outcome.pcie_write_hit_percent).into(),
            percent(outcome.pcie_read_hit_percent).into(),
            number(memory, 2).into(),
            format::count_short(outcome.throughput_packets_s).into(),
            number(outcome.drops.share * 100.0, 2).into(),
            latency(|all| all.p50).into(),
            latency(|all| all.p99).into(),
            percent(outcome.worker.llc_miss_percent).into(),
            outcome.service_us.map_or(String::new(), |us| number(us, 3)).into(),
            if count > 0 { format::count_short(neighbours) } else { String::new() }.into(),
            if count > 0 { number(missed / count as f64, 2) } else { String::new() }.into(),
            energy(|energy| energy.nj_per_packet).into(),
            energy(|energy| energy.energy_delay_nj_us).into(),
        ]);
        table.row(cells);
    }
    table.note(SIMULATED);
    if let Some(energy) = outcomes.iter().find_map(|outcome| outcome.energy.as_ref()) {
        table.note(format!(
            "Energy is modelled: {} nJ for a line of the last-level cache, {} nJ for one of memory.",
            energy.llc_nj_per_line, energy.dram_nj_per_line
        ));
    }
    table.without_empty_columns()
}

/// A row a count.
pub fn trace(outcome: &TraceOutcome) -> Table {
    let mut table = Table::new("Memory trace").column("", Align::Left, ALWAYS).column(
        "lines",
        Align::Right,
        ALWAYS,
    );
    let rows = [
        ("all", outcome.lines),
        ("cores", outcome.core_lines),
        ("private hits", outcome.private_hits),
        ("last-level hits", outcome.llc_hits),
        ("other cores' hits", outcome.peer_hits),
        ("last-level misses", outcome.llc_misses),
        ("card's write hits", outcome.card_write_hits),
        ("card's write misses", outcome.card_write_misses),
        ("card's read hits", outcome.card_read_hits),
        ("card's read misses", outcome.card_read_misses),
        ("read from memory", outcome.memory_read_bytes / 64),
        ("written to memory", outcome.memory_write_bytes / 64),
    ];
    for (what, lines) in rows {
        table.row(vec![what.into(), format::count(lines).into()]);
    }
    table.note(SIMULATED);
    table
}

fn percent(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| number(value, 2))
}

pub fn number(value: f64, digits: usize) -> String {
    format!("{value:.digits$}")
}
