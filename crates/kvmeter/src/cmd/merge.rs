use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use record::RunSelection;

use crate::exit::{ExitOutcome, request};
use crate::output::Output;
use crate::output_files;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter merge arm.sqlite x86.sqlite --out both.sqlite\n  \
    kvmeter report both.sqlite --html both.html\n\n\
    Each run keeps its machine: a question or figure of a study may name `machine`.")]
pub struct MergeArgs {
    /// Results files, or parts of them: FILE?key=value&key=value
    #[arg(required = true, num_args = 1.., value_hint = ValueHint::FilePath)]
    pub files: Vec<String>,
    /// The new results file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
}

pub fn run(args: &MergeArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
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
