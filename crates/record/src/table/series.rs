use super::{Cell, Kind, Table, identity};
use crate::run::{Execution, Point, Run};

const NANOS_PER_MICRO: f64 = 1e3;

const COLUMNS: [(&str, Kind); 9] = [
    ("at_s", Kind::Real),
    ("seconds", Kind::Real),
    ("operation", Kind::Text),
    ("operations", Kind::Integer),
    ("throughput_ops_s", Kind::Real),
    ("p50_us", Kind::Real),
    ("p99_us", Kind::Real),
    ("p99_9_us", Kind::Real),
    ("max_us", Kind::Real),
];

fn cells(point: &Point) -> [Cell; COLUMNS.len()] {
    let us = |nanoseconds: u64| Cell::from(nanoseconds as f64 / NANOS_PER_MICRO);
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

pub(super) fn table(runs: &[(&Execution, &Run)]) -> Table {
    let own = COLUMNS.into_iter().map(|(name, kind)| (name.to_owned(), kind));
    let mut table = Table::new("series", identity::columns().chain(own));
    for (execution, run) in runs {
        for point in &run.series {
            let mut row = identity::cells(execution, run);
            row.extend(cells(point));
            table.rows.push(row);
        }
    }
    table
}
