//! Without a table: an array of [`crate::summary`]. With one: an array of one object a row,
//! each on its own line.

use std::io::Write;

use serde_json::{Map, Value};

use super::{ExportError, Exporter};
use crate::summary::summary;
use crate::table::{DataCell, DataTable};
use model::{Execution, Run};

pub(super) struct Json;

impl Exporter for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn about(&self) -> &'static str {
        "one object a run, as `bench --json` prints it"
    }

    fn table(&self, table: &DataTable, out: &mut dyn Write) -> Result<(), ExportError> {
        array(table.rows.iter().map(|row| object(table, row)), out)
    }

    fn runs(&self, runs: &[(&Execution, &Run)], out: &mut dyn Write) -> Result<(), ExportError> {
        array(runs.iter().map(|(execution, run)| summary(run, execution)), out)
    }
}

fn object(table: &DataTable, row: &[DataCell]) -> Value {
    let pairs = table.columns.iter().zip(row);
    Value::Object(
        pairs.map(|(column, cell)| (column.name.clone(), value(cell))).collect::<Map<_, _>>(),
    )
}

fn value(cell: &DataCell) -> Value {
    match cell {
        DataCell::Null => Value::Null,
        DataCell::Text(text) => text.as_str().into(),
        DataCell::Integer(value) => (*value).into(),
        DataCell::Real(value) => (*value).into(),
        DataCell::Boolean(value) => (*value).into(),
    }
}

/// Element by element, so that a long series is never one string in memory.
fn array(elements: impl Iterator<Item = Value>, out: &mut dyn Write) -> Result<(), ExportError> {
    out.write_all(b"[")?;
    for (index, element) in elements.enumerate() {
        out.write_all(if index == 0 { b"\n" } else { b",\n" })?;
        out.write_all(model::text::json(&element.to_string()).as_bytes())?;
    }
    Ok(out.write_all(b"\n]\n")?)
}
