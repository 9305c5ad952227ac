//! Without a table: an array of [`Run::summary`]. With one: an array of one object a row,
//! each on its own line.

use std::io::Write;

use serde_json::{Map, Value};

use super::{ExportError, Exporter};
use crate::run::{Execution, Run};
use crate::table::{Cell, Table};

pub(super) struct Json;

impl Exporter for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn about(&self) -> &'static str {
        "one object a run, as `bench --json` prints it"
    }

    fn table(&self, table: &Table, out: &mut dyn Write) -> Result<(), ExportError> {
        array(table.rows.iter().map(|row| object(table, row)), out)
    }

    fn runs(&self, runs: &[(&Execution, &Run)], out: &mut dyn Write) -> Result<(), ExportError> {
        array(runs.iter().map(|(execution, run)| run.summary(execution)), out)
    }
}

fn object(table: &Table, row: &[Cell]) -> Value {
    let pairs = table.columns.iter().zip(row);
    Value::Object(
        pairs.map(|(column, cell)| (column.name.clone(), value(cell))).collect::<Map<_, _>>(),
    )
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Text(text) => text.as_str().into(),
        Cell::Integer(value) => (*value).into(),
        Cell::Real(value) => (*value).into(),
        Cell::Boolean(value) => (*value).into(),
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
