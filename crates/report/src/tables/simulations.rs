//! Simulated runs.

use model::{Execution, Phase, Run};

use super::runs::name_of;
use crate::format;
use crate::overview::MAX_ROWS;
use crate::run_names;
use crate::table::{ALWAYS, Align, Cell, Table};

/// The measured runs, which have operations, latencies and costs.
pub fn measured_runs<'a>(runs: &[(&'a Execution, &'a Run)]) -> Vec<(&'a Execution, &'a Run)> {
    runs.iter().filter(|(_, run)| run.phase != Phase::Simulate).copied().collect()
}

/// One row a simulated run. None without one.
pub fn simulations(runs: &[(&Execution, &Run)]) -> Option<Table> {
    let simulated: Vec<(&Execution, &Run)> =
        runs.iter().filter(|(_, run)| run.phase == Phase::Simulate).copied().collect();
    if simulated.is_empty() {
        return None;
    }
    let mut table = Table::new("Simulated, not measured: direct cache access")
        .column("run", Align::Left, ALWAYS)
        .column("traffic", Align::Left, 50)
        .column("policy", Align::Left, ALWAYS)
        .column("kpackets/s", Align::Decimal, 60)
        .column("LLC miss", Align::Right, ALWAYS)
        .column("card's write hit", Align::Right, 70)
        .column("memory GB/s", Align::Decimal, 40)
        .column("mean µs", Align::Decimal, 80)
        .column("p99 µs", Align::Decimal, 30)
        .column("dropped", Align::Right, 20);
    for ((_, run), name) in simulated.iter().zip(run_names::names(&simulated)).take(MAX_ROWS) {
        let setting = |key: &str| Cell::from(run.settings.get(key).cloned().unwrap_or_default());
        let read = |signal: &str, text: &dyn Fn(f64) -> String| {
            let value = run.value(&format!("simulated.{signal}"));
            Cell::from(value.map_or_else(|| format::NONE.to_owned(), text))
        };
        let scaled = |by: f64| move |value: f64| format::readable(value * by, 3);
        table.row(vec![
            name_of(run, &name),
            setting("simulate.traffic"),
            setting("simulate.policy"),
            read("throughput", &scaled(1e-3)),
            read("llc.miss_ratio", &format::percent),
            read("pcie.write_hit_ratio", &format::percent),
            read("memory.traffic", &scaled(1e-9)),
            read("latency.mean", &scaled(1e6)),
            read("latency.p99", &scaled(1e6)),
            read("dropped", &format::percent),
        ]);
    }
    if simulated.len() > MAX_ROWS {
        table.note(format!("the first {MAX_ROWS} of {} simulations", simulated.len()));
    }
    table.note("the readings say of which machine and traffic; see docs/cache-simulation.md");
    Some(table.without_empty_columns())
}
