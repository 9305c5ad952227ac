use model::{Execution, Reading, ReadingValue, Run};

use super::{ColumnKind, DataCell, DataTable, identity};
use crate::names::name;
use crate::write::finite_or_unavailable;

const COLUMNS: [(&str, ColumnKind); 9] = [
    ("signal", ColumnKind::Text),
    ("value", ColumnKind::Real),
    ("unit", ColumnKind::Text),
    ("scope", ColumnKind::Text),
    ("origin", ColumnKind::Text),
    ("window_s", ColumnKind::Real),
    ("source", ColumnKind::Text),
    ("unavailable", ColumnKind::Text),
    ("remedy", ColumnKind::Text),
];

fn cells(reading: &Reading) -> [DataCell; COLUMNS.len()] {
    let (value, reason, remedy) = match finite_or_unavailable(reading).answer {
        ReadingValue::Value(value) => (Some(value), None, None),
        ReadingValue::Unavailable { reason, remedy } => (None, Some(reason), remedy),
    };
    [
        reading.signal.as_str().into(),
        value.into(),
        name(&reading.unit).into(),
        name(&reading.scope).into(),
        name(&reading.origin).into(),
        reading.window_s.into(),
        reading.source.as_str().into(),
        reason.into(),
        remedy.into(),
    ]
}

pub(super) fn table(runs: &[(&Execution, &Run)]) -> DataTable {
    let own = COLUMNS.into_iter().map(|(name, kind)| (name.to_owned(), kind));
    let mut table = DataTable::new("readings", identity::columns().chain(own));
    for (execution, run) in runs {
        for reading in &run.readings {
            let mut row = identity::cells(execution, run);
            row.extend(cells(reading));
            table.rows.push(row);
        }
    }
    table
}
