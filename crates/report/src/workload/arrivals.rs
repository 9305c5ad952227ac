//! Arrivals: burstiness, and the load over time.

use workload::describe::TraceDescription;
use workload::trace::TraceTiming;

use crate::format;
use crate::table::{ALWAYS, Align, Table};

/// Rows of the table over time.
const INTERVALS: usize = 16;

pub fn dispersion(description: &TraceDescription) -> Table {
    let mut table = Table::new("Burstiness")
        .column("intervals of", Align::Right, ALWAYS)
        .column("intervals", Align::Right, 1)
        .column("index of dispersion", Align::Decimal, ALWAYS);
    for scale in &description.dispersion {
        table.row(vec![
            format::seconds(scale.interval_s).into(),
            format::count(scale.intervals).into(),
            format::readable(scale.index, 3).into(),
        ]);
    }
    table.note("Exact. Poisson arrivals have 1, constant ones 0.");
    if let Some(times) = &description.inter_arrival {
        table.note(format!(
            "Inter-arrival times: mean {}, p50 {}, p99 {}, coefficient of variation {}.",
            format::latency(times.mean_s * 1e9),
            format::latency(times.p50_s * 1e9),
            format::latency(times.p99_s * 1e9),
            format::significant(times.coefficient_of_variation, 3)
        ));
    }
    table
}

pub fn timeline(description: &TraceDescription, timing: TraceTiming) -> Table {
    let timed = timing != TraceTiming::Untimed;
    let mut table = Table::new(if timed { "Over time" } else { "Over the requests" })
        .column("from", Align::Right, ALWAYS)
        .column("requests", Align::Right, 3)
        .column("rate", Align::Right, ALWAYS)
        .column("bytes a second", Align::Right, 2)
        .column("distinct keys", Align::Right, ALWAYS)
        .column("working set", Align::Right, ALWAYS);
    let all = &description.timeline;
    let step = all.len().div_ceil(INTERVALS).max(1);
    for point in all.iter().step_by(step) {
        let a_second = |number: u64| number as f64 / point.length;
        let (from, rate, bytes) = match timed {
            true => (
                format::seconds(point.begin),
                format::rate(a_second(point.requests)),
                format::bytes(a_second(point.bytes)),
            ),
            false => (format::count_short(point.begin), String::new(), String::new()),
        };
        table.row(vec![
            from.into(),
            format::count_short(point.requests as f64).into(),
            rate.into(),
            bytes.into(),
            format::count_short(point.keys).into(),
            format::count_short(point.working_set).into(),
        ]);
    }
    table.note("Requests and bytes are exact; the distinct keys of an interval are estimated, standard error 0.8 %.");
    if step > 1 {
        table.note(format!("One interval of every {step}; `--json` has them all."));
    }
    table.without_empty_columns()
}
