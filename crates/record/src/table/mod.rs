//! Runs as flat tables with typed columns: what every exporter writes, whatever its format.
//! Columns carry the names of the results file's views.

mod identity;
mod latency;
mod readings;
mod runs;
mod samples;
mod series;

use std::fmt;
use std::str::FromStr;

use model::{Execution, Run, suggest};

/// The type of a column. Every column may have cells without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    Text,
    Integer,
    Real,
    Boolean,
}

/// Its unit, where it has one, is the end of its name: `seconds`, `throughput_ops_s`, `p99_us`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataColumn {
    pub name: String,
    pub kind: ColumnKind,
}

/// `Null` or a value of its column's kind; a `Real` is finite.
#[derive(Debug, Clone, PartialEq)]
pub enum DataCell {
    Null,
    Text(String),
    Integer(i64),
    Real(f64),
    Boolean(bool),
}

/// Rows are as long as `columns`.
#[derive(Debug, Clone, PartialEq)]
pub struct DataTable {
    pub name: &'static str,
    pub columns: Vec<DataColumn>,
    pub rows: Vec<Vec<DataCell>>,
}

/// Which table of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableName {
    /// One row a run.
    Runs,
    /// One row a run, operation and clock, with the run's own columns.
    Latency,
    /// One row a run, interval and operation.
    Series,
    /// One row a run and reading.
    Readings,
    /// One row a run, sampled signal and sample.
    Samples,
}

impl TableName {
    pub const ALL: [TableName; 5] = [
        TableName::Runs,
        TableName::Latency,
        TableName::Series,
        TableName::Readings,
        TableName::Samples,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            TableName::Runs => "runs",
            TableName::Latency => "latency",
            TableName::Series => "series",
            TableName::Readings => "readings",
            TableName::Samples => "samples",
        }
    }

    /// The table of these runs, in their order.
    pub fn of(self, runs: &[(&Execution, &Run)]) -> DataTable {
        match self {
            TableName::Runs => runs::table(runs),
            TableName::Latency => latency::table(runs),
            TableName::Series => series::table(runs),
            TableName::Readings => readings::table(runs),
            TableName::Samples => samples::table(runs),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--table: there is no table `{name}`; {}", suggest::hint(name, TableName::ALL.map(TableName::name)))]
pub struct UnknownTable {
    pub name: String,
}

impl FromStr for TableName {
    type Err = UnknownTable;

    fn from_str(name: &str) -> Result<TableName, UnknownTable> {
        let table = TableName::ALL.into_iter().find(|which| which.name() == name);
        table.ok_or_else(|| UnknownTable { name: name.to_owned() })
    }
}

impl DataTable {
    fn new(
        name: &'static str,
        columns: impl IntoIterator<Item = (String, ColumnKind)>,
    ) -> DataTable {
        let columns = columns.into_iter().map(|(name, kind)| DataColumn { name, kind }).collect();
        DataTable { name, columns, rows: Vec::new() }
    }
}

impl From<f64> for DataCell {
    /// A value that is not finite is null.
    fn from(value: f64) -> DataCell {
        if value.is_finite() { DataCell::Real(value) } else { DataCell::Null }
    }
}

impl From<u64> for DataCell {
    /// Saturates at the maximum of a signed column, as the results file does.
    fn from(value: u64) -> DataCell {
        DataCell::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u32> for DataCell {
    fn from(value: u32) -> DataCell {
        DataCell::Integer(value.into())
    }
}

impl From<bool> for DataCell {
    fn from(value: bool) -> DataCell {
        DataCell::Boolean(value)
    }
}

impl From<&str> for DataCell {
    fn from(value: &str) -> DataCell {
        DataCell::Text(value.to_owned())
    }
}

impl From<String> for DataCell {
    fn from(value: String) -> DataCell {
        DataCell::Text(value)
    }
}

impl<T: Into<DataCell>> From<Option<T>> for DataCell {
    fn from(value: Option<T>) -> DataCell {
        value.map_or(DataCell::Null, Into::into)
    }
}
