//! `kvmeter workload describe`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};
use report::{format, workload as described};
use serde::Serialize;
use study::open_workload;
use workload::describe::{TraceDescription, describe};
use workload::fit::Resemblance;
use workload::trace::{TraceCounts, TraceOptions, TraceRecords, TraceTiming};

use super::{check, file, results};
use crate::cmd::bench::note_header;
use crate::exit::{ExitOutcome, request};
use crate::flags::trace::TraceReadingFlags;
use crate::output::Output;
use crate::output_files;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter workload describe cluster26.sort.zst\n  \
    kvmeter workload describe monitor.log --json > workload.json\n  \
    redis-cli monitor | head -1000000 | kvmeter workload describe -\n  \
    kvmeter workload describe large.oracleGeneral.zst --trace-sample 0.1\n  \
    kvmeter workload describe cluster26.sort.zst --out mine.toml --check\n  \
    kvmeter workload describe tuesday.sort.zst --check=mine.toml\n  \
    kvmeter workload describe cluster26.sort.zst --html cluster26.html\n  \
    kvmeter workload describe 'results.sqlite?workload=etc'\n\n\
    One pass in bounded memory; every figure says whether it is exact.")]
pub struct DescribeArgs {
    /// The trace: plain, gzip or zstd; `-` is standard input. Or a results file, FILE?key=value,
    /// for the requests of a run
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The run of a results file, by its id or the beginning of it
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    #[command(flatten)]
    pub reading: TraceReadingFlags,
    /// Write a workload that resembles the trace to this file, for --workload FILE
    #[arg(long, short, value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
    /// Generate as many requests from that workload, or from this file, and compare; exit code 1
    /// where they differ
    #[arg(long, value_name = "FILE.toml", num_args = 0..=1, require_equals = true)]
    pub check: Option<Option<PathBuf>>,
    /// Write a page with figures to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
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
    /// What the trace itself says is missing in it.
    requests_lost: u64,
    /// The share of the keys that was read.
    sample: f64,
    #[serde(flatten)]
    description: &'a TraceDescription,
    /// With `--check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<&'a Resemblance>,
}

pub fn run(args: &DescribeArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let options = args.reading.options()?;
    if let Some(path) = &args.out {
        file::check_path(path, &args.file)?;
    }
    if let Some(page) = &args.html {
        output_files::check_output("--html", page, &[&args.file])?;
    }
    let given = match &args.check {
        Some(Some(_)) if args.out.is_some() => {
            return Err(request(
                "--check=FILE compares with that file, and --out writes another one; leave out one \
                 of them, or write --check alone",
            ));
        }
        Some(Some(path)) => Some(open_workload(path)?),
        _ => None,
    };
    let source = match results::is_results(&args.file) {
        true => results::describe_run(args, show)?,
        false => read_trace(args, &options, show)?,
    };
    let (description, timing) = (source.description, source.timing);
    let is_fitted = args.out.is_some() || args.check == Some(None);
    let fitted = is_fitted.then(|| file::fitted(&description, timing, show));
    // The description is shown even where the file cannot be written.
    let written = match (&args.out, &fitted) {
        (Some(path), Some(fitted)) => {
            file::write(path, &name(&args.file), &description, fitted, show)
        }
        _ => Ok(()),
    };
    let checked = given.as_ref().or(fitted.as_ref().map(|fitted| &fitted.file));
    let check = match checked.filter(|_| args.check.is_some()) {
        Some(file) => Some(check::check(&description, timing, file, show)?),
        None => None,
    };
    let ends = match &check {
        Some(check) if !check.holds => ExitOutcome::Invalid,
        _ => ExitOutcome::Done,
    };
    let counts = &source.counts;
    let (skipped, ignored, lost) = (counts.skipped(), counts.ignored(), counts.lost());
    let mut words = source.words;
    words.extend(described::sentences(&description, timing));
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
    if lost > 0 {
        words.push(format!(
            "{} more are missing: the server left them out of its log.",
            format::count(lost)
        ));
    }
    words.extend(check.iter().flat_map(described::check_sentences));
    if let Some(page) = &args.html {
        let title = format!("The workload of {}", name(&args.file));
        let text = described::page(&title, &words, (&description, timing), check.as_ref());
        output_files::write_named("--html", page, text.as_bytes())?;
        show.note(&format!("page     {}", page.display()));
    }
    if args.json {
        show.json(&DescribedTrace {
            trace: args.file.display().to_string(),
            format: source.format,
            times: match timing {
                TraceTiming::Seconds => "seconds",
                TraceTiming::Exact => "exact",
                TraceTiming::Untimed => "none",
            },
            records_skipped: skipped,
            records_ignored: ignored,
            requests_lost: lost,
            sample: options.sample,
            description: &description,
            check: check.as_ref(),
        })?;
        return written.map(|()| ends);
    }
    show.print(&(words.join("\n") + "\n"))?;
    let mut tables = described::tables(&description, timing);
    tables.extend(check.iter().flat_map(described::check_tables));
    show.tables(&tables)?;
    written.map(|()| ends)
}

/// Requests in a description, and where they are from.
pub struct DescribedSource {
    pub description: TraceDescription,
    pub timing: TraceTiming,
    pub format: &'static str,
    /// Records that are no requests in it.
    pub counts: Arc<TraceCounts>,
    /// What is to be said before the description.
    pub words: Vec<String>,
}

fn read_trace(
    args: &DescribeArgs,
    options: &TraceOptions,
    show: &Output,
) -> anyhow::Result<DescribedSource> {
    if args.run.is_some() {
        return Err(request(format!(
            "--run: names a run of a results file, and {} is not one; leave it out",
            name(&args.file)
        )));
    }
    let wrong = |error: workload::trace::TraceError| request(error.to_string());
    let mut records = TraceRecords::open(&args.file, options).map_err(wrong)?;
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
    Ok(DescribedSource {
        description,
        timing: records.timing(),
        format: records.format().name(),
        counts: Arc::clone(records.counts()),
        words: Vec::new(),
    })
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
