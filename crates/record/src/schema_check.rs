//! Whether the tables of a file are tables. A view or a computed column could produce unbounded
//! rows and bytes when it is read.

use std::path::Path;

use rusqlite::Connection;

use crate::error::RecordError;

/// The tables of the schema.
const TABLES: [&str; 26] = [
    "design",
    "execution",
    "fact",
    "failure",
    "harness",
    "kernel_bucket",
    "kernel_histogram",
    "kernel_missing",
    "latency",
    "note",
    "planned",
    "planned_setting",
    "profile",
    "reading",
    "remark",
    "run",
    "sample",
    "sampled",
    "series",
    "setting",
    "slot_event",
    "slot_share",
    "stack",
    "stream",
    "tcp",
    "top_down",
];

/// Refuses views, virtual tables and computed columns; where the file will be written to
/// (`changed`), also triggers.
pub(crate) fn check(path: &Path, sql: &Connection, changed: bool) -> Result<(), RecordError> {
    let failed = |error| RecordError::sqlite(path, error);
    let damaged = |detail| RecordError::Damaged { path: path.to_owned(), detail };
    let mut objects =
        sql.prepare("SELECT type, name, coalesce(sql, '') FROM sqlite_master").map_err(failed)?;
    let mut rows = objects.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let text = |at| row.get::<_, String>(at).map_err(failed);
        let (kind, name, made) = (text(0)?, text(1)?, text(2)?.to_ascii_uppercase());
        let ours = TABLES.iter().any(|known| name.eq_ignore_ascii_case(known));
        if kind == "trigger" && changed {
            return Err(damaged(format!("it has a trigger `{name}`, which no results file has")));
        }
        if !ours || kind == "index" || kind == "trigger" {
            continue;
        }
        if kind != "table" || made.starts_with("CREATE VIRTUAL") {
            return Err(damaged(format!("`{name}` is a view and not a table")));
        }
        let computed: i64 = sql
            .query_row(
                "SELECT count(*) FROM pragma_table_xinfo(?1) WHERE hidden <> 0",
                [&name],
                |row| row.get(0),
            )
            .map_err(failed)?;
        if computed > 0 {
            return Err(damaged(format!("columns of `{name}` are computed and not stored")));
        }
    }
    Ok(())
}
