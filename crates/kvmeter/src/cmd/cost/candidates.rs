//! Machines and their numbers: from runs, from platforms, from the command line.

use analyse::RunWork;
use analyse::cost::{
    CandidateError, GivenNumbers, LoadPower, Platform, PlatformValue, RequiredNumbers,
    SourcedCandidate, absence_note, note_other_work, source_text,
};
use model::Execution;
use record::RunSelection;
use report::cells::{ReportCell, cells};

use super::terms::Utilisation;
use super::{CostArgs, graduated};
use crate::exit::request;
use crate::flags::platform::PlatformFlag;

/// The source of numbers of flags.
pub const COMMAND_LINE: &str = "the command line";
/// Characters of a shortened machine id.
const SHORT_ID: usize = 8;

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
    note_other_work(&mut candidates);
    let unknown = candidates.iter().find(|one| one.candidate.utilisation.is_none());
    if let (Utilisation::Measured, Some(one)) = (args.utilisation, unknown) {
        return Err(request(format!(
            "--utilisation: how busy the CPUs of {} were (machine.busy) was not measured; give a \
             share",
            one.candidate.name
        )));
    }
    if args.average {
        candidates.extend(averages(args, &machines, &candidates)?);
    }
    Ok(candidates)
}

fn open_platform(flag: &PlatformFlag) -> anyhow::Result<Option<Platform>> {
    Ok(flag.base.as_deref().map(study::open_platform).transpose()?)
}

/// A machine whose numbers are all on the command line or in its platform.
fn from_flags(args: &CostArgs, flag: &PlatformFlag) -> anyhow::Result<SourcedCandidate> {
    let platform = open_platform(flag)?;
    let known = platform.as_ref().map(|platform| platform.name.clone());
    let name = flag.name.clone().or(known).unwrap_or_else(|| "server".to_owned());
    let full = platform.as_ref().and_then(|platform| platform.full_load_w.clone());
    let (watts, from) = match (flag.watts, &full) {
        (Some(watts), _) => (watts, COMMAND_LINE.to_owned()),
        (None, Some(full)) => {
            (full.value, source_text(platform.as_ref(), "full_load_w", full.from.as_deref()))
        }
        (None, None) => {
            return Err(request(format!(
                "--platform {}: its power is not known{}; add `watts=W`",
                flag.text,
                absence_note(platform.as_ref(), PlatformValue::FullLoadW)
            )));
        }
    };
    let power = LoadPower::given(watts, &from);
    let throughput = flag.throughput.map_or(0.0, |rate| rate.0);
    let workload = flag.workload.clone().unwrap_or_default();
    let from = COMMAND_LINE.to_owned();
    sourced(args, Some(flag), platform, (name, workload), (throughput, from), power)
}

/// The `--platform` of the machine of these runs.
fn flag_for<'f>(id: &str, flags: &[&'f PlatformFlag]) -> anyhow::Result<Option<&'f PlatformFlag>> {
    let of_it = |flag: &&&PlatformFlag| {
        flag.machine.as_ref().is_some_and(|machine| id.starts_with(machine.as_str()))
    };
    if let Some(flag) = flags.iter().find(of_it) {
        return Ok(Some(flag));
    }
    let mut general = flags.iter().filter(|flag| flag.machine.is_none());
    match (general.next(), general.next()) {
        (Some(_), Some(second)) => Err(request(format!(
            "--platform {}: a second one for the same results; name the machine of each with \
             `machine=ID`, or add `throughput=` to one without results",
            second.text
        ))),
        (first, _) => Ok(first.copied()),
    }
}

/// The platform of the machine of an execution, and the machine's name.
pub fn platform_and_name(
    flag: Option<&PlatformFlag>,
    execution: &Execution,
) -> anyhow::Result<(Option<Platform>, String)> {
    let base = flag.and_then(|flag| flag.base.as_deref());
    let base = base.or(execution.design.platform.as_deref());
    let platform = base.map(study::open_platform).transpose()?;
    let id = &execution.machine.id;
    let machine = match (flag.and_then(|flag| flag.name.clone()), &platform) {
        (Some(name), _) => name,
        (None, Some(platform)) => platform.name.clone(),
        (None, None) => format!("machine {}", id.chars().take(SHORT_ID).collect::<String>()),
    };
    Ok((platform, machine))
}

/// A candidate from repeated runs: their median throughput and power.
fn from_runs(
    args: &CostArgs,
    cell: &ReportCell<'_>,
    flag: Option<&PlatformFlag>,
) -> anyhow::Result<SourcedCandidate> {
    let (platform, machine) = platform_and_name(flag, cell.execution)?;
    let label = format!("{} on {machine}", cell.series);
    let (runs, valid) = cell.counted();
    if !valid {
        return Err(request(format!(
            "{} of {label}: no valid run; choose others with FILE?valid=true",
            cell.category
        )));
    }
    let mut notes = Vec::new();
    let throughput = cell
        .median(|run| Some(run.throughput()))
        .filter(|rate| *rate > 0.0)
        .ok_or_else(|| request(format!("{} of {label}: nothing was served", cell.category)))?;
    if cell.runs.iter().any(|run| run.target_rate().is_some()) {
        notes.push(format!(
            "{label}: an open loop's throughput is its target rate, not the server's \
             maximum."
        ));
    }
    let power = match flag.and_then(|flag| flag.watts) {
        Some(watts) => LoadPower::given(watts, COMMAND_LINE),
        None => {
            let what = format!("{} of {label}", cell.category);
            LoadPower::of_runs(&cell.runs, platform.as_ref(), &what).map_err(wrong)?
        }
    };
    notes.extend(power.boundary_note(&label));
    let from = format!("median of {} run{}", runs.len(), if runs.len() == 1 { "" } else { "s" });
    let workload = cell.category.clone();
    let mut one = sourced(args, flag, platform, (label, workload), (throughput, from), power)?;
    one.notes.extend(notes);
    if args.utilisation == Utilisation::Measured {
        one.candidate.utilisation = cell.median(|run| run.value("machine.busy"));
        one.notes.push("U: how busy the machine's CPUs were (machine.busy).".to_owned());
    }
    one.work = runs.iter().map(|run| RunWork::of(run)).collect();
    Ok(one)
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

/// The mean of each machine's candidates. `machines` are their names, in the same order.
fn averages(
    args: &CostArgs,
    machines: &[String],
    candidates: &[SourcedCandidate],
) -> anyhow::Result<Vec<SourcedCandidate>> {
    let mut averages = Vec::new();
    for (at, machine) in machines.iter().enumerate() {
        if machines[..at].contains(machine) {
            continue;
        }
        let own = machines.iter().zip(candidates).filter(|(of, _)| *of == machine);
        let own: Vec<&SourcedCandidate> = own.map(|(_, one)| one).collect();
        let average = SourcedCandidate::average(machine.clone(), &own, required(args));
        averages.extend(average.map_err(wrong)?);
    }
    Ok(averages)
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
