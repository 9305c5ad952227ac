use std::io::Write;

use record::RunSelection;
use record::export;

use crate::args::Export;
use crate::exit::Outcome;
use crate::files;
use crate::show::Show;

pub fn run(args: &Export, show: &Show) -> anyhow::Result<Outcome> {
    let exporter = export::exporter(&args.format)?;
    let table = args.table.as_deref().map(str::parse).transpose()?;
    let selection = RunSelection::open(&args.file)?;
    if let Some(out) = &args.out {
        files::check_output("--out", out, &[&selection.path])?;
    }
    let mut text = Vec::new();
    export::export(exporter.name(), table, &selection.pairs(), &mut text)?;
    match &args.out {
        Some(out) => {
            files::write(out, &text)?;
            show.note(&format!("written  {}", out.display()));
        }
        None => std::io::stdout().lock().write_all(&text)?,
    }
    Ok(Outcome::Done)
}
