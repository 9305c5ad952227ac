//! RFC 4180 with a header; an empty field is a value that is not there.

use std::io::Write;

use super::{ExportError, Exporter};
use crate::table::{Cell, Table};

pub(super) struct Csv;

impl Exporter for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn about(&self) -> &'static str {
        "one row a run and operation, for spreadsheets"
    }

    fn table(&self, table: &Table, out: &mut dyn Write) -> Result<(), ExportError> {
        let mut writer = ::csv::Writer::from_writer(out);
        writer.write_record(table.columns.iter().map(|column| &column.name)).map_err(failed)?;
        for row in &table.rows {
            writer.write_record(row.iter().map(field)).map_err(failed)?;
        }
        Ok(writer.flush()?)
    }
}

fn field(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Text(text) => text.clone(),
        Cell::Integer(value) => value.to_string(),
        Cell::Real(value) => value.to_string(),
        Cell::Boolean(value) => value.to_string(),
    }
}

fn failed(error: ::csv::Error) -> ExportError {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => ExportError::Write(error),
        other => ExportError::Encode(format!("{other:?}")),
    }
}
