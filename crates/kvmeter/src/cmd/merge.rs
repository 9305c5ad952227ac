use std::collections::BTreeSet;

use record::RunSelection;

use crate::args::Merge;
use crate::exit::{ExitOutcome, request};
use crate::output::Output;
use crate::output_files;

pub fn run(args: &Merge, show: &Output) -> anyhow::Result<ExitOutcome> {
    let parts: Vec<RunSelection> =
        args.files.iter().map(|file| RunSelection::open(file)).collect::<Result<_, _>>()?;
    let out = &args.out;
    output_files::create_parent(out)
        .map_err(|error| request(format!("{}: {error}", out.display())))?;
    record::merge(&parts, out)?;
    let executions = || parts.iter().flat_map(|part| &part.executions);
    let machines: BTreeSet<&str> = executions().map(|e| e.machine.id.as_str()).collect();
    let runs: usize = parts.iter().map(|part| part.runs.len()).sum();
    show.note(&format!(
        "merged   {}: {runs} runs of {} executions on {} machine{}",
        out.display(),
        executions().count(),
        machines.len(),
        if machines.len() == 1 { "" } else { "s" }
    ));
    Ok(ExitOutcome::Done)
}
