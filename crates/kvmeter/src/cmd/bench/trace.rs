//! The content of a trace.

use std::path::Path;

use report::format;
use workload::trace::{TraceReader, TraceSummary};

use super::args::BenchArgs;
use crate::exit::{ExitOutcome, request};
use crate::output::Output;

/// Reads the trace, or the part that would be replayed, and summarises its requests.
pub fn describe(file: &Path, args: &BenchArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let most = args.window.given.operations.as_ref().map(|operations| operations.get_ref().0);
    let summary = TraceReader::open(file)
        .and_then(|trace| trace.summary(most))
        .map_err(|error| request(error.to_string()))?;
    note_header(file, summary.header.as_deref(), show);
    if let Some(most) = most.filter(|most| *most > summary.requests) {
        let has = summary.requests;
        show.note(&format!(
            "--ops {most} is beyond the end of the trace, which has {has} requests"
        ));
    }
    match args.json {
        true => show.json(&object(file, &summary))?,
        false => show.print(&table(file, &summary))?,
    }
    Ok(ExitOutcome::Done)
}

/// Notes that the header was skipped.
pub fn note_header(file: &Path, header: Option<&str>, show: &Output) {
    if let Some(header) = header {
        show.note(&format!("{}:1: skipped the header `{header}`", file.display()));
    }
}

fn object(file: &Path, summary: &TraceSummary) -> serde_json::Value {
    let by_op: serde_json::Map<String, serde_json::Value> = summary
        .by_op
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(op, count)| (op.to_string(), (*count).into()))
        .collect();
    serde_json::json!({
        "trace": file.display().to_string(),
        "whole": summary.whole,
        "requests": summary.requests,
        "asked": by_op,
        "read_share": summary.read_share(),
        "distinct_keys": summary.distinct_keys.round(),
        "mean_key_bytes": summary.mean_key_size,
        "mean_value_bytes": summary.mean_value_size,
        "largest_value_bytes": summary.largest_value,
        "duration_s": summary.duration_s,
        "mean_rate_ops_s": summary.mean_rate_s(),
        "peak_rate_ops_s": summary.peak_rate_s,
    })
}

fn table(file: &Path, summary: &TraceSummary) -> String {
    let operations: Vec<String> = summary
        .by_op
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(op, count)| {
            format!("{op} {:.1} %", 100.0 * *count as f64 / summary.requests.max(1) as f64)
        })
        .collect();
    let part = if summary.whole { "" } else { " (the beginning)" };
    let rows = [
        ("trace", format!("{}{part}", file.display())),
        ("requests", format::count_short(summary.requests as f64)),
        ("asked", operations.join(", ")),
        ("distinct keys", format!("about {}", format::count_short(summary.distinct_keys))),
        ("mean key", format::bytes(summary.mean_key_size)),
        ("mean value", format::bytes(summary.mean_value_size)),
        ("largest value", format::bytes(f64::from(summary.largest_value))),
        ("duration", format::seconds(summary.duration_s as f64)),
        ("mean rate", format::rate(summary.mean_rate_s())),
        ("busiest second", format::rate(summary.peak_rate_s as f64)),
    ];
    rows.iter().map(|(name, value)| format!("{name:<16}{value}\n")).collect()
}
