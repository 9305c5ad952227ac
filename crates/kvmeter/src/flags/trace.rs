//! The trace that is replayed, and how it is read.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use model::Count;
use study::{ReplaySpeed, TraceReading};
use workload::trace::{TraceFormat, TraceOptions};

use super::name_flag;

/// A trace instead of a workload.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traces")]
pub struct TraceFlags {
    /// Replay this trace instead of a workload: plain, gzip or zstd; `-` is standard input
    #[arg(long = "trace", value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = [
        "preset", "records", "scale", "key_size", "value_size", "mix", "popularity",
        "multi_get", "hit_ratio", "miss_latency"])]
    pub file: Option<PathBuf>,
    /// Speed of the replay relative to the recording, or `max` for a closed loop in its order
    /// [default: 1]
    #[arg(long, value_name = "TIMES", requires = "file", allow_hyphen_values = true)]
    pub speed: Option<ReplaySpeed>,
    /// Issue each request of the trace N times, each time with another key, spread over the time
    /// until the next one [default: 1]
    #[arg(long = "trace-copies", value_name = "N", requires = "file", allow_hyphen_values = true)]
    pub copies: Option<u32>,
    #[command(flatten)]
    pub reading: TraceReadingFlags,
}

/// How the requests of a trace are found in it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traces")]
pub struct TraceReadingFlags {
    #[arg(long = "trace-format", value_name = "FORMAT", requires = "file", help = formats())]
    pub format: Option<String>,
    /// Take only this share of the keys of the trace, each with all of its requests [default: 1]
    #[arg(
        long = "trace-sample",
        value_name = "SHARE",
        requires = "file",
        allow_hyphen_values = true
    )]
    pub sample: Option<f64>,
    /// Leave out so many malformed records of the trace, and count them; one more is an error
    /// [default: 0]
    #[arg(
        long = "trace-skip-bad",
        value_name = "N",
        requires = "file",
        allow_hyphen_values = true
    )]
    pub skip_bad: Option<Count>,
}

fn formats() -> String {
    let names = TraceFormat::ALL.map(TraceFormat::name).join(", ");
    format!("Format of the trace [default: auto, by its content] [possible: auto, {names}]")
}

impl TraceFlags {
    /// How the trace is read.
    pub fn options(&self) -> anyhow::Result<TraceOptions> {
        self.reading.with_copies(self.copies)
    }
}

impl TraceReadingFlags {
    /// How the trace is read, each request once.
    pub fn options(&self) -> anyhow::Result<TraceOptions> {
        self.with_copies(None)
    }

    fn with_copies(&self, copies: Option<u32>) -> anyhow::Result<TraceOptions> {
        let (format, sample, skip_bad) = (self.format.clone(), self.sample, self.skip_bad);
        TraceReading { format, copies, sample, skip_bad }.options().map_err(name_flag)
    }
}
