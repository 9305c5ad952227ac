use super::{ColumnKind, DataCell, DataTable, identity};
use crate::names::name;
use model::{Execution, Run};

const COLUMNS: [(&str, ColumnKind); 7] = [
    ("signal", ColumnKind::Text),
    ("at_s", ColumnKind::Real),
    ("value", ColumnKind::Real),
    ("unit", ColumnKind::Text),
    ("scope", ColumnKind::Text),
    ("origin", ColumnKind::Text),
    ("source", ColumnKind::Text),
];

pub(super) fn table(runs: &[(&Execution, &Run)]) -> DataTable {
    let own = COLUMNS.into_iter().map(|(name, kind)| (name.to_owned(), kind));
    let mut table = DataTable::new("samples", identity::columns().chain(own));
    for (execution, run) in runs {
        for series in &run.samples {
            for (at_s, value) in series.at_s.iter().zip(&series.values) {
                let mut row = identity::cells(execution, run);
                row.extend::<[DataCell; COLUMNS.len()]>([
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
