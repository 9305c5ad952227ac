use std::collections::BTreeMap;

use analyse::gate::{Gate, GateCondition, GateConditionError, GateOutcome, GateRequest, gate};
use analyse::{Comparison, compare_with_machines};
use anyhow::Context;
use clap::{Args, ValueHint};
use model::Run;
use record::RunSelection;
use report::comparison;

use crate::exit::{ExitOutcome, is_closed_pipe, request};
use crate::metric_names;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter compare before.sqlite after.sqlite\n  \
    kvmeter compare 'results.sqlite?store=rocksdb' 'results.sqlite?store=lmdb'\n\n\
    Where the 95 % interval of a difference covers zero, no difference is shown.\n\n\
    A gate, for CI (docs/ci.md):\n  \
    kvmeter compare before.sqlite after.sqlite --fail-on 'latency_us.read.p99 > 5%' \\\n    \
    --fail-on 'throughput_ops_s < -3%'\n\n\
    Each condition is judged in each cell. Exit code 1 where a change beyond the threshold is \
    proven,\n0 where the opposite is proven for all, and 3 where the data do not suffice; it says \
    how many more\nrepeats would.")]
pub struct CompareArgs {
    /// The first side: FILE or FILE?key=value&...
    #[arg(value_hint = ValueHint::FilePath)]
    pub a: String,
    /// The second side
    #[arg(value_hint = ValueHint::FilePath)]
    pub b: String,
    /// Fail where B is proven to differ from A by more than this: 'METRIC > 5%' or 'METRIC < -3%',
    /// with a metric's name as in --json; may be repeated
    #[arg(long, value_name = "CONDITION")]
    pub fail_on: Vec<String>,
    /// The confidence of the intervals by which --fail-on judges
    #[arg(long, value_name = "PERCENT", default_value = "99%", requires = "fail_on")]
    pub confidence: String,
    /// Print Markdown; with --fail-on its verdicts first
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &CompareArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let request = gate_request(args)?;
    let (a, b) = (RunSelection::open(&args.a)?, RunSelection::open(&args.b)?);
    let machines = machines(&[&a, &b]);
    let (runs_a, runs_b): (Vec<&Run>, Vec<&Run>) = (results(&a), results(&b));
    let compared =
        compare_with_machines(&runs_a, &runs_b, |run| machines.get(&run.execution).cloned())?;
    check_same_workload(&compared, (&a, &b))?;
    let gate = request.map(|request| gate(&compared, &runs_a, &runs_b, &request)).transpose()?;
    let outcome = gate.as_ref().map_or(ExitOutcome::Done, exit_outcome);
    let shown = match args.json {
        true => {
            let mut object = comparison::object(&args.a, &args.b, &compared);
            if let Some(gate) = &gate {
                object["gate"] = report::gate::object(gate, outcome.code());
            }
            show.json(&object)
        }
        false => show_tables(args, &compared, gate.as_ref(), show),
    };
    match shown {
        // A reader that closes its end early changes nothing of the verdict.
        Err(error) if is_closed_pipe(&error) => Ok(outcome),
        shown => shown.map(|()| outcome),
    }
}

/// In Markdown the gate comes first, as a pull request shows its beginning.
fn show_tables(
    args: &CompareArgs,
    compared: &Comparison,
    gate: Option<&Gate>,
    show: &Output,
) -> anyhow::Result<()> {
    let rows = comparison::rows(compared);
    let folded = gate.filter(|_| args.markdown);
    if let Some(gate) = folded {
        show.print_styled(&report::gate::markdown(gate))?;
        show.print("\n<details><summary>All figures</summary>\n\n")?;
    }
    let text = if args.markdown {
        report::markdown::comparison(&args.a, &args.b, &rows)
    } else {
        report::terminal::comparison(&args.a, &args.b, &rows, show.style())
    };
    show.print_styled(&text)?;
    for line in comparison::notes(compared) {
        show.print(&line)?;
    }
    if folded.is_some() {
        show.print("\n</details>")?;
    } else if let Some(gate) = gate {
        show.print("")?;
        for line in report::gate::lines(gate) {
            show.print(&line)?;
        }
    }
    Ok(())
}

/// The conditions, if there are any. Errors: one that cannot be read, or names no metric.
fn gate_request(args: &CompareArgs) -> anyhow::Result<Option<GateRequest>> {
    if args.fail_on.is_empty() {
        return Ok(None);
    }
    let conditions = args.fail_on.iter().map(|text| condition(text)).collect::<Result<_, _>>();
    let conditions = conditions.context("--fail-on")?;
    let percent = args.confidence.strip_suffix('%').unwrap_or(&args.confidence).trim();
    let percent = percent.parse::<f64>().ok().filter(|it| (50.0..=99.99).contains(it));
    let percent = percent.ok_or_else(|| {
        request(format!(
            "--confidence: `{}` is not between 50% and 99.99%; write it as `99%`",
            args.confidence
        ))
    })?;
    Ok(Some(GateRequest { conditions, confidence: percent / 100.0 }))
}

fn condition(text: &str) -> Result<GateCondition, GateConditionError> {
    let read: GateCondition = text.parse()?;
    if let Some(what) = metric_names::unknown(&read.metric) {
        return Err(GateConditionError { text: text.to_owned(), at: read.at, what });
    }
    Ok(read)
}

fn exit_outcome(gate: &Gate) -> ExitOutcome {
    match gate.outcome() {
        GateOutcome::Passed => ExitOutcome::Done,
        GateOutcome::Failed => ExitOutcome::Regression,
        GateOutcome::Undecided => ExitOutcome::Undecided,
    }
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
