//! `kvmeter workload describe`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use report::{format, workload as described};
use serde::Serialize;
use workload::describe::{TraceDescription, describe};
use workload::trace::{TraceRecords, TraceTiming};

use crate::cmd::bench::note_header;
use crate::exit::{ExitOutcome, request};
use crate::flags::trace::TraceReadingFlags;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter workload describe cluster26.sort.zst\n  \
    kvmeter workload describe monitor.log --json > workload.json\n  \
    redis-cli monitor | head -1000000 | kvmeter workload describe -\n  \
    kvmeter workload describe large.oracleGeneral.zst --trace-sample 0.1\n\n\
    One pass in bounded memory; every figure says whether it is exact.")]
pub struct DescribeArgs {
    /// The trace: plain, gzip or zstd; `-` is standard input
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    #[command(flatten)]
    pub reading: TraceReadingFlags,
    /// Write the description as JSON
    #[arg(long)]
    pub json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct DescribedTrace<'a> {
    trace: String,
    format: &'static str,
    /// `seconds`, `exact` or `none`.
    times: &'static str,
    records_skipped: u64,
    records_ignored: u64,
    /// The share of the keys that was read.
    sample: f64,
    #[serde(flatten)]
    description: &'a TraceDescription,
}

pub fn run(args: &DescribeArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let options = args.reading.options()?;
    let wrong = |error: workload::trace::TraceError| request(error.to_string());
    let mut records = TraceRecords::open(&args.file, &options).map_err(wrong)?;
    note_header(&args.file, records.header(), show);
    let bar = show.parts(1);
    bar.set_prefix(format!("reading {}", name(&args.file)));
    let description = describe(&mut records, |requests| {
        bar.set_message(format!("{} requests", format::count_short(requests as f64)));
    });
    bar.finish_and_clear();
    let description = description.map_err(wrong)?;
    if description.requests == 0 {
        let share = options.sample;
        return Err(request(format!(
            "{}: no key of the trace is in a sample of {share}; take a larger one",
            args.file.display()
        )));
    }
    let counts = records.counts();
    let (skipped, ignored) = (counts.skipped(), counts.ignored());
    if args.json {
        show.json(&DescribedTrace {
            trace: args.file.display().to_string(),
            format: records.format().name(),
            times: match records.timing() {
                TraceTiming::Seconds => "seconds",
                TraceTiming::Exact => "exact",
                TraceTiming::Untimed => "none",
            },
            records_skipped: skipped,
            records_ignored: ignored,
            sample: options.sample,
            description: &description,
        })?;
        return Ok(ExitOutcome::Done);
    }
    let mut words = described::sentences(&description, records.timing());
    if options.sample < 1.0 {
        let share = format::percent(options.sample);
        words.push(format!("All of this is of {share} of the keys, which --trace-sample chose."));
    }
    if skipped > 0 {
        words.push(format!("{} left out.", records_were(skipped, "malformed record")));
    }
    if ignored > 0 {
        let were = records_were(ignored, "record");
        words.push(format!("{were} passed over: no value is requested in them."));
    }
    show.print(&(words.join("\n") + "\n"))?;
    show.tables(&described::tables(&description, records.timing()))?;
    Ok(ExitOutcome::Done)
}

fn records_were(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what} was"),
        more => format!("{} {what}s were", format::count(more)),
    }
}

fn name(file: &Path) -> String {
    match file.file_name() {
        Some(name) if name != "-" => name.to_string_lossy().into_owned(),
        _ => "standard input".to_owned(),
    }
}
