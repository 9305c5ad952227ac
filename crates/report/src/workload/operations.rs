//! Operations, their sizes and expiries.

use workload::describe::{SizeSummary, TraceDescription};

use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table};

pub fn operations(description: &TraceDescription) -> Table {
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

pub fn sizes(description: &TraceDescription) -> Option<Table> {
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
