//! RFC 4180 with a header; an empty field is a missing value. Text is what [`model::text::cell`]
//! makes of it: no formula, no control characters.

use std::io::Write;

use model::text;

use super::{ExportError, Exporter};
use crate::table::{DataCell, DataTable};

pub(super) struct Csv;

impl Exporter for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn about(&self) -> &'static str {
        "one row a run and operation, for spreadsheets"
    }

    fn table(&self, table: &DataTable, out: &mut dyn Write) -> Result<(), ExportError> {
        let mut writer = ::csv::Writer::from_writer(out);
        let heads = table.columns.iter().map(|column| text::cell(&column.name).into_owned());
        writer.write_record(heads).map_err(failed)?;
        for row in &table.rows {
            writer.write_record(row.iter().map(field)).map_err(failed)?;
        }
        Ok(writer.flush()?)
    }
}

fn field(cell: &DataCell) -> String {
    match cell {
        DataCell::Null => String::new(),
        DataCell::Text(text) => text::cell(text).into_owned(),
        DataCell::Integer(value) => value.to_string(),
        DataCell::Real(value) => value.to_string(),
        DataCell::Boolean(value) => value.to_string(),
    }
}

fn failed(error: ::csv::Error) -> ExportError {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => ExportError::Write(error),
        other => ExportError::Encode(format!("{other:?}")),
    }
}
