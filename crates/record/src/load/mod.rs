//! Reading: the tables back into executions and runs. A value that does not match the schema is an
//! error that names the table, the column and the run.

mod execution;
mod heads;
mod repeats;
mod runs;

pub(crate) use execution::executions;
pub(crate) use heads::{RunHead, heads};
pub(crate) use runs::runs;

use std::path::Path;

use model::ReadingValue;
use rusqlite::{Connection, Row, RowIndex, Statement};

use crate::error::RecordError;

/// Runs one query and collects its rows; `table` is for the message.
pub(crate) fn rows<T>(
    sql: &Connection,
    path: &Path,
    table: &str,
    query: &str,
    mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, RecordError> {
    let failed = |error| RecordError::sqlite(path, error);
    let mut statement = sql.prepare(query).map_err(failed)?;
    let names = names(&statement);
    let mut rows = statement.query([]).map_err(failed)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        found.push(
            read(row)
                .map_err(|error| row_error(path, &format!("table `{table}`"), &names, error))?,
        );
    }
    Ok(found)
}

fn names(statement: &Statement<'_>) -> Vec<String> {
    statement.column_names().map(str::to_owned).collect()
}

/// The text of a column, not copied.
fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a str> {
    let value = row.get_ref(column)?;
    value
        .as_str()
        .map_err(|_| rusqlite::Error::InvalidColumnType(column, String::new(), value.data_type()))
}

/// A number in column `at`, or the reason and the remedy in the two after it.
fn reading_value(row: &Row<'_>, at: usize) -> rusqlite::Result<ReadingValue> {
    Ok(match row.get(at)? {
        Some(value) => ReadingValue::Value(value),
        None => ReadingValue::Unavailable { reason: row.get(at + 1)?, remedy: row.get(at + 2)? },
    })
}

/// SQLite has no NaN: it stores one as NULL.
fn real(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<f64> {
    Ok(row.get::<_, Option<f64>>(column)?.unwrap_or(f64::NAN))
}

fn damaged(path: &Path, detail: impl ToString) -> RecordError {
    RecordError::Damaged { path: path.to_owned(), detail: detail.to_string() }
}

/// An error for a value of the wrong type, with its place.
fn row_error(path: &Path, place: &str, columns: &[String], error: rusqlite::Error) -> RecordError {
    let column = |index: usize| columns.get(index).map_or("", String::as_str);
    let detail = match &error {
        rusqlite::Error::InvalidColumnType(index, _, found) => {
            format!("column `{}` holds {}", column(*index), type_name(*found))
        }
        rusqlite::Error::IntegralValueOutOfRange(index, value) => {
            format!("column `{}` holds {value}", column(*index))
        }
        rusqlite::Error::Utf8Error(index, why) => format!("column `{}`: {why}", column(*index)),
        rusqlite::Error::FromSqlConversionFailure(index, _, why) => {
            format!("column `{}`: {why}", column(*index))
        }
        _ => return RecordError::sqlite(path, error),
    };
    damaged(path, format!("{place}: {detail}"))
}

fn type_name(found: rusqlite::types::Type) -> &'static str {
    match found {
        rusqlite::types::Type::Null => "nothing",
        rusqlite::types::Type::Integer => "a whole number",
        rusqlite::types::Type::Real => "a fraction",
        rusqlite::types::Type::Text => "text",
        rusqlite::types::Type::Blob => "bytes",
    }
}
