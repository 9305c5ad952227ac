//! The answer at a glance: one row a configuration.

use crate::cells;
use crate::format;
use crate::overview::MAX_ROWS;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};
use model::{Execution, Run};

use super::INVALID_MARK;
use super::runs::op_name;

/// Medians over the valid repeats of each workload and store; the tail of the most frequent
/// operation.
pub fn answer(runs: &[(&Execution, &Run)]) -> Table {
    let mut table = Table::new("At a glance")
        .column("workload", Align::Left, ALWAYS)
        .column("store", Align::Left, ALWAYS)
        .column("kops/s", Align::Decimal, ALWAYS)
        .column("p50, µs", Align::Decimal, 50)
        .column("p99, µs", Align::Decimal, 60)
        .column("p99.9, µs", Align::Decimal, 40)
        .column("of", Align::Left, 55)
        .column("CPU-s/Mop", Align::Decimal, 30)
        .column("valid runs", Align::Left, ALWAYS);
    let all = cells::cells(runs);
    for cell in all.iter().take(MAX_ROWS) {
        let (counted, valid) = cell.counted();
        let main = cell.main_op();
        let merged = match main {
            Some(op) => cell.merged(op, cell.clock()),
            // Messages of a microbenchmark have no kinds.
            None => cell.merged_all(cell.clock()),
        };
        let at = |percentile: f64| match &merged {
            Some(h) => Cell::from(format::micros(h.value_at_percentile(percentile) as f64)),
            None => format::NONE.into(),
        };
        let throughput = cell.median(|run| Some(run.throughput())).unwrap_or(0.0);
        let mark = if valid { "" } else { INVALID_MARK };
        let cpu = cell.median(|run| run.value("cpu_s_per_mop"));
        let validity = match (valid, counted.len() == cell.runs.len()) {
            (false, _) => Cell::new("INVALID", Tone::Bad),
            (true, true) => Cell::new(format!("{}", counted.len()), Tone::Good),
            (true, false) => {
                Cell::new(format!("{} of {}", counted.len(), cell.runs.len()), Tone::Warning)
            }
        };
        table.row_of(
            vec![
                format!("{mark}{}", cell.category).into(),
                cell.series.clone().into(),
                Cell::new(format::kops(throughput), Tone::Strong),
                at(50.0),
                at(99.0),
                at(99.9),
                main.map_or("", op_name).into(),
                cpu.map_or(format::NONE.into(), |v| format::readable(v, 3)).into(),
                validity,
            ],
            valid,
        );
    }
    if all.len() > MAX_ROWS {
        table.note(format!("the first {MAX_ROWS} of {} configurations", all.len()));
    }
    table.note(
        "medians over valid runs; latency of the operation named beside it, by the run's own \
         clock: response time in an open loop, service time in a closed one",
    );
    table
}
