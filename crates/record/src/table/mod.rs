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

use model::suggest;

use crate::run::{Execution, Run};

/// The type of a column. Every column may have cells without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Integer,
    Real,
    Boolean,
}

/// Its unit, where it has one, is the end of its name: `seconds`, `throughput_ops_s`, `p99_us`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
}

/// `Null` or a value of its column's kind; a `Real` is finite.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Text(String),
    Integer(i64),
    Real(f64),
    Boolean(bool),
}

/// Rows are as long as `columns`.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub name: &'static str,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
}

/// Which table of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// One row a run.
    Runs,
    /// One row a run, operation and clock, with the run's own columns beside.
    Latency,
    /// One row a run, interval and operation.
    Series,
    /// One row a run and reading.
    Readings,
    /// One row a run, sampled signal and sample.
    Samples,
}

impl Which {
    pub const ALL: [Which; 5] =
        [Which::Runs, Which::Latency, Which::Series, Which::Readings, Which::Samples];

    pub const fn name(self) -> &'static str {
        match self {
            Which::Runs => "runs",
            Which::Latency => "latency",
            Which::Series => "series",
            Which::Readings => "readings",
            Which::Samples => "samples",
        }
    }

    /// The table of these runs, in their order.
    pub fn of(self, runs: &[(&Execution, &Run)]) -> Table {
        match self {
            Which::Runs => runs::table(runs),
            Which::Latency => latency::table(runs),
            Which::Series => series::table(runs),
            Which::Readings => readings::table(runs),
            Which::Samples => samples::table(runs),
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--table: there is no table `{name}`; {}", suggest::hint(name, Which::ALL.map(Which::name)))]
pub struct UnknownTable {
    pub name: String,
}

impl FromStr for Which {
    type Err = UnknownTable;

    fn from_str(name: &str) -> Result<Which, UnknownTable> {
        let found = Which::ALL.into_iter().find(|which| which.name() == name);
        found.ok_or_else(|| UnknownTable { name: name.to_owned() })
    }
}

impl Table {
    fn new(name: &'static str, columns: impl IntoIterator<Item = (String, Kind)>) -> Table {
        let columns = columns.into_iter().map(|(name, kind)| Column { name, kind }).collect();
        Table { name, columns, rows: Vec::new() }
    }
}

impl From<f64> for Cell {
    /// What is not a number is not there.
    fn from(value: f64) -> Cell {
        if value.is_finite() { Cell::Real(value) } else { Cell::Null }
    }
}

impl From<u64> for Cell {
    /// Counts end where a signed column does; the results file keeps no larger ones either.
    fn from(value: u64) -> Cell {
        Cell::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Cell {
        Cell::Integer(value.into())
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell::Boolean(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Cell {
        Cell::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Cell {
        Cell::Text(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, Into::into)
    }
}
