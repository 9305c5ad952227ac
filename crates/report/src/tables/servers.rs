//! The servers of runs that have several: a cluster's nodes, or those that share the keys.

use std::collections::BTreeSet;

use model::signal::{
    NODE_CPU, NODE_FAILED, NODE_HIT_RATIO, NODE_LATENCY, NODE_P99, NODE_RATE, Signal,
};
use model::{Execution, Run};

use super::runs::name_of;
use crate::format;
use crate::run_names;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// The most servers of a run that are listed; the readings have all.
const LISTED: usize = 16;

/// One row a server, the most loaded first, without the runs in `but`; None if no run has several.
pub fn servers(runs: &[(&Execution, &Run)], but: &BTreeSet<&str>) -> Option<Table> {
    let mut table = Table::new("Servers, latencies in µs")
        .column("run", Align::Left, 30)
        .column("server", Align::Left, ALWAYS)
        .column("requests", Align::Decimal, ALWAYS)
        .column("kops/s", Align::Decimal, 80)
        .column("mean", Align::Decimal, 50)
        .column("p99", Align::Decimal, ALWAYS)
        .column("hit ratio", Align::Decimal, 60)
        .column("failed", Align::Decimal, ALWAYS)
        .column("CPUs", Align::Decimal, 70);
    let mut left_out = 0;
    for ((_, run), name) in runs.iter().zip(run_names::names(runs)) {
        if but.contains(run.id.as_str()) {
            continue;
        }
        let servers = loads(run);
        let all: f64 = servers.iter().map(|(_, rate)| rate).sum();
        left_out += servers.len().saturating_sub(LISTED);
        for (index, (server, rate)) in servers.into_iter().take(LISTED).enumerate() {
            let first = if index == 0 { name_of(run, &name) } else { Cell::from("") };
            let of = |signal: Signal, text: fn(f64) -> String| {
                run.value(&signal.name_of(server)).map(text).unwrap_or_default()
            };
            let micros = |signal| of(signal, |seconds| format::micros(seconds * 1e9));
            let cells = vec![
                first,
                server.into(),
                format!("{:.1} %", rate / all.max(1e-9) * 100.0).into(),
                format::kops(rate).into(),
                micros(NODE_LATENCY).into(),
                Cell::new(micros(NODE_P99), Tone::Strong),
                of(NODE_HIT_RATIO, |ratio| format::readable(ratio, 3)).into(),
                of(NODE_FAILED, |count| match count as u64 {
                    0 => String::new(),
                    some => format::count(some),
                })
                .into(),
                cpus(run, server).into(),
            ];
            table.row_of(cells, run.valid());
        }
    }
    if table.rows.is_empty() {
        return None;
    }
    let has_cpus = table.rows.iter().any(|row| !row.cells[8].text.is_empty());
    let mut table = table.without_empty_columns();
    if has_cpus {
        table.note("CPUs: CPU seconds of the server's process in a second");
    }
    if left_out > 0 {
        table.note(format!("{left_out} more servers with less load are in the readings"));
    }
    Some(table)
}

/// CPU seconds of a server's process in a second of the window.
fn cpus(run: &Run, server: &str) -> String {
    let reading = run.reading(&NODE_CPU.name_of(server)).filter(|own| own.window_s > 0.0);
    let cpus = reading.and_then(|own| Some(own.value()? / own.window_s));
    cpus.map_or_else(String::new, |cpus| format::readable(cpus, 3))
}

/// The servers of a run with their rates, the most loaded first; empty where there are no several.
fn loads(run: &Run) -> Vec<(&str, f64)> {
    let (before, after) = NODE_RATE.name.split_once("NODE").unwrap_or_default();
    let mut all: Vec<(&str, f64)> = run
        .readings
        .iter()
        .filter_map(|reading| {
            let server = reading.signal.strip_prefix(before)?.strip_suffix(after)?;
            Some((server, reading.value()?))
        })
        .collect();
    all.sort_by(|one, other| other.1.total_cmp(&one.1));
    all
}
