use super::runs::Whole;
use super::{Cell, Kind, Table, identity};
use crate::figures::{FIGURES, figures_us};
use crate::names::name;
use crate::run::{Execution, Latency, Run};

fn columns() -> impl Iterator<Item = (String, Kind)> {
    let fixed = [("operation", Kind::Text), ("clock", Kind::Text), ("count", Kind::Integer)];
    let fixed = fixed.into_iter().map(|(name, kind)| (name.to_owned(), kind));
    fixed.chain(FIGURES.into_iter().map(|figure| (format!("{figure}_us"), Kind::Real)))
}

fn cells(latency: &Latency) -> Vec<Cell> {
    let mut cells =
        vec![latency.op.name().into(), name(&latency.clock).into(), latency.histogram.len().into()];
    cells.extend(figures_us(&latency.histogram).map(Cell::from));
    cells
}

/// A run without any latency still has its row, with those columns empty: no run is lost.
pub(super) fn table(runs: &[(&Execution, &Run)]) -> Table {
    let whole = Whole::of(runs);
    let own = columns().count();
    let all = identity::columns().chain(columns()).chain(whole.columns());
    let mut table = Table::new("latency", all);
    for (execution, run) in runs {
        let mut rows: Vec<Vec<Cell>> = run.latencies.iter().map(cells).collect();
        if rows.is_empty() {
            rows.push(vec![Cell::Null; own]);
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
