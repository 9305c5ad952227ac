use std::io::Write;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use record::RunSelection;
use record::export;
use report::benchmarks::BenchmarkFormat;

use crate::exit::{ExitOutcome, request};
use crate::output::Output;
use crate::output_files;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter export results.sqlite --format csv > latency.csv\n  \
    kvmeter export results.sqlite --format parquet --table series --out series.parquet\n  \
    kvmeter export results.sqlite --format hlog > latency.hlog    for HdrHistogram's tools\n  \
    kvmeter export results.sqlite --format bencher > bencher.json\n\n\
    For services that keep benchmarks over time (docs/ci.md), one value a metric of each cell:\n\
    `bencher` is the Bencher Metric Format, `github-smaller-is-better` and \
    `github-bigger-is-better`\nare the two of github-action-benchmark.")]
pub struct ExportArgs {
    /// FILE or FILE?key=value&...
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: String,
    #[arg(long, short, value_name = "FORMAT", value_parser = PossibleValuesParser::new(formats()))]
    pub format: String,
    /// The table [default: depends on the format]
    #[arg(long, value_name = "TABLE", value_parser = PossibleValuesParser::new(
        record::table::TableName::ALL.map(record::table::TableName::name)))]
    pub table: Option<String>,
    /// Where to write instead of standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

pub fn run(args: &ExportArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let table = args.table.as_deref().map(str::parse).transpose()?;
    let benchmarks = BenchmarkFormat::from_name(&args.format);
    if benchmarks.is_some() && table.is_some() {
        let why = format!("--format {} has no tables; leave out --table", args.format);
        return Err(request(why));
    }
    let selection = RunSelection::open(&args.file)?;
    if let Some(out) = &args.out {
        output_files::check_output("--out", out, &[&selection.path])?;
    }
    let mut text = Vec::new();
    match benchmarks {
        Some(format) => {
            serde_json::to_writer_pretty(&mut text, &format.of(&selection.pairs()))?;
            text.push(b'\n');
        }
        None => export::export(&args.format, table, &selection.pairs(), &mut text)?,
    }
    match &args.out {
        Some(out) => {
            output_files::write(out, &text)?;
            show.note(&format!("written  {}", out.display()));
        }
        None => std::io::stdout().lock().write_all(&text)?,
    }
    Ok(ExitOutcome::Done)
}

/// After `--format`: those of tables, then those of services.
fn formats() -> Vec<&'static str> {
    let tables = export::EXPORTERS.iter().map(|exporter| exporter.name());
    tables.chain(BenchmarkFormat::ALL.map(BenchmarkFormat::name)).collect()
}
