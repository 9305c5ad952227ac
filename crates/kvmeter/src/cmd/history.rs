//! `kvmeter history FILES...`: where a metric changed over many results.

use std::collections::BTreeSet;
use std::path::PathBuf;

use analyse::Metric;
use clap::{Args, ValueHint};
use model::suggest::hint;
use record::RunSelection;
use report::history::{HistoryRun, history, object, page, sentences, tables};

use crate::exit::{ExitOutcome, request};
use crate::metric_names;
use crate::output::Output;
use crate::output_files;

/// Metrics without `--metric`.
const USUAL: [&str; 2] = ["throughput_ops_s", "latency_us.p99"];

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter history results-*.sqlite\n  \
    kvmeter history all.sqlite --metric latency_us.read.p99 --html history.html\n  \
    kvmeter history 'nightly-*.sqlite?store=spill' --across store.cache\n\n\
    A result is the median of a cell's repeats in one execution; results are ordered by their\n\
    time. A change is shown where chance gives one as great in at most 1 of 100 series\n\
    (E-divisive means, by permutation). It takes 10 results or more.")]
pub struct HistoryArgs {
    /// Results: FILE or FILE?key=value&...; a file may hold several
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<String>,
    /// A metric, by its name in `report --json`; may be repeated [default: throughput_ops_s and
    /// latency_us.p99]
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Settings that may change within a series, besides the store's version
    #[arg(long, value_name = "SETTING,...", value_delimiter = ',')]
    pub across: Vec<String>,
    /// Write a page with figures here
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &HistoryArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let metrics = metrics(args)?;
    if let Some(html) = &args.html {
        output_files::check_output("--html", html, &[])?;
    }
    let selections: Vec<RunSelection> =
        args.files.iter().map(|file| RunSelection::open(file)).collect::<Result<_, _>>()?;
    let mut runs = Vec::new();
    for selection in &selections {
        let name = selection.path.file_name().and_then(|name| name.to_str()).unwrap_or("?");
        for run in &selection.runs {
            let own = selection.executions.iter().find(|one| one.id == run.execution);
            runs.extend(own.map(|execution| HistoryRun { file: name, execution, run }));
        }
    }
    let known: BTreeSet<&str> =
        runs.iter().flat_map(|one| one.run.settings.keys().map(String::as_str)).collect();
    if let Some(unknown) = args.across.iter().find(|key| !known.contains(key.as_str())) {
        return Err(request(format!(
            "--across: no run has the setting `{unknown}`; {}",
            hint(unknown, known.iter().copied())
        )));
    }
    let all = history(&runs, &metrics, &args.across);
    if all.is_empty() {
        let names: Vec<&str> = metrics.iter().map(|(name, _)| name.as_str()).collect();
        return Err(request(format!(
            "no valid run has {}; `kvmeter report FILE --json` shows what its runs have",
            names.join(" or ")
        )));
    }
    if args.json {
        show.json(&object(&all))?;
    } else {
        show.print(&format!("{}\n", sentences(&all).join("\n")))?;
        let tables = tables(&all);
        let written = tables.iter().map(|table| match args.markdown {
            true => report::markdown::table(table),
            false => report::terminal::table(table, show.style()),
        });
        show.print_styled(&written.collect::<Vec<_>>().join("\n"))?;
    }
    if let Some(html) = &args.html {
        output_files::write(html, page(&all).as_bytes())?;
        show.note(&format!("page     {}", html.display()));
    }
    Ok(ExitOutcome::Done)
}

fn metrics(args: &HistoryArgs) -> anyhow::Result<Vec<(String, Metric)>> {
    let given: Vec<&str> = args.metric.iter().map(String::as_str).collect();
    let names = if given.is_empty() { USUAL.to_vec() } else { given };
    names.into_iter().map(|name| Ok((name.to_owned(), metric(name)?))).collect()
}

fn metric(name: &str) -> anyhow::Result<Metric> {
    let read = Metric::parse(name).map_err(|error| request(format!("--metric: {error}")))?;
    if let Some(why) = metric_names::unknown(&read) {
        return Err(request(format!("--metric: {why}")));
    }
    Ok(read)
}
