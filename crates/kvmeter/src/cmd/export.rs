use std::io::Write;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use record::RunSelection;
use record::export;

use crate::exit::ExitOutcome;
use crate::output::Output;
use crate::output_files;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter export results.sqlite --format csv > latency.csv\n  \
    kvmeter export results.sqlite --format parquet --table series --out series.parquet")]
pub struct ExportArgs {
    /// FILE or FILE?key=value&...
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: String,
    #[arg(long, short, value_name = "FORMAT", value_parser = PossibleValuesParser::new(
        record::export::EXPORTERS.map(|exporter| exporter.name())))]
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
    let exporter = export::exporter(&args.format)?;
    let table = args.table.as_deref().map(str::parse).transpose()?;
    let selection = RunSelection::open(&args.file)?;
    if let Some(out) = &args.out {
        output_files::check_output("--out", out, &[&selection.path])?;
    }
    let mut text = Vec::new();
    export::export(exporter.name(), table, &selection.pairs(), &mut text)?;
    match &args.out {
        Some(out) => {
            output_files::write(out, &text)?;
            show.note(&format!("written  {}", out.display()));
        }
        None => std::io::stdout().lock().write_all(&text)?,
    }
    Ok(ExitOutcome::Done)
}
