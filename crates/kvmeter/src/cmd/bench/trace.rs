//! The content of a trace.

use std::path::Path;

use report::format;
use serde_json::Value;
use workload::trace::{TraceReader, TraceSummary, TraceTiming};

use super::args::BenchArgs;
use crate::exit::{ExitOutcome, request};
use crate::output::Output;

/// Reads the trace, or the part that would be replayed, and summarises its requests.
pub fn describe(file: &Path, args: &BenchArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let most = args.window.given.operations.as_ref().map(|operations| operations.get_ref().0);
    let summary = TraceReader::with(file, &args.trace.options()?)
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

fn object(file: &Path, summary: &TraceSummary) -> Value {
    let by_op: serde_json::Map<String, Value> = summary
        .by_op
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(op, count)| (op.to_string(), (*count).into()))
        .collect();
    let sizes = summary.largest_value > 0;
    let duration = match summary.timing {
        TraceTiming::Seconds => summary.duration_s.map(|seconds| Value::from(seconds as u64)),
        TraceTiming::Exact | TraceTiming::Untimed => summary.duration_s.map(Value::from),
    };
    serde_json::json!({
        "trace": file.display().to_string(),
        "format": summary.format.name(),
        "times": match summary.timing {
            TraceTiming::Seconds => "seconds",
            TraceTiming::Exact => "exact",
            TraceTiming::Untimed => "none",
        },
        "records_skipped": summary.skipped,
        "records_ignored": summary.ignored,
        "whole": summary.whole,
        "requests": summary.requests,
        "asked": by_op,
        "read_share": summary.read_share(),
        "distinct_keys": summary.distinct_keys.round(),
        "mean_key_bytes": summary.mean_key_size,
        "mean_value_bytes": sizes.then_some(summary.mean_value_size),
        "largest_value_bytes": sizes.then_some(summary.largest_value),
        "duration_s": duration,
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
    let unknown = || format!("unknown: {} has no times", summary.format);
    let rate = |known: Option<f64>| match (known, summary.timing) {
        (Some(rate), _) => format::rate(rate),
        (None, TraceTiming::Untimed) => unknown(),
        (None, _) => "unknown: all requests have the same time".to_owned(),
    };
    let size = |bytes: f64| match summary.largest_value {
        0 => "unknown: no size of a value is in it".to_owned(),
        _ => format::bytes(bytes),
    };
    let mut rows = vec![
        ("trace", format!("{}{part}", file.display())),
        ("format", summary.format.to_string()),
        ("requests", format::count_short(summary.requests as f64)),
        ("asked", operations.join(", ")),
        ("distinct keys", format!("about {}", format::count_short(summary.distinct_keys))),
        ("mean key", format::bytes(summary.mean_key_size)),
        ("mean value", size(summary.mean_value_size)),
        ("largest value", size(f64::from(summary.largest_value))),
        ("duration", summary.duration_s.map_or_else(unknown, format::seconds)),
        ("mean rate", rate(summary.mean_rate_s())),
        ("busiest second", rate(summary.peak_rate_s.map(|requests| requests as f64))),
    ];
    if summary.skipped > 0 {
        rows.push(("malformed", format!("{} records, left out", summary.skipped)));
    }
    if summary.ignored > 0 {
        rows.push(("other records", format!("{}, which request no value", summary.ignored)));
    }
    rows.iter().map(|(name, value)| format!("{name:<16}{value}\n")).collect()
}
