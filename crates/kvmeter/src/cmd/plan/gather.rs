//! All machines of the command line, and the objective.

use std::collections::{BTreeMap, BTreeSet};

use analyse::fleet_plan::Demand;
use analyse::slo::Objective;
use model::{Execution, Run};
use record::RunSelection;
use report::cells::{ReportCell, distinct};
use report::curves::open_loops;

use super::PlanArgs;
use super::choice::{ChosenMachine, choices};
use super::from_flags::from_flags;
use super::from_runs::from_runs;
use super::price_table::PriceTable;
use crate::cmd::cost::candidates::flag_for;
use crate::exit::request;
use crate::flags::platform::PlatformFlag;

pub struct GatheredChoices {
    pub objective: Option<String>,
    pub chosen: Vec<ChosenMachine>,
    pub notes: Vec<String>,
}

pub fn gather(args: &PlanArgs, demand: &Demand) -> anyhow::Result<GatheredChoices> {
    let (alone, over): (Vec<&PlatformFlag>, Vec<&PlatformFlag>) =
        args.platform.iter().partition(|flag| flag.throughput.is_some());
    let prices = args.prices.as_deref().map(PriceTable::open).transpose()?;
    let mut gathered = GatheredChoices { objective: None, chosen: Vec::new(), notes: Vec::new() };
    for flag in &alone {
        gathered.chosen.extend(choices(args, prices.as_ref(), from_flags(flag, demand)?)?);
    }
    if args.files.is_empty()
        && let Some(flag) = over.first()
    {
        return Err(request(format!(
            "--platform {}: throughput is missing; add `throughput=RATE`, the highest rate that holds \
             the objective, or name a results file",
            flag.text
        )));
    }
    if !args.files.is_empty() {
        of_files(args, prices.as_ref(), &over, &mut gathered)?;
    }
    if gathered.chosen.is_empty() {
        return Err(request(
            "no machine to choose from: name a results file of `kvmeter search`, or machines with \
             `--platform NAME,throughput=RATE,watts=W,price=USD`",
        ));
    }
    check_names(&gathered.chosen)?;
    Ok(gathered)
}

fn of_files(
    args: &PlanArgs,
    prices: Option<&PriceTable>,
    over: &[&PlatformFlag],
    gathered: &mut GatheredChoices,
) -> anyhow::Result<()> {
    let opened = args.files.iter().map(|file| RunSelection::open(file));
    let selections = opened.collect::<Result<Vec<_>, _>>()?;
    let mut pairs: Vec<(&Execution, &Run)> =
        selections.iter().flat_map(RunSelection::pairs).collect();
    pairs.retain(|(_, run)| run.measures_store());
    let cells = open_loops(&pairs);
    if cells.is_empty() {
        return Err(request(format!(
            "{}: there is no open loop, and the throughput of a closed one says nothing of latency \
             under a load; measure with: kvmeter search STORE --slo 'p99<1ms' --out FILE",
            args.files.join(", ")
        )));
    }
    let workloads = distinct(&cells, |cell| &cell.category);
    if let [first, _, ..] = workloads.as_slice() {
        return Err(request(format!(
            "the results hold several workloads ({}); choose the one that is to be served: \
             FILE?workload={first}",
            workloads.join(", ")
        )));
    }
    let objective = objective(args, &pairs)?;
    gathered.notes.extend(other_workloads(&cells));
    for cell in &cells {
        let flag = flag_for(&cell.execution.machine.id, over)?;
        match from_runs(cell, &objective, flag)? {
            Some(machine) => gathered.chosen.extend(choices(args, prices, machine)?),
            None => gathered
                .notes
                .push(format!("Left out: {} held {objective} at none of its rates.", cell.series)),
        }
    }
    if gathered.chosen.is_empty() {
        let lowest = pairs.iter().filter_map(|(_, run)| run.target_rate());
        let lowest = lowest.fold(f64::INFINITY, f64::min);
        return Err(request(format!(
            "no machine holds {objective} at any rate that was measured, the lowest of which is {}; \
             relax --slo, or measure lower rates: kvmeter search STORE --slo '{objective}' --from 10",
            report::format::target_rate(lowest)
        )));
    }
    gathered.objective = Some(objective.to_string());
    Ok(())
}

/// Settings of a workload that make no other work of it, or follow from others.
const SAME_WORK: [&str; 3] = ["workload.is", "workload.seed", "workload.data_bytes"];

/// A note for each respect in which workloads of one name differ between machines.
fn other_workloads(cells: &[ReportCell<'_>]) -> Vec<String> {
    let firsts = || cells.iter().filter_map(|cell| Some((cell, cell.runs.first()?)));
    let names: BTreeSet<&String> = firsts()
        .flat_map(|(_, run)| run.settings.keys())
        .filter(|name| name.starts_with("workload.") && !SAME_WORK.contains(&name.as_str()))
        .collect();
    let note = |name: &String| {
        let value = |run: &Run| run.settings.get(name).map_or("none", String::as_str).to_owned();
        let mut of: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        firsts().for_each(|(cell, run)| of.entry(value(run)).or_default().push(&cell.series));
        let each: Vec<String> =
            of.iter().map(|(value, cells)| format!("{value} ({})", cells.join(", "))).collect();
        (of.len() > 1).then(|| {
            format!(
                "The machines did not do the same work: {name} is {}; measure them alike.",
                each.join(" and ")
            )
        })
    };
    names.into_iter().filter_map(note).collect()
}

/// The flag's objective, else the only one of the runs.
fn objective(args: &PlanArgs, pairs: &[(&Execution, &Run)]) -> anyhow::Result<Objective> {
    if let Some(given) = &args.slo {
        return Ok(given.clone());
    }
    let mut own: Vec<&String> =
        pairs.iter().filter_map(|(_, run)| run.settings.get("slo")).collect();
    own.sort();
    own.dedup();
    match own.as_slice() {
        [only] => Ok(only.parse()?),
        [] => Err(request(
            "--slo is missing, and the results have none of their own; give a latency objective, as \
             in --slo 'p99<1ms'",
        )),
        [one, other, ..] => Err(request(format!(
            "--slo is missing, and the results have several objectives ({one} and {other}); choose \
             one"
        ))),
    }
}

/// Two choices of one name would not be distinguished.
fn check_names(chosen: &[ChosenMachine]) -> anyhow::Result<()> {
    for (at, one) in chosen.iter().enumerate() {
        if chosen[..at].iter().any(|other| other.choice.name == one.choice.name) {
            return Err(request(format!(
                "two machines are called `{}`; distinguish them with `name=` in --platform, or \
                 narrow the results: FILE?key=value",
                one.choice.name
            )));
        }
    }
    Ok(())
}
