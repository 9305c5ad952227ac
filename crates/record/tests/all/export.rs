use model::{Execution, Run};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use record::export::{EXPORTERS, ExportError, export};
use record::table::{ColumnKind, DataCell, DataTable, TableName};
use serde_json::Value;

use crate::example;

fn all() -> (Execution, Vec<Run>) {
    let runs = vec![example::bare_run("e", 0), example::run("e", 1), example::run("e", 2)];
    (example::execution("e"), runs)
}

fn written(format: &str, table: Option<TableName>) -> Vec<u8> {
    let (execution, runs) = all();
    let pairs: Vec<(&Execution, &Run)> = runs.iter().map(|run| (&execution, run)).collect();
    let mut out = Vec::new();
    export(format, table, &pairs, &mut out).unwrap();
    out
}

fn table(which: TableName) -> DataTable {
    let (execution, runs) = all();
    let pairs: Vec<(&Execution, &Run)> = runs.iter().map(|run| (&execution, run)).collect();
    which.of(&pairs)
}

#[test]
fn every_table_is_rectangular_and_of_its_types() {
    for which in TableName::ALL {
        let table = table(which);
        assert_eq!(table.name, which.name());
        assert!(!table.rows.is_empty());
        for row in &table.rows {
            assert_eq!(row.len(), table.columns.len());
            for (cell, column) in row.iter().zip(&table.columns) {
                let fits = match cell {
                    DataCell::Null => true,
                    DataCell::Text(_) => column.kind == ColumnKind::Text,
                    DataCell::Integer(_) => column.kind == ColumnKind::Integer,
                    DataCell::Real(value) => column.kind == ColumnKind::Real && value.is_finite(),
                    DataCell::Boolean(_) => column.kind == ColumnKind::Boolean,
                };
                assert!(fits, "{which}.{}: {cell:?}", column.name);
            }
        }
    }
}

/// The cell as CSV has it.
fn text(cell: &DataCell) -> String {
    match cell {
        DataCell::Null => String::new(),
        DataCell::Text(text) => text.clone(),
        DataCell::Integer(value) => value.to_string(),
        DataCell::Real(value) => value.to_string(),
        DataCell::Boolean(value) => value.to_string(),
    }
}

#[test]
fn csv_reads_back_as_every_table() {
    for which in TableName::ALL {
        let (bytes, table) = (written("csv", Some(which)), table(which));
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(reader.headers().unwrap(), names);
        let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(records.len(), table.rows.len());
        for (record, row) in records.iter().zip(&table.rows) {
            assert!(record.iter().eq(row.iter().map(text).collect::<Vec<_>>()), "{record:?}");
        }
    }
    assert_eq!(written("csv", None), written("csv", Some(TableName::Latency)));
}

#[test]
fn csv_columns_are_documented() {
    let bytes = written("csv", None);
    let header = std::str::from_utf8(&bytes).unwrap().lines().next().unwrap().to_owned();
    let fixed = "run,execution,study,machine,label,phase,store,store_version,workload,operation,\
        clock,count,mean_us,min_us,p50_us,p90_us,p95_us,p99_us,p99_9_us,p99_99_us,max_us,threads,\
        loop,target_rate_ops_s,arrivals,think_s,started_at,seconds,operations,throughput_ops_s,\
        achieved_rate_ops_s,hit_ratio,cpu_s_per_mop,ops_per_joule,joules_per_op,\
        joules_per_op_net,energy_boundary,energy_origin,ipc,verified,misses,errors,valid,\
        invalid_because,warnings,harness_ns_per_op,harness_clock_ns,harness_verify_ns,\
        harness_busy";
    let settings = ",setting.repeat,setting.store,setting.store.path,setting.threads,\
        setting.workload";
    assert_eq!(header, format!("{fixed}{settings}"));
    let documented = include_str!("../../../../docs/results-file.md");
    for column in fixed.split(',') {
        assert!(documented.contains(&format!("`{column}`")), "{column} is not in the docs");
    }
}

fn parquet_cell(field: &Field) -> DataCell {
    match field {
        Field::Null => DataCell::Null,
        Field::Str(text) => DataCell::Text(text.clone()),
        Field::Long(value) => DataCell::Integer(*value),
        Field::Double(value) => DataCell::Real(*value),
        Field::Bool(value) => DataCell::Boolean(*value),
        other => panic!("{other:?}"),
    }
}

#[test]
fn parquet_reads_back_as_every_table() {
    for which in TableName::ALL {
        let table = table(which);
        let bytes = written("parquet", Some(which));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.parquet");
        std::fs::write(&path, bytes).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let rows: Vec<Row> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), table.rows.len());
        for (row, expected) in rows.iter().zip(&table.rows) {
            for (((name, field), cell), column) in
                row.get_column_iter().zip(expected).zip(&table.columns)
            {
                assert_eq!(name, &column.name);
                assert_eq!(&parquet_cell(field), cell, "{which}.{name}");
            }
        }
    }
}

#[test]
fn json_is_the_summaries_or_a_table() {
    let (execution, runs) = all();
    let summaries: Value = serde_json::from_slice(&written("json", None)).unwrap();
    let expected: Vec<Value> = runs.iter().map(|run| record::summary(run, &execution)).collect();
    assert_eq!(summaries, Value::Array(expected));

    for which in TableName::ALL {
        let rows: Vec<serde_json::Map<String, Value>> =
            serde_json::from_slice(&written("json", Some(which))).unwrap();
        let table = table(which);
        assert_eq!(rows.len(), table.rows.len());
        assert!(rows.iter().all(|row| row.len() == table.columns.len()));
    }
    let runs: Value = serde_json::from_slice(&written("json", Some(TableName::Runs))).unwrap();
    assert_eq!(runs[1]["throughput_ops_s"], 40_000.4);
    assert_eq!(runs[1]["valid"], false);
    assert_eq!(runs[0]["cpu_s_per_mop"], Value::Null);
}

#[test]
fn markdown_shows_figures_and_remarks() {
    let text = String::from_utf8(written("markdown", None)).unwrap();
    let expected = "\
### quickstart

RocksDB 11.8.1 · EPYC \\| 7B13 · kvmeter 0.1.0 · 2026-01-02T03:04:05Z

| run | repeat | operation | throughput, ops/s | hit ratio | mean, µs | p50, µs | p99, µs | p99.9, µs | CPU-s/Mop | errors | valid |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| rocksdb load | – | – | 40,000 | – | – | – | – | – | – | 0 | yes |
| rocksdb ycsb-a | 1 | update | 40,000 | 0.875 | ";
    assert!(text.starts_with(expected), "{text}");
    // Two runs of one label with two operations each, by the clock of their loop.
    assert_eq!(text.matches("| 3.25 | 7 | **no** |").count(), 4, "{text}");
    assert!(text.contains("counts from the instant at which a request was due"), "{text}");
    assert_eq!(text.matches("(invalid): the client was 97 % busy").count(), 1, "{text}");
    assert!(text.contains("(note): 0.3 % of the CPU time was stolen"), "{text}");

    for which in TableName::ALL {
        let text = String::from_utf8(written("markdown", Some(which))).unwrap();
        let table = table(which);
        assert_eq!(text.lines().count(), table.rows.len() + 2);
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        assert!(text.lines().all(|line| bars(line) == table.columns.len() + 1), "{text}");
    }
}

#[test]
fn every_format_writes_an_empty_selection() {
    for exporter in EXPORTERS {
        for table in [None, Some(TableName::Runs), Some(TableName::Series)] {
            export(exporter.name(), table, &[], &mut Vec::new()).unwrap();
        }
        assert!(!exporter.about().is_empty());
    }
}

#[test]
fn an_unknown_name_suggests_the_nearest() {
    let error = export("parket", None, &[], &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("--format") && error.contains("`parquet`"), "{error}");
    let error = "serie".parse::<TableName>().unwrap_err().to_string();
    assert!(error.contains("--table") && error.contains("`series`"), "{error}");
}

#[test]
fn a_closed_reader_is_a_broken_pipe() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (execution, runs) = all();
    for exporter in EXPORTERS {
        let error = export(exporter.name(), None, &[(&execution, &runs[1])], &mut Closed);
        let broken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
        assert!(matches!(&error, Err(ExportError::Write(e)) if broken(e)), "{error:?}");
    }
}
