use super::{ColumnKind, DataCell, DataTable, identity};
use model::{Execution, Run, SeriesPoint};

const NANOS_PER_MICRO: f64 = 1e3;

const COLUMNS: [(&str, ColumnKind); 9] = [
    ("at_s", ColumnKind::Real),
    ("seconds", ColumnKind::Real),
    ("operation", ColumnKind::Text),
    ("operations", ColumnKind::Integer),
    ("throughput_ops_s", ColumnKind::Real),
    ("p50_us", ColumnKind::Real),
    ("p99_us", ColumnKind::Real),
    ("p99_9_us", ColumnKind::Real),
    ("max_us", ColumnKind::Real),
];

fn cells(point: &SeriesPoint) -> [DataCell; COLUMNS.len()] {
    let us = |nanoseconds: u64| DataCell::from(nanoseconds as f64 / NANOS_PER_MICRO);
    [
        point.at_s.into(),
        point.seconds.into(),
        point.op.name().into(),
        point.operations.into(),
        point.throughput().into(),
        us(point.p50_ns),
        us(point.p99_ns),
        us(point.p999_ns),
        us(point.max_ns),
    ]
}

pub(super) fn table(runs: &[(&Execution, &Run)]) -> DataTable {
    let own = COLUMNS.into_iter().map(|(name, kind)| (name.to_owned(), kind));
    let mut table = DataTable::new("series", identity::columns().chain(own));
    for (execution, run) in runs {
        for point in &run.series {
            let mut row = identity::cells(execution, run);
            row.extend(cells(point));
            table.rows.push(row);
        }
    }
    table
}
