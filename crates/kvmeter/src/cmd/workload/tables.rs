//! The figures of a workload as tables. Each says what is exact.

use report::format;
use report::table::{ALWAYS, Align, Cell, Table};
use workload::describe::{Figure, MissRatioCurve, SizeSummary, TraceDescription};
use workload::trace::TraceTiming;

/// Rows of the table over time.
const INTERVALS: usize = 16;

pub fn of(description: &TraceDescription, timing: TraceTiming) -> Vec<Table> {
    let mut tables = vec![operations(description)];
    tables.extend(sizes(description));
    tables.push(popularity(description));
    tables.extend(description.miss_ratio.as_ref().map(miss_ratio));
    if !description.dispersion.is_empty() {
        tables.push(dispersion(description));
    }
    tables.push(timeline(description, timing));
    tables
}

fn operations(description: &TraceDescription) -> Table {
    let mut table = Table::new("Operations")
        .column("operation", Align::Left, ALWAYS)
        .column("requests", Align::Right, ALWAYS)
        .column("share", Align::Decimal, ALWAYS)
        .column("never expires", Align::Right, 2)
        .column("expires at once", Align::Right, 1);
    let some = |count: u64| if count > 0 { format::count(count) } else { String::new() };
    for of in &description.operations {
        table.row(vec![
            of.operation.into(),
            format::count(of.requests).into(),
            format::percent(of.share).into(),
            some(of.never_expires).into(),
            some(of.expires_at_once).into(),
        ]);
    }
    table.note("Exact.");
    table.without_empty_columns()
}

fn sizes(description: &TraceDescription) -> Option<Table> {
    let mut table = Table::new("Sizes and expiries")
        .column("of", Align::Left, ALWAYS)
        .column("requests", Align::Right, 1)
        .column("mean", Align::Right, ALWAYS)
        .column("min", Align::Right, 2)
        .column("p50", Align::Right, ALWAYS)
        .column("p90", Align::Right, 3)
        .column("p99", Align::Right, ALWAYS)
        .column("max", Align::Right, ALWAYS);
    let mut row = |of: String, sizes: &Option<SizeSummary>, shown: fn(f64) -> String| {
        let Some(sizes) = sizes else { return };
        let number = |size: u64| Cell::from(shown(size as f64));
        table.row(vec![
            of.into(),
            format::count(sizes.requests).into(),
            shown(sizes.mean).into(),
            number(sizes.min),
            number(sizes.p50),
            number(sizes.p90),
            number(sizes.p99),
            number(sizes.max),
        ]);
    };
    for of in &description.operations {
        row(format!("{} key", of.operation), &of.key_bytes, format::bytes);
        row(format!("{} value", of.operation), &of.value_bytes, format::bytes);
        row(format!("{} expiry", of.operation), &of.ttl_s, format::seconds);
    }
    if table.rows.is_empty() {
        return None;
    }
    table.note("Mean, minimum and maximum are exact, percentiles within 0.1 %.");
    Some(table)
}

fn popularity(description: &TraceDescription) -> Table {
    let popularity = &description.popularity;
    let mut table = Table::new("Popularity")
        .column("figure", Align::Left, ALWAYS)
        .column("value", Align::Left, ALWAYS)
        .column("how exact", Align::Wrap, ALWAYS);
    let mut row = |name: &str, figure: Figure, shown: fn(f64) -> String| {
        let error = match figure.standard_error {
            None => "exact".to_owned(),
            Some(error) => format!("estimated, standard error {}", shown(error)),
        };
        table.row(vec![name.into(), shown(figure.value).into(), error.into()]);
    };
    row("distinct keys", description.keys, format::count_short);
    row("one-hit wonders", popularity.one_hit_wonders, format::percent);
    row("requests of the top 1 %", popularity.top_1_percent, format::percent);
    row("requests of the top 10 %", popularity.top_10_percent, format::percent);
    if let Some(correlation) = popularity.size_correlation {
        let shown = |value: f64| format!("{value:.3}");
        row("correlation of size and popularity", correlation, shown);
    }
    if let Some(zipf) = &popularity.zipf {
        table.row(vec![
            "Zipf's exponent".into(),
            format!("{:.3}", zipf.theta).into(),
            format!("95 % interval {:.3} to {:.3}", zipf.theta_low, zipf.theta_high).into(),
        ]);
        let fits = if zipf.is_zipf { "it is Zipf's law" } else { "it is not Zipf's law" };
        table.row(vec![
            "distance from Zipf's law".into(),
            format!("{:.3}", zipf.distance).into(),
            format!(
                "{fits}; {} keys with at least {} requests",
                format::count_short(zipf.keys as f64),
                zipf.from_requests
            )
            .into(),
        ]);
    }
    let exact =
        if popularity.ranks_exact { "exact" } else { "estimated from a sample of the keys" };
    for point in &popularity.ranks {
        table.row(vec![
            format!("requests of rank {}", format::count_short(point.rank)).into(),
            format::count(point.requests).into(),
            exact.into(),
        ]);
    }
    if let Some(drift) = &description.drift {
        let mut overlap = |name: &str, share: f64| {
            table.row(vec![name.into(), format::percent(share).into(), "estimated".into()]);
        };
        overlap("top 100 in common: halves of an interval", drift.within);
        overlap("top 100 in common: successive intervals", drift.successive);
        overlap("top 100 in common: first and last", drift.first_and_last);
        table.note(format!(
            "Intervals of {} requests. What successive ones have less in common than two halves of \
             the same one is drift.",
            format::count_short(drift.requests_each as f64)
        ));
    }
    table
}

fn miss_ratio(curve: &MissRatioCurve) -> Table {
    let mut table = Table::new("Miss ratio of an LRU cache")
        .column("share of the working set", Align::Right, ALWAYS)
        .column("items", Align::Right, ALWAYS)
        .column("misses", Align::Decimal, ALWAYS)
        .column("bytes", Align::Right, ALWAYS)
        .column("misses by bytes", Align::Decimal, ALWAYS);
    let shown = [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
    for point in shown.iter().filter_map(|percent| curve.points.get(percent - 1)) {
        table.row(vec![
            format::percent(point.share).into(),
            format::count_short(point.items as f64).into(),
            format::percent(point.by_items).into(),
            format::bytes(point.bytes as f64).into(),
            format::percent(point.by_bytes).into(),
        ]);
    }
    table.note(match curve.standard_error {
        None => "Exact: the requests of every key were followed.".to_owned(),
        Some(error) => format!(
            "Estimated from {} sampled keys; the usual error of a miss ratio is {}.",
            format::count(curve.sampled_keys as u64),
            format::percent(error)
        ),
    });
    table.note("Of the reads; what is missed is filled. Bytes are those of keys and values.");
    table
}

fn dispersion(description: &TraceDescription) -> Table {
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

fn timeline(description: &TraceDescription, timing: TraceTiming) -> Table {
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
