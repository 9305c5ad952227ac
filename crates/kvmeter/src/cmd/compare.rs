use std::collections::BTreeMap;

use analyse::{Comparison, compare_with_machines};
use clap::{Args, ValueHint};
use model::Run;
use record::RunSelection;
use report::comparison;

use crate::exit::{ExitOutcome, request};
use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter compare before.sqlite after.sqlite\n  \
    kvmeter compare 'results.sqlite?store=rocksdb' 'results.sqlite?store=lmdb'\n\n\
    Where the 95 % interval of a difference covers zero, no difference is shown.")]
pub struct CompareArgs {
    /// The first side: FILE or FILE?key=value&...
    #[arg(value_hint = ValueHint::FilePath)]
    pub a: String,
    /// The second side
    #[arg(value_hint = ValueHint::FilePath)]
    pub b: String,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &CompareArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let (a, b) = (RunSelection::open(&args.a)?, RunSelection::open(&args.b)?);
    let machines = machines(&[&a, &b]);
    let (runs_a, runs_b): (Vec<&Run>, Vec<&Run>) = (results(&a), results(&b));
    let compared =
        compare_with_machines(&runs_a, &runs_b, |run| machines.get(&run.execution).cloned())?;
    check_same_workload(&compared, (&a, &b))?;
    if args.json {
        show.json(&comparison::object(&args.a, &args.b, &compared))?;
        return Ok(ExitOutcome::Done);
    }
    let rows = comparison::rows(&compared);
    let text = if args.markdown {
        report::markdown::comparison(&args.a, &args.b, &rows)
    } else {
        report::terminal::comparison(&args.a, &args.b, &rows, show.style())
    };
    show.print_styled(&text)?;
    for line in comparison::notes(&compared) {
        show.print(&line)?;
    }
    Ok(ExitOutcome::Done)
}

/// The runs of a selection without calibration trials.
fn results(side: &RunSelection) -> Vec<&Run> {
    side.runs.iter().filter(|run| !run.is_trial()).collect()
}

/// Refuses sides of different workloads, unless a filter names the workload.
fn check_same_workload(
    comparison: &Comparison,
    sides: (&RunSelection, &RunSelection),
) -> anyhow::Result<()> {
    let names_workload = |side: &RunSelection| side.filter.to_string().contains("workload");
    match comparison.workload_difference() {
        Some(difference) if !names_workload(sides.0) && !names_workload(sides.1) => {
            Err(request(format!(
                "`{setting}` is {} in A and {} in B: the workloads differ, and the sides are not \
             comparable; select what both have, or name it (`FILE?{setting}=...`) to compare \
             them anyway",
                difference.a.join(", "),
                difference.b.join(", "),
                setting = difference.setting,
            )))
        }
        _ => Ok(()),
    }
}

/// The machine of each execution.
fn machines(selections: &[&RunSelection]) -> BTreeMap<String, String> {
    let all = selections.iter().flat_map(|selection| &selection.executions);
    all.map(|execution| (execution.id.clone(), execution.machine.id.clone())).collect()
}
