//! `kvmeter mbwu`: the work units that a results file holds.

use analyse::mbwu::{EvaluationRound, UnitEvaluation};
use clap::{Args, ValueHint};
use model::{Execution, Run};
use record::RunSelection;
use report::tables;
use serde_json::Value;

use crate::cmd::cost::work_units::{self, UnitCosts};
use crate::exit::{ExitOutcome, request};
use crate::flags::platform::PlatformFlag;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter run mbwu --device /mnt/ssd1 --device /mnt/ssd2 --out units.sqlite\n  \
    kvmeter mbwu units.sqlite\n  \
    kvmeter mbwu units.sqlite --platform name=box,price=2400,watts=180 \\\n               \
    --platform mbwu-embedded,mbwus=0.5\n  \
    kvmeter mbwu units.sqlite --json | jq '.units, .ended_by_resource'\n\n\
    Exit code 1 if no unit was proven; `at least` proves none.")]
pub struct MbwuArgs {
    /// A results file of a study with `[mbwu]`, or a part of it: FILE?key=value&key=value
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: String,
    /// Cost of an MBWU: this platform, a built-in one or a file, with your own values: price,
    /// watts, m2, amps, name; repeat for others, with their `mbwus`
    #[arg(long, value_name = "NAME|FILE[,KEY=VALUE...]")]
    pub platform: Vec<PlatformFlag>,
    /// Print one JSON object; an array if the file has several evaluations
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &MbwuArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
    let selection = RunSelection::open(&args.file)?;
    let mut evaluations = Vec::new();
    for execution in &selection.executions {
        let own = selection.runs.iter().filter(|run| run.execution == execution.id);
        let own: Vec<&Run> = own.collect();
        if own.iter().any(|run| EvaluationRound::of(run).is_some()) {
            let evaluation =
                UnitEvaluation::of_runs(&own).map_err(|error| request(error.to_string()))?;
            evaluations.push((execution, own, evaluation));
        }
    }
    if evaluations.is_empty() {
        return Err(request(format!(
            "{}: has no rounds of work units; measure some with: kvmeter run mbwu --device PATH",
            args.file
        )));
    }
    let proven = evaluations.iter().all(|(.., evaluation)| evaluation.is_proven());
    let mut costs = Vec::new();
    for (_, runs, evaluation) in &evaluations {
        costs.push(cost(&args.platform, runs, evaluation)?);
    }
    if args.json {
        let objects: Vec<Value> = evaluations
            .iter()
            .zip(&costs)
            .map(|((execution, runs, evaluation), cost)| {
                let mut object = report::mbwu::object(execution, runs, evaluation);
                object["cost"] = cost.as_ref().map(|cost| cost.object.clone()).into();
                object
            })
            .collect();
        // A single evaluation is one object.
        let all = match objects.len() {
            1 => objects.into_iter().next().unwrap_or_default(),
            _ => objects.into(),
        };
        show.json(&all)?;
    } else {
        for ((execution, _, evaluation), cost) in evaluations.iter().zip(&costs) {
            print(evaluation, execution, show)?;
            for table in cost.iter().flat_map(|cost| &cost.tables) {
                show.print("")?;
                show.tables(std::slice::from_ref(table))?;
            }
        }
    }
    Ok(if proven { ExitOutcome::Done } else { ExitOutcome::Invalid })
}

/// The cost of the units on the named platforms, the first of which is this one. Its power is the
/// measured one, unless it is given.
pub fn cost(
    platforms: &[PlatformFlag],
    runs: &[&Run],
    evaluation: &UnitEvaluation,
) -> anyhow::Result<Option<UnitCosts>> {
    let Some((first, others)) = platforms.split_first() else { return Ok(None) };
    let (Some(units), Some(_)) = (evaluation.count.units, evaluation.count.devices) else {
        return Err(request(format!(
            "--platform: the number of MBWUs is unknown. {}",
            evaluation.conclusion
        )));
    };
    let mut first = first.clone();
    first.mbwus = Some(units);
    first.watts = first.watts.or_else(|| evaluation.full_power_w(runs));
    let all: Vec<PlatformFlag> = std::iter::once(first).chain(others.iter().cloned()).collect();
    work_units::measured(&all).map(Some)
}

fn print(evaluation: &UnitEvaluation, execution: &Execution, show: &Output) -> anyhow::Result<()> {
    let mut all = vec![tables::mbwu_rounds(evaluation), tables::mbwu_growth(evaluation)];
    all.extend(tables::mbwu_published(evaluation, execution));
    show.tables(&all)
}
