//! Results for other programs and for people: one exporter a file, all listed in [`EXPORTERS`]. A
//! new format is a file and a line there.

mod csv;
mod folded;
mod hgrm;
mod hlog;
mod json;
mod markdown;
mod parquet;

use std::io::{self, Write};

use model::{Execution, Run, suggest};
use thiserror::Error;

use crate::table::{DataTable, TableName, UnknownTable};

/// A format of export.
pub trait Exporter: Sync {
    /// The name after `--format`, also the usual extension of its files.
    fn name(&self) -> &'static str;

    /// A line of help.
    fn about(&self) -> &'static str;

    /// Writes one table.
    fn table(&self, table: &DataTable, out: &mut dyn Write) -> Result<(), ExportError>;

    /// Writes the runs when no table is named.
    fn runs(&self, runs: &[(&Execution, &Run)], out: &mut dyn Write) -> Result<(), ExportError> {
        self.table(&TableName::Latency.of(runs), out)
    }
}

pub const EXPORTERS: [&dyn Exporter; 8] = [
    &csv::Csv,
    &json::Json,
    &markdown::Markdown,
    &parquet::Parquet,
    &hlog::HistogramLog,
    &hgrm::Percentiles,
    &folded::Folded { waits: false },
    &folded::Folded { waits: true },
];

#[derive(Debug, Error)]
pub enum ExportError {
    #[error("--format: there is no format `{name}`; {hint}")]
    UnknownFormat { name: String, hint: String },
    #[error(transparent)]
    UnknownTable(#[from] UnknownTable),
    #[error("--format {0} has no tables; leave out --table")]
    NoTables(&'static str),
    #[error("--format {0}: none of the selected runs was profiled; measure with bench --why")]
    NoProfile(&'static str),
    #[error("--format hgrm: the selected runs have no latencies; select others: FILE?key=value")]
    NoLatencies,
    #[error(
        "--format hgrm holds one distribution, but `{first}` and `{other}` differ in {key}; select \
         the runs of one configuration, such as FILE?{key}=..., or take --format hlog"
    )]
    SeveralConfigurations { first: String, other: String, key: String },
    /// A broken pipe is among these: the reader has closed its end.
    #[error("writing the export: {0}")]
    Write(#[from] io::Error),
    #[error("encoding the export: {0}")]
    Encode(String),
}

/// The exporter of that name.
pub fn exporter(name: &str) -> Result<&'static dyn Exporter, ExportError> {
    let names = EXPORTERS.map(|exporter| exporter.name());
    match names.iter().position(|known| *known == name) {
        Some(index) => Ok(EXPORTERS[index]),
        None => {
            let hint = suggest::hint(name, names);
            Err(ExportError::UnknownFormat { name: name.to_owned(), hint })
        }
    }
}

/// Writes the runs in `format`: the named table, else the format's default (`csv`, `parquet`: the
/// table `latency`; `json`: an array of [`crate::summary`]; `markdown`: tables for a pull request).
pub fn export(
    format: &str,
    table: Option<TableName>,
    runs: &[(&Execution, &Run)],
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let exporter = exporter(format)?;
    match table {
        Some(which) => exporter.table(&which.of(runs), out)?,
        None => exporter.runs(runs, out)?,
    }
    Ok(out.flush()?)
}
