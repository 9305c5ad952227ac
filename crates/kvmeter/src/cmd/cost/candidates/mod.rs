//! Machines and their numbers: from runs, from platforms, from the command line.

mod average;
mod from_flags;
mod from_runs;
mod platforms;

use analyse::cost::{
    CandidateError, GivenNumbers, LoadPower, Platform, RequiredNumbers, SourcedCandidate,
    note_other_work,
};
use record::RunSelection;
use report::cells::cells;

use self::average::averages;
use self::from_flags::from_flags;
use self::from_runs::from_runs;
pub use self::platforms::{flag_for, platform_and_name};
use super::terms::Utilisation;
use super::{CostArgs, graduated};
use crate::exit::request;
use crate::flags::platform::PlatformFlag;

/// The source of numbers of flags.
pub const COMMAND_LINE: &str = "the command line";

/// All candidates of the command line.
pub fn gather(args: &CostArgs) -> anyhow::Result<Vec<SourcedCandidate>> {
    let (alone, over): (Vec<&PlatformFlag>, Vec<&PlatformFlag>) =
        args.platform.iter().partition(|flag| flag.throughput.is_some());
    let (mut candidates, mut machines) = (Vec::new(), Vec::new());
    for flag in &alone {
        let one = from_flags(args, flag)?;
        machines.push(one.candidate.name.clone());
        candidates.push(one);
    }
    for file in &args.files {
        let selection = RunSelection::open(file)?;
        // Microbenchmarks and simulations serve no load.
        let mut pairs = selection.pairs();
        pairs.retain(|(_, run)| run.measures_store());
        // The levels of a graduated load are one candidate with a power curve.
        let (loads, rest) = graduated::loads(&pairs);
        for load in &loads {
            let flag = flag_for(load.machine(), &over)?;
            machines.push(platform_and_name(flag, load.execution())?.1);
            candidates.push(graduated::candidate(args, load, flag)?);
        }
        for cell in &cells(&rest) {
            let flag = flag_for(&cell.execution.machine.id, &over)?;
            machines.push(platform_and_name(flag, cell.execution)?.1);
            candidates.push(from_runs(args, cell, flag)?);
        }
    }
    if args.files.is_empty()
        && let Some(flag) = over.first()
    {
        return Err(request(format!(
            "--platform {}: throughput is missing; add `throughput=RATE` and `watts=W`, or name a \
             results file that has them",
            flag.text
        )));
    }
    if candidates.is_empty() {
        return Err(request(
            "nothing to cost: name a results file with finished runs, machines with \
             `--platform NAME,throughput=RATE,watts=W,price=USD`, or `--published arm-vs-x86`",
        ));
    }
    check_names(&candidates)?;
    note_other_work(&mut candidates);
    check_utilisation(args, &candidates)?;
    if args.average {
        candidates.extend(averages(args, &machines, &candidates)?);
    }
    Ok(candidates)
}

/// Two candidates of one name would not be told apart.
fn check_names(candidates: &[SourcedCandidate]) -> anyhow::Result<()> {
    for (at, one) in candidates.iter().enumerate() {
        let twin = |other: &&SourcedCandidate| {
            other.candidate.name == one.candidate.name
                && other.candidate.workload == one.candidate.workload
        };
        if candidates[..at].iter().any(|other| twin(&other)) {
            return Err(request(format!(
                "two machines are called `{}`; distinguish them with `name=` in --platform, or \
                 narrow the results: FILE?key=value",
                one.candidate.name
            )));
        }
    }
    Ok(())
}

fn check_utilisation(args: &CostArgs, candidates: &[SourcedCandidate]) -> anyhow::Result<()> {
    let unknown = candidates.iter().find(|one| one.candidate.utilisation.is_none());
    if let (Utilisation::Measured, Some(one)) = (args.utilisation, unknown) {
        return Err(request(format!(
            "--utilisation: how busy the CPUs of {} were (machine.busy) was not measured; give a \
             share",
            one.candidate.name
        )));
    }
    Ok(())
}

/// A candidate with the numbers of its `--platform`.
pub fn sourced(
    args: &CostArgs,
    flag: Option<&PlatformFlag>,
    platform: Option<Platform>,
    name: (String, String),
    throughput: (f64, String),
    power: LoadPower,
) -> anyhow::Result<SourcedCandidate> {
    let given = flag.map_or_else(GivenNumbers::default, |flag| GivenNumbers {
        idle_w: flag.idle,
        price_usd: flag.price,
        rack_units: flag.rack_units,
        footprint_m2: flag.m2,
    });
    SourcedCandidate::new(name, throughput, power, platform, &given, required(args)).map_err(wrong)
}

fn required(args: &CostArgs) -> RequiredNumbers {
    RequiredNumbers {
        price: !args.energy_only,
        idle_power: args.utilisation.is_partial(),
        rack_units: args.rack_rent.is_some_and(|rent| rent > 0.0),
    }
}

fn wrong(error: CandidateError) -> anyhow::Error {
    request(match error {
        CandidateError::IdleAboveLoad { name, idle_w, watts } => format!(
            "{name}: its idle power of {idle_w} W is above the {} W that it draws under load",
            report::format::plain(watts)
        ),
        other => other.to_string(),
    })
}
