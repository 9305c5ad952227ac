//! The main tables: throughput and latency.

use std::collections::BTreeSet;

use model::{Distribution, Execution, LatencyClock, LatencyScope, Op, Origin, Reading, Run, total};

use super::{INVALID_MARK, durability, named};
use crate::format;
use crate::run_names;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// Throughput and cost: one row a run.
pub fn throughput(runs: &[(&Execution, &Run)]) -> Table {
    let mut table = Table::new("Throughput and cost")
        .column("run", Align::Left, ALWAYS)
        .column("threads", Align::Right, 30)
        .column("loop", Align::Left, 40)
        .column("window", Align::Right, 20)
        .column("operations", Align::Right, 10)
        .column("kops/s", Align::Decimal, ALWAYS)
        .column("hit ratio", Align::Decimal, ALWAYS)
        .column("CPU-s/Mop", Align::Decimal, 60)
        .column("write amp.", Align::Decimal, 50)
        .column("read amp.", Align::Decimal, 15)
        .column("errors", Align::Right, 70)
        .column("valid", Align::Left, ALWAYS);
    let mut modelled = false;
    for ((_, run), name) in runs.iter().zip(run_names::names(runs)) {
        let mut number = |reading: Option<&Reading>| match reading {
            Some(reading) => {
                modelled |= reading.value().is_some() && reading.origin != Origin::Measured;
                Cell::from(value_of(reading))
            }
            None => Cell::from(""),
        };
        let cells = vec![
            name_of(run, &name),
            run.threads.to_string().into(),
            run_names::pacing_short(&run.pacing).into(),
            format::seconds(run.seconds).into(),
            format::count(run.operations).into(),
            Cell::new(format::kops(run.throughput()), Tone::Strong),
            hits(run),
            number(run.reading("cpu_s_per_mop")),
            number(named(run, "write_amplification")),
            number(named(run, "read_amplification")),
            errors(run),
            validity(run),
        ];
        table.row_of(cells, run.valid());
    }
    let errors = total(runs.iter().map(|(_, run)| run.errors()));
    if errors == 0 {
        // A sentence replaces a column of zeros.
        table.clear_column("errors");
        let verified = total(runs.iter().map(|(_, run)| run.verified));
        table.note(format!("0 errors in {} answers that were checked", format::count(verified)));
    }
    let mut table = table.without_empty_columns();
    table.notes.extend(durability::note(runs));
    if modelled {
        table.note("~ marks a number that was not measured; the readings say where it is from");
    }
    table
}

/// Latency: one row for each run, kind of operation and clock; without the runs in `but`, by id.
pub fn latency(runs: &[(&Execution, &Run)], but: &BTreeSet<&str>) -> Table {
    let mut table = Table::new("Latency in µs")
        .column("run", Align::Left, ALWAYS)
        .column("op", Align::Left, ALWAYS)
        .column("from", Align::Left, 80)
        .column("count", Align::Right, 10)
        .column("mean", Align::Decimal, 60)
        .column("p50", Align::Decimal, ALWAYS)
        .column("p90", Align::Decimal, 15)
        .column("p99", Align::Decimal, ALWAYS)
        .column("p99.9", Align::Decimal, 90)
        .column("p99.99", Align::Decimal, 20)
        .column("max", Align::Decimal, 70);
    let (mut open, mut closed) = (false, false);
    for ((_, run), name) in runs.iter().zip(run_names::names(runs)) {
        if but.contains(run.id.as_str()) {
            continue;
        }
        let clock = run.clock();
        open |= clock == LatencyClock::Response;
        closed |= clock == LatencyClock::Service;
        let mut first = true;
        for op in Op::ALL.into_iter().map(LatencyScope::One).chain([LatencyScope::Any]) {
            // The run's own clock first, then the other one.
            let other = if clock == LatencyClock::Response {
                LatencyClock::Service
            } else {
                LatencyClock::Response
            };
            for from in [clock, other] {
                let Some(histogram) = run.latency(op, from).filter(|h| !h.is_empty()) else {
                    continue;
                };
                let mut cells = vec![
                    if first { name_of(run, &name) } else { Cell::from("") },
                    op.op().map_or(op.name(), op_name).into(),
                    from_word(from).into(),
                ];
                cells.extend(percentiles(histogram, from == clock));
                table.row_of(cells, run.valid());
                first = false;
            }
        }
    }
    // The column is needed for two clocks only.
    if !open {
        table.clear_column("from");
    }
    let mut table = table.without_empty_columns();
    if open {
        table.note(
            "open loop: `due` counts from the instant at which the request was due (response \
             time), `sent` from the instant at which it was sent (service time)",
        );
    }
    if closed {
        table.note(
            "closed loop: latency is service time, counted from sending; while an answer is \
             late its thread issues nothing, so a stall is counted once",
        );
    }
    table
}

fn percentiles(h: &Distribution, main: bool) -> Vec<Cell> {
    let at = |percentile: f64| Cell::from(format::micros(h.value_at_percentile(percentile) as f64));
    let tone = if main { Tone::Strong } else { Tone::Plain };
    let mut p99 = at(99.0);
    p99.tone = tone;
    vec![
        format::count(h.len()).into(),
        format::micros(h.mean()).into(),
        at(50.0),
        at(90.0),
        p99,
        at(99.9),
        at(99.99),
        format::micros(h.max() as f64).into(),
    ]
}

/// The clock in one word for a column.
fn from_word(clock: LatencyClock) -> &'static str {
    match clock {
        LatencyClock::Response => "due",
        LatencyClock::Service => "sent",
        LatencyClock::Arrival => "sent, to arrival",
        LatencyClock::Server => "in the server",
    }
}

/// The operation as a column shows it.
pub(crate) fn op_name(op: Op) -> &'static str {
    match op {
        Op::ReadModifyWrite => "rmw",
        other => other.name(),
    }
}

pub(crate) fn name_of(run: &Run, name: &str) -> Cell {
    if run.valid() {
        Cell::new(name, Tone::Plain)
    } else {
        Cell::new(format!("{INVALID_MARK}{name}"), Tone::Bad)
    }
}

/// The hit ratio, where reads may miss.
pub fn hits(run: &Run) -> Cell {
    let ratio = run.hit_ratio().filter(|_| run.may_miss());
    ratio.map_or(Cell::from(""), |ratio| format::readable(ratio, 3).into())
}

/// The number of wrong answers.
pub fn errors(run: &Run) -> Cell {
    match run.errors() {
        0 => Cell::new("0", Tone::Muted),
        n => Cell::new(format::count(n), Tone::Bad),
    }
}

fn validity(run: &Run) -> Cell {
    match (run.valid(), run.warnings.len()) {
        (false, _) => Cell::new("INVALID", Tone::Bad),
        (true, 0) => Cell::new("yes", Tone::Good),
        (true, 1) => Cell::new("1 warning", Tone::Warning),
        (true, n) => Cell::new(format!("{n} warnings"), Tone::Warning),
    }
}

/// A reading's number for a column, without its unit; marked where it was not measured.
fn value_of(reading: &Reading) -> String {
    match (reading.value(), reading.origin) {
        (None, _) => format::NONE.to_owned(),
        (Some(value), Origin::Measured) => format::readable(value, 3),
        (Some(value), _) => format!("~{}", format::readable(value, 3)),
    }
}
