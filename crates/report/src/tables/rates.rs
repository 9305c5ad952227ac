//! Latency against rate: one row a rate.

use analyse::search::{ClientHealth, LimitedBy, limit};
use analyse::slo::{Objective, ObjectiveVerdict};
use model::{Execution, LatencyClock, Run, RunLatency};

use super::INVALID_MARK;
use crate::cells::ReportCell as Point;
use crate::curves::{RateCurve, curves};
use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// One table for each workload; none if no runs differ only in the rate.
pub fn rates(runs: &[(&Execution, &Run)]) -> Vec<Table> {
    let all = curves(runs);
    by_workload(&all).into_iter().map(|(workload, own)| table(workload, &own)).collect()
}

/// Curves by workload, in order of appearance.
pub(crate) fn by_workload<'c, 'a>(
    all: &'c [RateCurve<'a>],
) -> Vec<(&'c str, Vec<&'c RateCurve<'a>>)> {
    let mut groups: Vec<(&str, Vec<&RateCurve>)> = Vec::new();
    for curve in all {
        match groups.iter_mut().find(|(workload, _)| *workload == curve.category) {
            Some((_, own)) => own.push(curve),
            None => groups.push((&curve.category, vec![curve])),
        }
    }
    groups
}

fn table(workload: &str, curves: &[&RateCurve]) -> Table {
    let mut objectives: Vec<Objective> = Vec::new();
    for objective in curves.iter().filter_map(|curve| curve.objective()) {
        if !objectives.contains(&objective) {
            objectives.push(objective);
        }
    }
    let mut table = Table::new(format!("Latency in µs against rate: {workload}"))
        .column("store", Align::Left, ALWAYS)
        .column("target", Align::Right, ALWAYS)
        .column("kops/s", Align::Decimal, ALWAYS)
        .column("p50", Align::Decimal, 90)
        .column("p99", Align::Decimal, ALWAYS)
        .column("p99.9", Align::Decimal, 70);
    for objective in &objectives {
        table = table.column(objective.to_string(), Align::Left, 95);
    }
    let mut table = table
        .column("hit ratio", Align::Decimal, 50)
        .column("server p99", Align::Decimal, 80)
        .column("server CPU-s/Mop", Align::Decimal, 60)
        .column("switches/op", Align::Decimal, 20)
        .column("syscalls/op", Align::Decimal, 30)
        .column("limit", Align::Left, 55)
        .column("valid", Align::Left, ALWAYS);
    for curve in curves {
        for (index, point) in curve.points.iter().enumerate() {
            let name = if index == 0 { curve.series.as_str() } else { "" };
            row(&mut table, name, point, &objectives);
        }
    }
    if curves.len() == 1 {
        // A single store is named in the title.
        table.clear_column("store");
        table.title += &format!(" on {}", curves[0].series);
    }
    let mut table = table.without_empty_columns();
    table.note(
        "target: operations a second; latency: response time of all operations together, counted \
         from the instant at which a request was due; repeats of a rate are added up",
    );
    if table.columns.iter().any(|column| column.head == "limit") {
        table.note("limit: what kept the rate from being achieved, or its latency from counting");
    }
    if !objectives.is_empty() {
        table.note(
            "an objective holds or breaks where the 95 % interval of the latency lies entirely on \
             one side of its limit",
        );
    }
    table
}

fn row(table: &mut Table, name: &str, point: &Point, objectives: &[Objective]) {
    let (runs, valid) = point.counted();
    let target = runs.first().and_then(|run| run.target_rate());
    let reading = |signal: &str| point.median(|run| run.value(signal));
    let number =
        |value: Option<f64>| value.map_or(String::new(), |value| format::readable(value, 3));
    let response = point.merged_all(LatencyClock::Response);
    let mark = if valid { "" } else { INVALID_MARK };
    let target = format!("{mark}{}", target.map_or(String::new(), format::count_short));
    let mut cells = vec![
        Cell::from(name),
        Cell::new(target, if valid { Tone::Plain } else { Tone::Bad }),
        Cell::new(point.achieved().map_or(String::new(), format::kops), Tone::Strong),
    ];
    for percentile in [50.0, 99.0, 99.9] {
        let value = response.as_ref().map(|h| h.value_at_percentile(percentile) as f64);
        cells.push(value.map_or(format::NONE.to_owned(), format::micros).into());
    }
    cells.extend(objectives.iter().map(|objective| verdict(objective, &runs)));
    let server = point.merged_all(LatencyClock::Server);
    let server = server.map(|h| format::micros(h.value_at_percentile(99.0) as f64));
    let per_op = |signal: &str| number(reading(signal).map(|per_mop| per_mop / 1e6));
    cells.extend([
        Cell::from(number(point.median(Run::hit_ratio))),
        server.unwrap_or_default().into(),
        number(reading("server.cpu_s_per_mop")).into(),
        per_op("server.context_switches_per_mop").into(),
        per_op("server.syscalls_per_mop").into(),
        limited_by(&runs),
        validity(point),
    ]);
    table.row_of(cells, valid);
}

/// The verdict on the latencies of these runs together.
fn verdict(objective: &Objective, runs: &[&Run]) -> Cell {
    let latencies: Vec<RunLatency> =
        runs.iter().flat_map(|run| run.latencies.iter().cloned()).collect();
    match objective.judge(&latencies, LatencyClock::Response).verdict() {
        ObjectiveVerdict::Holds => Cell::new("holds", Tone::Good),
        ObjectiveVerdict::Breaks => Cell::new("breaks", Tone::Bad),
        ObjectiveVerdict::Unclear => Cell::new("unclear", Tone::Warning),
    }
}

/// What limited a rate: the client if it did in any run.
fn limited_by(runs: &[&Run]) -> Cell {
    let found: Vec<LimitedBy> =
        runs.iter().filter_map(|run| limit(run, &ClientHealth::of(run))).collect();
    match (found.contains(&LimitedBy::Client), found.is_empty()) {
        (true, _) => Cell::new("client", Tone::Warning),
        (_, false) => Cell::new("server", Tone::Bad),
        _ => Cell::from(""),
    }
}

fn validity(point: &Point) -> Cell {
    let valid = point.runs.iter().filter(|run| run.valid()).count();
    match (valid, point.runs.len()) {
        (0, _) => Cell::new("INVALID", Tone::Bad),
        (some, all) if some == all => Cell::new("yes", Tone::Good),
        (some, all) => Cell::new(format!("{some} of {all}"), Tone::Warning),
    }
}
