//! HdrHistogram's log: one line a run, kind of operation and clock, with its whole distribution. Its
//! own tools read it: HistogramLogAnalyzer, HistogramLogProcessor, hdr-plot. Values are nanoseconds;
//! the column of maxima is in milliseconds, as those tools have it.

use std::io::Write;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use jiff::Timestamp;
use model::{Execution, LatencyClock, Run, RunLatency};

use super::{ExportError, Exporter};
use crate::table::DataTable;

pub(super) struct HistogramLog;

const NS_OF_MS: f64 = 1e6;

impl Exporter for HistogramLog {
    fn name(&self) -> &'static str {
        "hlog"
    }

    fn about(&self) -> &'static str {
        "HdrHistogram's log, for its own tools"
    }

    fn table(&self, _: &DataTable, _: &mut dyn Write) -> Result<(), ExportError> {
        Err(ExportError::NoTables(self.name()))
    }

    fn runs(&self, runs: &[(&Execution, &Run)], out: &mut dyn Write) -> Result<(), ExportError> {
        let mut sorted: Vec<(SystemTime, &Run)> = Vec::with_capacity(runs.len());
        for (_, run) in runs {
            sorted.push((started(run)?, run));
        }
        sorted.sort_by_key(|(at, _)| *at);
        let first = sorted.first().map_or(SystemTime::UNIX_EPOCH, |(at, _)| *at);
        let mut serializer = V2DeflateSerializer::new();
        let mut writer = Vec::new();
        let mut log = IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment(
                "Values in nanoseconds, maxima in milliseconds. Tags: label/operation/clock",
            )
            .with_start_time(first)
            .with_max_value_divisor(NS_OF_MS)
            .begin_log_with(&mut writer, &mut serializer)?;
        for (at, run) in sorted {
            let begin = at.duration_since(first).unwrap_or_default();
            let length = Duration::try_from_secs_f64(run.seconds).unwrap_or_default();
            for latency in run.latencies.iter().filter(|latency| !latency.histogram.is_empty()) {
                let tag = tag(run, latency);
                log.write_histogram(&latency.histogram.histogram(), begin, length, Tag::new(&tag))
                    .map_err(|error| ExportError::Encode(error.to_string()))?;
            }
        }
        Ok(out.write_all(&writer)?)
    }
}

fn started(run: &Run) -> Result<SystemTime, ExportError> {
    let at: Timestamp = run.started_at.parse().map_err(|error| {
        ExportError::Encode(format!("run {}: started_at `{}`: {error}", run.id, run.started_at))
    })?;
    Ok(at.into())
}

/// Names the line; a tag has neither commas nor spaces.
fn tag(run: &Run, latency: &RunLatency) -> String {
    let clock = match latency.clock {
        LatencyClock::Service => "service",
        LatencyClock::Response => "response",
        LatencyClock::Arrival => "arrival",
        LatencyClock::Server => "server",
    };
    let label = model::text::line(&run.label);
    let plain = |c: char| if c == ',' || c.is_whitespace() { '_' } else { c };
    let label: String = label.chars().map(plain).collect();
    format!("{label}/{}/{clock}", latency.op.name())
}
