//! What a person sees who opens the file with any SQLite.

use model::Run;
use record::ResultsFile;
use record::table::{DataCell, TableName};
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::example;

fn cell(value: Value, like: &DataCell) -> DataCell {
    match (value, like) {
        (Value::Null, _) => DataCell::Null,
        (Value::Integer(bit), DataCell::Boolean(_)) => DataCell::Boolean(bit == 1),
        (Value::Integer(value), _) => DataCell::Integer(value),
        (Value::Real(value), _) => DataCell::Real(value),
        (Value::Text(text), _) => DataCell::Text(text),
        (Value::Blob(_), _) => panic!("a view shows no bytes"),
    }
}

/// Each view has the columns of the table of that name, in the same order and with the same
/// values; the exported ones go on with a run's settings.
#[test]
fn views_and_exported_tables_agree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.sqlite");
    let execution = example::execution("e");
    let runs = [example::run("e", 0), example::bare_run("e", 1)];
    let mut file = ResultsFile::create(&path).unwrap();
    file.begin(&execution).unwrap();
    runs.iter().for_each(|run| file.write_run(run).unwrap());
    drop(file);
    let pairs: Vec<(_, &Run)> = runs.iter().map(|run| (&execution, run)).collect();

    let sql = Connection::open(&path).unwrap();
    for (view, which) in [
        ("run_summary", TableName::Runs),
        ("latency_summary", TableName::Latency),
        ("series_summary", TableName::Series),
        ("reading_summary", TableName::Readings),
        ("sample_summary", TableName::Samples),
    ] {
        let mut table = which.of(&pairs);
        if which == TableName::Latency {
            // A run without latencies has a row in the export only.
            let count = table.columns.iter().position(|c| c.name == "count").unwrap();
            table.rows.retain(|row| row[count] != DataCell::Null);
        }
        let mut statement = sql.prepare(&format!("SELECT * FROM {view}")).unwrap();
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let exported = table.columns.iter().map(|column| &column.name);
        assert!(exported.take(names.len()).eq(&names), "{view}");
        let mut result = statement.query([]).unwrap();
        let mut rows = 0;
        while let Some(row) = result.next().unwrap() {
            for (index, expected) in table.rows[rows][..names.len()].iter().enumerate() {
                let value = cell(row.get(index).unwrap(), expected);
                assert_eq!(&value, expected, "{view}.{}", names[index]);
            }
            rows += 1;
        }
        assert_eq!(rows, table.rows.len(), "{view}");
        assert!(rows > 0);
    }
}

#[test]
fn the_histogram_is_hdr_v2_deflated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.sqlite");
    let mut file = ResultsFile::create(&path).unwrap();
    file.begin(&example::execution("e")).unwrap();
    file.write_run(&example::run("e", 0)).unwrap();
    let sql = Connection::open(&path).unwrap();
    let blob: Vec<u8> =
        sql.query_row("SELECT histogram FROM latency", [], |row| row.get(0)).unwrap();
    // The cookie of the compressed V2 format, then the length, then a zlib stream.
    assert_eq!(blob[..4], 0x1c84_9314u32.to_be_bytes());
    assert_eq!(u32::from_be_bytes(blob[4..8].try_into().unwrap()) as usize, blob.len() - 8);
    assert_eq!(blob[8] & 0x0f, 8);
}
