use super::{Cell, Kind, Table, identity};
use crate::names::name;
use crate::run::{Execution, Run};

const COLUMNS: [(&str, Kind); 7] = [
    ("signal", Kind::Text),
    ("at_s", Kind::Real),
    ("value", Kind::Real),
    ("unit", Kind::Text),
    ("scope", Kind::Text),
    ("origin", Kind::Text),
    ("source", Kind::Text),
];

pub(super) fn table(runs: &[(&Execution, &Run)]) -> Table {
    let own = COLUMNS.into_iter().map(|(name, kind)| (name.to_owned(), kind));
    let mut table = Table::new("samples", identity::columns().chain(own));
    for (execution, run) in runs {
        for series in &run.samples {
            for (at_s, value) in series.at_s.iter().zip(&series.values) {
                let mut row = identity::cells(execution, run);
                row.extend::<[Cell; COLUMNS.len()]>([
                    series.signal.as_str().into(),
                    (*at_s).into(),
                    (*value).into(),
                    name(&series.unit).into(),
                    name(&series.scope).into(),
                    name(&series.origin).into(),
                    series.source.as_str().into(),
                ]);
                table.rows.push(row);
            }
        }
    }
    table
}
