//! The columns that every table begins with: which run a row belongs to.

use super::{ColumnKind, DataCell};
use crate::names::name;
use model::{Execution, Run};

pub(super) const COLUMNS: [&str; 9] = [
    "run",
    "execution",
    "study",
    "machine",
    "label",
    "phase",
    "store",
    "store_version",
    "workload",
];

pub(super) fn columns() -> impl Iterator<Item = (String, ColumnKind)> {
    COLUMNS.into_iter().map(|name| (name.to_owned(), ColumnKind::Text))
}

pub(super) fn cells(execution: &Execution, run: &Run) -> Vec<DataCell> {
    let setting = |key: &str| DataCell::from(run.settings.get(key).map(String::as_str));
    let cells: [DataCell; COLUMNS.len()] = [
        run.id.as_str().into(),
        execution.id.as_str().into(),
        execution.study.as_str().into(),
        execution.machine.id.as_str().into(),
        run.label.as_str().into(),
        name(&run.phase).into(),
        setting("store"),
        run.store_version.as_str().into(),
        setting("workload"),
    ];
    cells.into()
}
