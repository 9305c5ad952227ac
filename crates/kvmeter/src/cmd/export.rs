use std::io::Write;

use record::RunSelection;
use record::export;

use crate::args::Export;
use crate::exit::ExitOutcome;
use crate::output::Output;
use crate::output_files;

pub fn run(args: &Export, show: &Output) -> anyhow::Result<ExitOutcome> {
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
