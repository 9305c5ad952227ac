//! Latencies of the client's and the server's side of a request.

use std::collections::BTreeSet;

use analyse::side_checks::{SideCheck, checks};
use model::{Execution, LatencyClock, LatencyStatistics, Run};

use super::runs::name_of;
use crate::format;
use crate::run_names;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// One row a run and clock, of the runs whose answers have kernel timestamps or whose server was
/// measured, without those in `but`; None if there is no such run.
pub fn sides(runs: &[(&Execution, &Run)], but: &BTreeSet<&str>) -> Option<Table> {
    let mut table = Table::new("Both sides of a request, in µs")
        .column("run", Align::Left, ALWAYS)
        .column("side", Align::Left, ALWAYS)
        .column("from", Align::Left, 40)
        .column("to", Align::Left, 40)
        .column("count", Align::Right, 10)
        .column("mean", Align::Decimal, 70)
        .column("p50", Align::Decimal, ALWAYS)
        .column("p99", Align::Decimal, ALWAYS)
        .column("p99.9", Align::Decimal, 80)
        .column("max", Align::Decimal, 60);
    for ((_, run), name) in runs.iter().zip(run_names::names(runs)) {
        if but.contains(run.id.as_str()) || !has_sides(run) {
            continue;
        }
        let clocks = LatencyClock::INWARDS.into_iter();
        let shown = clocks.filter_map(|clock| Some((clock, run.latency_of_all(clock)?)));
        for (index, (clock, histogram)) in shown.enumerate() {
            let first = if index == 0 { name_of(run, &name) } else { Cell::from("") };
            let mut cells = vec![first];
            cells.extend(boundary(clock).map(Cell::from));
            cells.extend(figures(&histogram));
            table.row_of(cells, run.valid());
        }
    }
    if table.rows.is_empty() {
        return None;
    }
    table.note("all operations together; each side lies within the one above it");
    Some(table)
}

fn has_sides(run: &Run) -> bool {
    run.latencies.iter().any(|latency| {
        matches!(latency.clock, LatencyClock::Arrival | LatencyClock::Server)
            && !latency.histogram.is_empty()
    })
}

/// The clock's name and its two instants.
fn boundary(clock: LatencyClock) -> [&'static str; 3] {
    match clock {
        LatencyClock::Response => ["client, response", "due", "in hand"],
        LatencyClock::Service => ["client, service", "sent", "in hand"],
        LatencyClock::Arrival => ["arrival (kernel)", "sent", "client's kernel"],
        LatencyClock::Server => ["server", "server's read", "server's write"],
    }
}

fn figures(h: &LatencyStatistics<'_>) -> Vec<Cell> {
    let at = |percentile: f64| Cell::from(format::micros(h.value_at_percentile(percentile) as f64));
    let mut p99 = at(99.0);
    p99.tone = Tone::Strong;
    vec![
        format::count(h.count()).into(),
        format::micros(h.mean()).into(),
        at(50.0),
        p99,
        at(99.9),
        format::micros(h.max() as f64).into(),
    ]
}

/// In how many runs each check of the two sides holds; None if no server was measured.
pub fn side_checks(runs: &[(&Execution, &Run)]) -> Option<Table> {
    let mut gathered: Vec<(String, usize, usize)> = Vec::new();
    for check in runs.iter().flat_map(|(_, run)| checks(run)) {
        let what = format!("{} ≤ {}", side(&check, false), side(&check, true));
        let holds_here = usize::from(check.holds());
        match gathered.iter_mut().find(|(known, _, _)| *known == what) {
            Some((_, holds, all)) => {
                *holds += holds_here;
                *all += 1;
            }
            None => gathered.push((what, holds_here, 1)),
        }
    }
    if gathered.is_empty() {
        return None;
    }
    let mut table = Table::new("Checks of the two sides")
        .column("check", Align::Left, ALWAYS)
        .column("holds in", Align::Left, ALWAYS);
    for (what, holds, all) in gathered {
        let tone = if holds == all { Tone::Good } else { Tone::Bad };
        let runs = if all == 1 { "run" } else { "runs" };
        table.row(vec![what.into(), Cell::new(format!("{holds} of {all} {runs}"), tone)]);
    }
    Some(table)
}

/// The broken checks of a run, in sentences.
pub(super) fn breaches(run: &Run) -> Vec<String> {
    let breaches = checks(run).into_iter().filter(|check| !check.holds());
    breaches
        .map(|check| {
            format!(
                "the {}, {}, is above the {}, {}: {}",
                side(&check, false),
                format::latency(check.lesser.nanoseconds),
                side(&check, true),
                format::latency(check.greater.nanoseconds),
                check.explanation()
            )
        })
        .collect()
}

/// `server's mean`, `client's p99`.
fn side(check: &SideCheck, greater: bool) -> String {
    let side = if greater { check.greater } else { check.lesser };
    let whose = if side.clock == LatencyClock::Server { "server" } else { "client" };
    format!("{whose}'s {}", side.figure)
}
