//! Machines and their numbers: from runs, from platforms, from the command line.

use analyse::cost::{GivenValue, Platform, PlatformValue, PowerCurve, ServerCandidate};
use analyse::{RunWork, WorkDifference, work_differences};
use model::{Execution, Origin, Run, Scope};
use record::RunSelection;
use report::cells::{ReportCell, cells};

use super::CostArgs;
use super::graduated;
use crate::exit::request;
use crate::flags::platform::PlatformFlag;

/// Characters of a shortened machine id.
const SHORT_ID: usize = 8;

/// A candidate and the sources of its numbers.
pub struct SourcedCandidate {
    pub candidate: ServerCandidate,
    pub platform: Option<Platform>,
    pub throughput_from: String,
    pub power: LoadPower,
    /// The work of its runs; empty if its numbers are given or from a graduated load.
    pub work: Vec<RunWork>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// Power under load in watts, and its source.
pub struct LoadPower {
    pub watts: f64,
    pub idle_w: Option<f64>,
    pub from: String,
    pub origin: Origin,
    /// None if unknown.
    pub boundary: Option<Scope>,
    /// Watts at shares of the full load, where a graduated load was measured.
    pub curve: Option<PowerCurve>,
}

/// All candidates of the command line.
pub fn gather(args: &CostArgs) -> anyhow::Result<Vec<SourcedCandidate>> {
    let (alone, over): (Vec<&PlatformFlag>, Vec<&PlatformFlag>) =
        args.platform.iter().partition(|flag| flag.throughput.is_some());
    let mut candidates = Vec::new();
    for flag in &alone {
        candidates.push(from_flags(args, flag)?);
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
            candidates.push(graduated::candidate(args, load, flag)?);
        }
        for cell in &cells(&rest) {
            let flag = flag_for(&cell.execution.machine.id, &over)?;
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
                "two machines are called `{}`; tell them apart with `name=` in --platform, or \
                 narrow the results: FILE?key=value",
                one.candidate.name
            )));
        }
    }
    note_other_work(&mut candidates);
    Ok(candidates)
}

/// Notes candidates of the same workload that did different work.
fn note_other_work(candidates: &mut [SourcedCandidate]) {
    for at in 1..candidates.len() {
        let (before, from) = candidates.split_at_mut(at);
        let one = &mut from[0];
        let rivals =
            before.iter().filter(|other| other.candidate.workload == one.candidate.workload);
        for other in rivals {
            let differ = work_differences(&one.work, &other.work);
            if !differ.is_empty() {
                let words: Vec<String> = differ.iter().map(WorkDifference::to_string).collect();
                one.notes.push(format!(
                    "{} did other work than {}: {}.",
                    one.candidate.name,
                    other.candidate.name,
                    words.join(", ")
                ));
            }
        }
    }
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
        (Some(watts), _) => (watts, "the command line".to_owned()),
        (None, Some(full)) => {
            (full.value, source_text(platform.as_ref(), "full_load_w", &full.from))
        }
        (None, None) => {
            return Err(request(format!(
                "--platform {}: its power is not known{}; add `watts=W`",
                flag.text,
                absence_note(platform.as_ref(), PlatformValue::FullLoadW)
            )));
        }
    };
    let power = LoadPower {
        watts,
        idle_w: None,
        from,
        origin: Origin::Published,
        boundary: None,
        curve: None,
    };
    let throughput = flag.throughput.map_or(0.0, |rate| rate.0);
    let workload = flag.workload.clone().unwrap_or_default();
    let from = "the command line".to_owned();
    sourced(args, Some(flag), platform, (name, workload), (throughput, from), power)
}

/// Why a platform lacks a value.
fn absence_note(platform: Option<&Platform>, want: PlatformValue) -> String {
    platform.map_or(String::new(), |platform| {
        format!(" (platform {}: {})", platform.name, platform.why_absent(want))
    })
}

fn source_text(platform: Option<&Platform>, key: &str, from: &Option<String>) -> String {
    let name = platform.map_or("", |platform| &platform.name);
    match from {
        Some(from) => format!("platform {name}, {key}: {from}"),
        None => format!("platform {name}, {key}"),
    }
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
            "--platform {}: a second one for the same results; say which machine each is with \
             `machine=ID`, or add `throughput=` to one that stands alone",
            second.text
        ))),
        (first, _) => Ok(first.copied()),
    }
}

/// The platform of the machine of an execution, and the machine's name.
pub(super) fn platform_and_name(
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
        Some(watts) => LoadPower {
            watts,
            idle_w: None,
            from: "the command line".to_owned(),
            origin: Origin::Published,
            boundary: None,
            curve: None,
        },
        None => power_of_runs(cell, platform.as_ref(), &label)?,
    };
    if matches!(power.boundary, Some(Scope::Package | Scope::PackageAndMemory)) {
        notes.push(format!(
            "{label}: power is that of {}, not of the whole machine: its energy cost is higher.",
            power.boundary.map_or(String::new(), |scope| scope.to_string())
        ));
    }
    let from = format!("median of {} run{}", runs.len(), if runs.len() == 1 { "" } else { "s" });
    let workload = cell.category.clone();
    let mut one = sourced(args, flag, platform, (label, workload), (throughput, from), power)?;
    one.notes.extend(notes);
    one.work = runs.iter().map(|run| RunWork::of(run)).collect();
    Ok(one)
}

/// The runs' own power, else the platform's curve at their load.
fn power_of_runs(
    cell: &ReportCell<'_>,
    platform: Option<&Platform>,
    label: &str,
) -> anyhow::Result<LoadPower> {
    // Joules of an operation are of the store's machine, even if kvmeter ran on another.
    let watts = |run: &Run, signal: &str| {
        let energy = run.reading(signal)?;
        let joules = energy.value()? * run.operations as f64;
        (energy.window_s > 0.0).then(|| joules / energy.window_s)
    };
    let gross = cell.median(|run| watts(run, analyse::JOULES_PER_OP));
    let first = cell.counted().0.into_iter().find_map(Run::joules_per_op);
    if let (Some(gross), Some(energy)) = (gross, first) {
        let net = cell.median(|run| watts(run, analyse::JOULES_PER_OP_NET));
        return Ok(LoadPower {
            watts: gross,
            idle_w: net.map(|net| gross - net).filter(|idle| *idle >= 0.0 && *idle <= gross),
            from: energy.source.clone(),
            origin: energy.origin,
            boundary: Some(energy.scope),
            curve: None,
        });
    }
    let known = platform.and_then(|p| Some((p.idle_w.as_ref()?.value, p.full_load_w.as_ref()?)));
    let busy = cell.median(|run| run.value("machine.busy"));
    if let (Some((idle, full)), Some(busy)) = (known, busy) {
        let curve = curve_of(platform, idle, full.value)?;
        let watts = curve.at(busy.clamp(0.0, 1.0)).map_err(|e| request(e.to_string()))?;
        return Ok(LoadPower {
            watts,
            idle_w: Some(idle),
            from: format!("{} and machine.busy", source_text(platform, "full_load_w", &full.from)),
            origin: Origin::Modelled,
            boundary: Some(Scope::Node),
            curve: None,
        });
    }
    let why = cell.runs.iter().find_map(|run| match &run.reading(analyse::JOULES_PER_OP)?.answer {
        model::ReadingValue::Unavailable { reason, .. } => Some(format!(" ({reason})")),
        model::ReadingValue::Value(_) => None,
    });
    Err(request(format!(
        "{} of {label}: its power was not measured{}; give `--platform watts=W`, or a platform \
         with idle_w and full_load_w",
        cell.category,
        why.unwrap_or_default()
    )))
}

/// The platform's graduated load where it has one, else a line.
fn curve_of(platform: Option<&Platform>, idle_w: f64, full_w: f64) -> anyhow::Result<PowerCurve> {
    let points: Vec<(f64, f64)> = platform
        .map(|platform| platform.power_curve.iter().map(|p| (p.load, p.watts)).collect())
        .unwrap_or_default();
    let curve = match points.is_empty() {
        true => PowerCurve::line(idle_w, full_w),
        // The platform's curve, scaled to the power under load.
        false => PowerCurve::through(&points).and_then(|c| c.scaled(full_w / c.full_w())),
    };
    curve.map_err(|error| {
        let name = platform.map_or("", |platform| &platform.name);
        request(format!("platform {name}, power_curve: {error}"))
    })
}

pub(super) fn sourced(
    args: &CostArgs,
    flag: Option<&PlatformFlag>,
    platform: Option<Platform>,
    (name, workload): (String, String),
    (throughput_ops_s, throughput_from): (f64, String),
    mut power: LoadPower,
) -> anyhow::Result<SourcedCandidate> {
    let from_platform = |of: fn(&Platform) -> &Option<GivenValue>| {
        platform.as_ref().and_then(|platform| of(platform).as_ref()).map(|given| given.value)
    };
    let price = flag.and_then(|f| f.price).or_else(|| from_platform(|p| &p.price_usd));
    let price_usd = match (args.energy_only, price) {
        (true, _) => None,
        (false, Some(price)) => Some(price),
        (false, None) => {
            return Err(request(format!(
                "{name}: its price is not known{}; add `price=USD` to its --platform, or ask for \
                 energy and break-even prices alone with --energy-only",
                absence_note(platform.as_ref(), PlatformValue::PriceUsd)
            )));
        }
    };
    let idle = flag.and_then(|f| f.idle);
    // A measured curve is not mixed with the platform's idle power.
    let idle = idle.or_else(|| from_platform(|p| &p.idle_w).filter(|_| power.curve.is_none()));
    power.idle_w = idle.or(power.idle_w);
    let graduated = platform.as_ref().is_some_and(|platform| !platform.power_curve.is_empty());
    let own = power.curve.take().filter(|_| flag.is_none_or(|f| f.idle.is_none()));
    let curve = match power.idle_w {
        _ if own.is_some() => own,
        Some(idle) if idle > power.watts => {
            return Err(request(format!(
                "{name}: its idle power of {idle} W is above the {} W that it draws under load",
                report::format::plain(power.watts)
            )));
        }
        Some(idle) => Some(curve_of(platform.as_ref(), idle, power.watts)?),
        None if graduated => Some(curve_of(platform.as_ref(), 0.0, power.watts)?),
        None => None,
    };
    if args.utilisation < 1.0 && curve.is_none() {
        return Err(request(format!(
            "--utilisation: the idle power of {name} is not known{}; add `idle=W` to its \
             --platform",
            absence_note(platform.as_ref(), PlatformValue::IdleW)
        )));
    }
    let rack_units = flag.and_then(|f| f.rack_units).or_else(|| from_platform(|p| &p.rack_units));
    if args.rack_rent.is_some_and(|rent| rent > 0.0) && rack_units.is_none() {
        return Err(request(format!(
            "--rack-rent: the height of {name} is not known{}; add `rack_units=N` to its \
             --platform",
            absence_note(platform.as_ref(), PlatformValue::RackUnits)
        )));
    }
    let candidate = ServerCandidate {
        name,
        workload,
        price_usd,
        throughput_ops_s,
        active_w: power.watts,
        curve,
        rack_units,
        footprint_m2: flag.and_then(|f| f.m2).or_else(|| from_platform(|p| &p.footprint_m2)),
    };
    Ok(SourcedCandidate {
        candidate,
        platform,
        throughput_from,
        power,
        work: Vec::new(),
        notes: Vec::new(),
    })
}
