//! The results file of a study: created, or opened again to resume.

use std::collections::BTreeSet;
use std::path::Path;

use execute::knobs::KnobEffects;
use model::{Execution, Fact, Run};
use record::{ResultsFile, RunFilter};
use study::Plan;

use super::args::RunArgs;
use crate::exit::request;
use crate::output_files;

/// The stored runs of an execution.
pub fn runs_of(file: &ResultsFile, execution: &Execution) -> anyhow::Result<Vec<Run>> {
    let mut runs = file.runs(&RunFilter::all())?;
    runs.retain(|run| run.execution == execution.id);
    Ok(runs)
}

/// Opens the results file: with its execution and the ordinals that are done already. `facts` are
/// added to a new execution.
pub fn open(
    args: &RunArgs,
    plan: &Plan,
    out: &Path,
    effects: &KnobEffects,
    facts: &[Fact],
) -> anyhow::Result<(ResultsFile, Execution, BTreeSet<u32>)> {
    let place = out.display();
    if out.exists() {
        let mut file = ResultsFile::open_or_create(out)?;
        let executions = file.executions()?;
        // A kill right after the file was created leaves it without an execution.
        let has_execution = !executions.is_empty();
        if has_execution && !args.resume {
            return Err(request(format!(
                "{place} exists already; continue with --resume, or name another --out"
            )));
        }
        if let Some(mut execution) = execution_to_resume(executions) {
            check_unchanged(&execution, plan, out, effects)?;
            execute::check_directories(plan)?;
            if execution.finished_at.take().is_some() {
                file.reopen(&execution.id)?;
                execution.notes.clear();
            }
            let done = file.finished_runs(&execution.id)?;
            file.reserve(plan.room())?;
            return Ok((file, execution, done));
        }
        execute::check_directories(plan)?;
        let execution = begin(&mut file, plan, effects, facts)?;
        return Ok((file, execution, BTreeSet::new()));
    }
    if args.resume {
        return Err(request(format!("{place} does not exist; leave out --resume to begin")));
    }
    execute::check_directories(plan)?;
    output_files::create_parent(out).map_err(|error| request(format!("{place}: {error}")))?;
    let mut file = ResultsFile::create(out)?;
    let execution = begin(&mut file, plan, effects, facts)?;
    Ok((file, execution, BTreeSet::new()))
}

/// The ordinals that a resumed study has done already.
pub fn finished_before(args: &RunArgs, out: &Path) -> anyhow::Result<BTreeSet<u32>> {
    if !args.resume {
        return Ok(BTreeSet::new());
    }
    let file = ResultsFile::read(out)?;
    let execution = execution_to_resume(file.executions()?);
    Ok(execution
        .map(|execution| file.finished_runs(&execution.id))
        .transpose()?
        .unwrap_or_default())
}

/// The execution that `--resume` continues: the last unfinished one, else the last. A finished one
/// may have dropped repeats, or been killed before its report was written.
fn execution_to_resume(mut executions: Vec<Execution>) -> Option<Execution> {
    let unfinished = executions.iter().rposition(|execution| execution.finished_at.is_none());
    match unfinished {
        Some(at) => Some(executions.swap_remove(at)),
        None => executions.pop(),
    }
}

fn begin(
    file: &mut ResultsFile,
    plan: &Plan,
    effects: &KnobEffects,
    facts: &[Fact],
) -> anyhow::Result<Execution> {
    let mut execution = execute::execution(plan, std::env::args().collect(), effects);
    execution.machine.facts.extend_from_slice(facts);
    // Reserved first, so that a full disk leaves no execution behind.
    file.reserve(plan.room())?;
    file.begin(&execution)?;
    Ok(execution)
}

/// The execution that `--resume` continues, if there is one.
pub fn resumable(out: &Path) -> anyhow::Result<Option<Execution>> {
    Ok(execution_to_resume(ResultsFile::read(out)?.executions()?))
}

/// Checks that plan, machine and version are those of the execution.
fn check_unchanged(
    execution: &Execution,
    plan: &Plan,
    out: &Path,
    effects: &KnobEffects,
) -> anyhow::Result<()> {
    let planned: Vec<_> = plan.steps().map(|(_, step)| step.planned()).collect();
    let changed = if execution.plan != planned {
        "with another plan (the study, its --scale or a --set has changed)"
    } else if execution.machine.id != execute::execution(plan, Vec::new(), effects).machine.id {
        "on another machine"
    } else if execution.version != env!("CARGO_PKG_VERSION") {
        "by another version of kvmeter"
    } else {
        return Ok(());
    };
    let place = out.display();
    Err(request(format!("{place}: it was begun {changed}; start again with another --out")))
}
