//! Results files that strangers prepared: whatever stands in any column is an error that names
//! the place, or is shown as what it is; never a panic, and nothing that steers a terminal or
//! becomes markup.

// Helpers of tests panic as tests do.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, unused_imports)]
mod sample;

use std::fs;
use std::path::Path;

use model::text::is_control;
use record::{RecordError, ResultsFile, RunSelection};
use report::Style;
use rusqlite::Connection;

/// What is put into every column, as SQL.
const VALUES: [&str; 13] = [
    "NULL",
    "-1",
    "9223372036854775807",
    "1e308",
    "9e999",
    "-9e999",
    "5e-324",
    "'<script>alert(1)</script>'",
    "char(27) || ']0;x' || char(7) || char(155) || char(8238)",
    "'a' || char(0) || 'b'",
    "'=1+1'",
    "x'00ff1b'",
    "CAST(x'fffe1b' AS TEXT)",
];

/// A results file with one run of each kind.
fn results(path: &Path) {
    let mut study = sample::study();
    let (execution, runs) = &mut study[0];
    let mut file = ResultsFile::create(path).unwrap();
    file.begin(execution).unwrap();
    // One in a closed loop, one in an open loop, one that does not count.
    let open = runs.iter().position(|run| run.target_rate().is_some()).unwrap();
    let invalid = runs.iter().position(|run| !run.valid()).unwrap();
    for place in [0, open, invalid] {
        let run = &mut runs[place];
        run.series.truncate(4);
        run.readings.truncate(8);
        run.latencies = run.latencies.iter().take(2).cloned().collect();
        run.failures = vec![model::Failures {
            kind: "torn".to_owned(),
            count: 2,
            first: "a first one".to_owned(),
        }];
        file.write_run(run).unwrap();
    }
    file.note(&execution.id, "a note").unwrap();
}

/// All that is made of a results file, as text; or why it is none.
fn everything(path: &Path) -> Result<(String, String, Vec<u8>), RecordError> {
    let selection = RunSelection::open(path.to_str().unwrap())?;
    let pairs = selection.pairs();
    let mut terminal = report::terminal::runs(&pairs, &Style::default());
    let studies = report::study::studies(&selection.executions, &pairs);
    for study in &studies {
        terminal += &report::terminal::study(study, &Style::default());
        terminal += &report::markdown::study(study, None);
        study.files().iter().for_each(|file| terminal += &file.csv);
    }
    terminal += &report::markdown::runs(&pairs);
    let runs: Vec<_> = pairs.iter().map(|(_, run)| *run).collect();
    let _ = analyse::compare(&runs, &runs);
    let mut exports = Vec::new();
    for format in ["csv", "markdown", "json"] {
        record::export::export(format, None, &pairs, &mut exports).unwrap();
        for table in record::table::TableName::ALL {
            record::export::export(format, Some(table), &pairs, &mut exports).unwrap();
        }
    }
    let mut raw = Vec::new();
    record::export::export("parquet", None, &pairs, &mut raw).unwrap();
    Ok((terminal, report::html::page(&selection.by_execution()), exports))
}

#[test]
fn any_value_in_any_column_is_handled() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (folder.path().join("good.sqlite"), folder.path().join("bad.sqlite"));
    results(&good);
    everything(&good).unwrap();
    let columns: Vec<(String, String)> = Connection::open(&good)
        .unwrap()
        .prepare(
            "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c
             WHERE m.type = 'table' ORDER BY 1, c.cid",
        )
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(columns.len() > 80, "{columns:?}");
    let (mut refused, mut shown) = (0, 0);
    for (table, column) in &columns {
        for value in VALUES {
            fs::copy(&good, &bad).unwrap();
            let sql = Connection::open(&bad).unwrap();
            sql.execute_batch(
                "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;
                 PRAGMA ignore_check_constraints = ON",
            )
            .unwrap();
            let change = format!("UPDATE OR IGNORE {table} SET {column} = {value}");
            // What the schema itself refuses is in no file.
            if sql.execute(&change, []).unwrap_or(0) == 0 {
                continue;
            }
            drop(sql);
            match everything(&bad) {
                Err(error) => {
                    let words = error.to_string();
                    assert!(words.contains("bad.sqlite"), "{change}: {words}");
                    assert!(!words.contains("at index"), "{change}: {words}");
                    refused += 1;
                }
                Ok((terminal, page, exports)) => {
                    let exports = String::from_utf8_lossy(&exports);
                    for text in [&terminal, &page, exports.as_ref()] {
                        let control =
                            text.chars().find(|c| *c != '\n' && *c != '\t' && is_control(*c));
                        assert_eq!(control, None, "{change}");
                    }
                    assert!(!page.contains("<script>alert"), "{change}");
                    assert!(!exports.contains(",=1+1"), "{change}");
                    shown += 1;
                }
            }
        }
    }
    assert!(refused > 100 && shown > 100, "{refused} refused, {shown} shown");
}

/// Tables that are none would give as many rows as whoever wrote them wants.
#[test]
fn refuses_views_and_computed_columns() {
    for change in [
        "ALTER TABLE note RENAME TO was; CREATE VIEW note AS WITH RECURSIVE n (i) AS
           (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 1 AS execution_key, i AS position,
           'x' AS text FROM n",
        "ALTER TABLE note ADD COLUMN endless TEXT AS (printf('%.*c', 100000000, 'x'))",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.sqlite");
        results(&path);
        Connection::open(&path).unwrap().execute_batch(change).unwrap();
        for error in [ResultsFile::read(&path).unwrap_err(), ResultsFile::open(&path).unwrap_err()]
        {
            assert!(
                matches!(&error, RecordError::Damaged { detail, .. } if detail.contains("note")),
                "{error}"
            );
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.sqlite");
    results(&path);
    let trigger = "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM latency; END";
    Connection::open(&path).unwrap().execute_batch(trigger).unwrap();
    assert!(ResultsFile::read(&path).is_ok(), "reading runs no trigger");
    assert!(ResultsFile::open(&path).unwrap_err().to_string().contains("trigger"));
}
