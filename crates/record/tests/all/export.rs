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

/// Formats without tables, which need runs with what they write.
fn is_of_runs_alone(format: &str) -> bool {
    ["hlog", "hgrm", "folded", "folded-waits"].contains(&format)
}

#[test]
fn every_format_writes_an_empty_selection() {
    for exporter in EXPORTERS.iter().filter(|exporter| !is_of_runs_alone(exporter.name())) {
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
    let (execution, mut runs) = all();
    runs[1].profile = Some(Box::new(example::profile()));
    for exporter in EXPORTERS {
        let error = export(exporter.name(), None, &[(&execution, &runs[1])], &mut Closed);
        let broken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
        assert!(matches!(&error, Err(ExportError::Write(e)) if broken(e)), "{error:?}");
    }
}

#[test]
fn hdr_histograms_log_is_read_by_its_reader() {
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    let (execution, mut runs) = all();
    runs[1].label = "null, a b".to_owned();
    runs[1].started_at = "2026-01-02T03:04:05Z".to_owned();
    runs[2].started_at = "2026-01-02T03:04:15.500Z".to_owned();
    let pairs: Vec<(&Execution, &Run)> =
        runs[1..].iter().map(|run| (&execution, run)).rev().collect();
    let mut out = Vec::new();
    export("hlog", None, &pairs, &mut out).unwrap();
    let mut read = Vec::new();
    let mut starts = Vec::new();
    for entry in IntervalLogIterator::new(&out) {
        match entry.unwrap() {
            LogEntry::StartTime(at) => starts.push(at.as_secs_f64()),
            LogEntry::BaseTime(_) => panic!("times are relative to the start"),
            LogEntry::Interval(line) => {
                let bytes = base64(line.encoded_histogram());
                let histogram: Histogram<u64> =
                    Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                let tag = line.tag().unwrap().as_str().to_owned();
                assert!((line.max() - histogram.max() as f64 / 1e6).abs() < 1e-3, "{tag}");
                read.push((line.start_timestamp().as_secs_f64(), tag, histogram));
            }
        }
    }
    assert_eq!(starts, [1_767_323_045.0]);
    let kept: Vec<_> = runs[1..].iter().flat_map(|run| run.latencies.iter()).collect();
    assert_eq!(read.len(), kept.len());
    for ((_, tag, histogram), latency) in read.iter().zip(kept) {
        assert_eq!(*histogram, latency.histogram.histogram(), "{tag}");
    }
    assert!(read[0].1.starts_with("null__a_b/"), "{}", read[0].1);
    assert_eq!((read[0].0, read.last().unwrap().0), (0.0, 10.5));
}

/// The bytes of a base64 text with padding.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut word) = (Vec::new(), 0, 0_u32);
    for digit in text.bytes().filter(|byte| *byte != b'=') {
        word = word << 6 | DIGITS.iter().position(|own| *own == digit).unwrap() as u32;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    bytes
}

#[test]
fn hdr_histograms_percentiles_are_those_of_the_run() {
    let (execution, runs) = all();
    let run = &runs[1];
    let mut out = Vec::new();
    export("hgrm", None, &[(&execution, run)], &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(2)
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
        .collect();
    let all = run.latency_of_all(run.clock()).unwrap();
    let last = rows.last().unwrap();
    assert_eq!((last[1], last[2], last.len()), (1.0, all.count() as f64, 3));
    assert!((last[0] - all.max() as f64 / 1e6).abs() <= last[0] * 1e-3);
    for row in &rows {
        let value = all.value_at_percentile(row[1] * 100.0) as f64 / 1e6;
        assert!((row[0] - value).abs() <= value * 2e-3 + 1e-6, "{row:?}: {value}");
    }
    assert!(rows.is_sorted_by(|a, b| a[0] <= b[0] && a[2] <= b[2]));
    assert!(text.contains("#[Mean") && text.contains("#[Max") && text.contains("#[Buckets"));
}

#[test]
fn percentiles_are_of_one_configuration() {
    let (execution, mut runs) = all();
    runs[1].label = "one".to_owned();
    runs[2] =
        Run { settings: runs[1].settings.clone(), label: "one".to_owned(), ..runs[2].clone() };
    runs[2].settings.insert("repeat".to_owned(), "7".to_owned());
    let export_both = |runs: &[Run]| {
        let pairs: Vec<_> = runs[1..].iter().map(|run| (&execution, run)).collect();
        export("hgrm", None, &pairs, &mut Vec::new()).map_err(|error| error.to_string())
    };
    export_both(&runs).unwrap();
    runs[2].settings.insert("rate".to_owned(), "31k".to_owned());
    let error = export_both(&runs).unwrap_err();
    assert!(error.contains("rate") && error.contains("hlog"), "{error}");
    for format in ["hgrm", "hlog"] {
        let error = export(format, Some(TableName::Runs), &[], &mut Vec::new()).unwrap_err();
        assert!(matches!(error, ExportError::NoTables(_)), "{error}");
    }
    export("hgrm", None, &[], &mut Vec::new()).unwrap_err();
    export("hlog", None, &[], &mut Vec::new()).unwrap();
}
