use super::runs::RunRow;
use super::{ColumnKind, DataCell, DataTable, identity};
use crate::names::name;
use model::figures::{FIGURES, figures_us};
use model::{Execution, Run, RunLatency};

fn columns() -> impl Iterator<Item = (String, ColumnKind)> {
    let fixed = [
        ("operation", ColumnKind::Text),
        ("clock", ColumnKind::Text),
        ("count", ColumnKind::Integer),
    ];
    let fixed = fixed.into_iter().map(|(name, kind)| (name.to_owned(), kind));
    fixed.chain(FIGURES.into_iter().map(|figure| (format!("{figure}_us"), ColumnKind::Real)))
}

fn cells(latency: &RunLatency) -> Vec<DataCell> {
    let mut cells =
        vec![latency.op.name().into(), name(&latency.clock).into(), latency.histogram.len().into()];
    cells.extend(figures_us(&latency.histogram).map(DataCell::from));
    cells
}

/// A run without any latency still has a row, with those columns empty.
pub(super) fn table(runs: &[(&Execution, &Run)]) -> DataTable {
    let whole = RunRow::of(runs);
    let own = columns().count();
    let all = identity::columns().chain(columns()).chain(whole.columns());
    let mut table = DataTable::new("latency", all);
    for (execution, run) in runs {
        let mut rows: Vec<Vec<DataCell>> = run.latencies.iter().map(cells).collect();
        if rows.is_empty() {
            rows.push(vec![DataCell::Null; own]);
        }
        for latency in rows {
            let mut row = identity::cells(execution, run);
            row.extend(latency);
            row.extend(whole.cells(run));
            table.rows.push(row);
        }
    }
    table
}
