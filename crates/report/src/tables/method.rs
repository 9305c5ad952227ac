//! How each run was measured.

use std::collections::HashSet;

use model::{Execution, LoopKind, Run};

use super::runs::name_of;
use crate::format;
use crate::overview::{MAX_ROWS, is_many};
use crate::run_names;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// One row for each run: loop, clock, verification and harness tax.
pub fn method(runs: &[(&Execution, &Run)]) -> Table {
    let mut table = Table::new("How each run was measured")
        .column("run", Align::Left, ALWAYS)
        .column("store", Align::Left, 50)
        .column("loop", Align::Left, ALWAYS)
        .column("latency counts from", Align::Left, ALWAYS)
        .column("answers checked", Align::Left, 60)
        .column("harness/op", Align::Right, 60)
        .column("clock", Align::Right, 30)
        .column("check a value", Align::Right, 30)
        .column("harness busy", Align::Right, 60);
    // Of many runs, one of each store and loop is shown.
    let (all, mut seen) = (!is_many(runs), HashSet::new());
    for ((_, run), name) in runs.iter().zip(run_names::names(runs)) {
        let new = all || seen.insert((run.store_version.clone(), run_names::pacing(&run.pacing)));
        if !new || table.rows.len() >= MAX_ROWS {
            continue;
        }
        let tax = run.tax.as_ref();
        let nanos = |value: Option<f64>| match value {
            Some(value) => Cell::from(format::latency(value)),
            None => Cell::new("not measured", Tone::Muted),
        };
        table.row_of(
            vec![
                name_of(run, &name),
                run.store_version.clone().into(),
                run_names::pacing(&run.pacing).into(),
                counts_from(&run.pacing).into(),
                checked(run),
                nanos(tax.map(|t| t.ns_per_op)),
                nanos(tax.map(|t| t.clock_ns)),
                nanos(tax.and_then(|t| t.verify_ns)),
                match tax {
                    Some(tax) => Cell::from(format::percent(tax.busy)),
                    None => Cell::new("not measured", Tone::Muted),
                },
            ],
            run.valid(),
        );
    }
    if !all {
        table.note("one run of each store and loop; `kvmeter export` has every run");
    }
    table
}

fn counts_from(pacing: &LoopKind) -> &'static str {
    match pacing {
        LoopKind::Open { .. } => "due (response time), sent beside it",
        LoopKind::Closed { .. } => "sent (service time)",
    }
}

fn checked(run: &Run) -> Cell {
    let mut text = format::count(run.verified);
    if run.misses > 0 {
        text += &format!(", {} allowed misses", format::count(run.misses));
    }
    match run.errors() {
        0 => Cell::from(text),
        n => Cell::new(format!("{text}, {} wrong", format::count(n)), Tone::Bad),
    }
}

/// The kind of loop in a sentence, as a caption of latencies.
pub fn how_issued(pacing: &LoopKind) -> String {
    match pacing {
        LoopKind::Closed { .. } => "Closed loop: latency is service time, counted from sending. \
             While an answer is late its thread issues nothing, so a stall is counted once."
            .to_owned(),
        LoopKind::Open { rate_ops_s, arrivals } => format!(
            "Open loop at {} ({arrivals} arrivals): response time counts from the instant at \
             which the request was due, service time from the instant at which it was sent.",
            format::target_rate(*rate_ops_s)
        ),
    }
}
