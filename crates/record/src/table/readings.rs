use model::{Answer, Reading};

use super::{Cell, Kind, Table, identity};
use crate::keep::truthful;
use crate::names::name;
use crate::run::{Execution, Run};

const COLUMNS: [(&str, Kind); 9] = [
    ("signal", Kind::Text),
    ("value", Kind::Real),
    ("unit", Kind::Text),
    ("scope", Kind::Text),
    ("origin", Kind::Text),
    ("window_s", Kind::Real),
    ("source", Kind::Text),
    ("unavailable", Kind::Text),
    ("remedy", Kind::Text),
];

fn cells(reading: &Reading) -> [Cell; COLUMNS.len()] {
    let (value, reason, remedy) = match truthful(reading).answer {
        Answer::Value(value) => (Some(value), None, None),
        Answer::Unavailable { reason, remedy } => (None, Some(reason), remedy),
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

pub(super) fn table(runs: &[(&Execution, &Run)]) -> Table {
    let own = COLUMNS.into_iter().map(|(name, kind)| (name.to_owned(), kind));
    let mut table = Table::new("readings", identity::columns().chain(own));
    for (execution, run) in runs {
        for reading in &run.readings {
            let mut row = identity::cells(execution, run);
            row.extend(cells(reading));
            table.rows.push(row);
        }
    }
    table
}
