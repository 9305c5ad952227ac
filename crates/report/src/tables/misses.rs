//! Misses of a cache before a modelled database.

use std::collections::BTreeSet;

use model::signal::{
    CACHE_HIT_RATIO, DATABASE_LATENCY, MISS_COUNT, MISS_LATENCY, MISS_P50, MISS_P99, Signal,
};
use model::{Execution, Run};

use super::runs::name_of;
use crate::format;
use crate::run_names;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

/// One row a run whose misses waited for a modelled database, without the runs in `but`; None if
/// there is none.
pub fn misses(runs: &[(&Execution, &Run)], but: &BTreeSet<&str>) -> Option<Table> {
    let mut table = Table::new("Misses, latencies in µs")
        .column("run", Align::Left, 30)
        .column("misses", Align::Right, ALWAYS)
        .column("hit ratio", Align::Decimal, 60)
        .column("database", Align::Decimal, ALWAYS)
        .column("miss mean", Align::Decimal, 70)
        .column("miss p50", Align::Decimal, ALWAYS)
        .column("miss p99", Align::Decimal, ALWAYS);
    for ((_, run), name) in runs.iter().zip(run_names::names(runs)) {
        let Some(count) = run.value(MISS_COUNT.name).filter(|_| !but.contains(run.id.as_str()))
        else {
            continue;
        };
        let micros = |signal: Signal| {
            let seconds = run.value(signal.name);
            seconds.map_or_else(String::new, |s| format!("~{}", format::micros(s * 1e9)))
        };
        let ratio = run.value(CACHE_HIT_RATIO.name);
        let cells = vec![
            name_of(run, &name),
            format::count(count as u64).into(),
            ratio.map_or_else(String::new, |ratio| format::readable(ratio, 3)).into(),
            micros(DATABASE_LATENCY).into(),
            micros(MISS_LATENCY).into(),
            Cell::new(micros(MISS_P50), Tone::Strong),
            Cell::new(micros(MISS_P99), Tone::Strong),
        ];
        table.row_of(cells, run.valid());
    }
    if table.rows.is_empty() {
        return None;
    }
    let mut table = table.without_empty_columns();
    table.note(
        "~ the database is modelled, and its latency is part of a miss: from when the read was \
         due (sent, in a closed loop) until the record was written to the cache. The latencies of \
         reads and of the cache do not have it",
    );
    Some(table)
}
