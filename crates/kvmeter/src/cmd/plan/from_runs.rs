//! A machine whose capacity was measured.

use std::collections::BTreeMap;

use analyse::cost::LoadPower;
use analyse::fleet_plan::{Capacity, CapacityBasis, HeldPoint};
use analyse::search::{ClientHealth, RateTrial, TrialOutcome};
use analyse::slo::Objective;
use model::Run;
use report::cells::ReportCell;
use report::format;

use super::choice::ServingMachine;
use super::measured;
use super::prices::COMMAND_LINE;
use crate::cmd::cost::candidates::platform_and_name;
use crate::flags::platform::PlatformFlag;

/// The machine of open loops; None where the objective held at none of their rates.
pub fn from_runs<'a>(
    cell: &ReportCell<'_>,
    objective: &Objective,
    flag: Option<&'a PlatformFlag>,
) -> anyhow::Result<Option<ServingMachine<'a>>> {
    let (platform, machine) = platform_and_name(flag, cell.execution)?;
    let name = format!("{} on {machine}", cell.series);
    let units = repeats(cell, objective);
    let found: Vec<Capacity> = units.iter().filter_map(|it| Capacity::of_trials(it)).collect();
    let Some(capacity_ops_s) = Capacity::median_ops_s(&found) else { return Ok(None) };
    let mut notes = Vec::new();
    if found.len() < units.len() {
        notes.push(format!(
            "{name}: in {} of {} repeats no rate held.",
            units.len() - found.len(),
            units.len()
        ));
    }
    let power = match flag.and_then(|flag| flag.watts) {
        Some(watts) => Ok(LoadPower::given(watts, COMMAND_LINE)),
        None => {
            let near = nearest(cell, capacity_ops_s);
            LoadPower::of_runs(&near, platform.as_ref(), &name).map_err(|error| error.to_string())
        }
    };
    notes.extend(power.iter().filter_map(|power| power.boundary_note(&name)));
    notes.extend(found.iter().find_map(|capacity| open_end(&name, capacity)));
    let data_room = measured::data_room(&name, cell, flag, platform.as_ref(), &mut notes);
    let network = measured::network(cell, flag, platform.as_ref());
    Ok(Some(ServingMachine {
        flag,
        capacity_ops_s,
        capacity_from: source(&found),
        repeats_ops_s: found.iter().map(|capacity| capacity.rate_ops_s).collect(),
        held: held(&units),
        trials: units,
        write_share: measured::write_share(cell),
        power,
        data_room,
        network,
        measured_bytes: cell.median(measured::data_bytes),
        notes,
        name,
        platform,
    }))
}

/// Trials by repeat, where each repeat tried several rates; else all of them as one.
fn repeats(cell: &ReportCell<'_>, objective: &Objective) -> Vec<Vec<RateTrial>> {
    let mut by_repeat: BTreeMap<(&str, Option<&String>), Vec<RateTrial>> = BTreeMap::new();
    for run in &cell.runs {
        let trial = RateTrial::of(run, objective, ClientHealth::of(run));
        let key = (run.execution.as_str(), run.settings.get("repeat"));
        by_repeat.entry(key).or_default().extend(trial);
    }
    let several = |trials: &Vec<RateTrial>| {
        trials.iter().any(|trial| trial.rate_ops_s != trials[0].rate_ops_s)
    };
    match by_repeat.values().all(several) {
        true => by_repeat.into_values().collect(),
        false => vec![by_repeat.into_values().flatten().collect()],
    }
}

/// The valid runs at the rate that is nearest to the capacity.
fn nearest<'a>(cell: &ReportCell<'a>, capacity_ops_s: f64) -> Vec<&'a Run> {
    let away = |run: &&Run| (run.target_rate().unwrap_or(0.0) - capacity_ops_s).abs();
    let valid = || cell.runs.iter().copied().filter(|run| run.valid());
    let least = valid().map(|run| away(&run)).fold(f64::INFINITY, f64::min);
    valid().filter(|run| away(run) <= least).collect()
}

/// Rates that held, with the latency of the objective's first condition.
fn held(repeats: &[Vec<RateTrial>]) -> Vec<HeldPoint> {
    let holds = repeats.iter().flatten().filter(|trial| trial.outcome() == TrialOutcome::Held);
    let mut points: Vec<HeldPoint> = holds
        .filter_map(|trial| {
            let latency_ns = trial.judgement.results.first()?.measured_ns?;
            Some(HeldPoint { rate_ops_s: trial.rate_ops_s, latency_ns })
        })
        .collect();
    points.sort_by(|a, b| a.rate_ops_s.total_cmp(&b.rate_ops_s));
    points.dedup_by(|a, b| a.rate_ops_s == b.rate_ops_s);
    points
}

fn source(found: &[Capacity]) -> String {
    let count = |value: f64| format::count_short(value);
    let one = match (found.len(), &found[0].basis) {
        (1, CapacityBasis::Measured { not_held_ops_s: Some(above) }) => {
            format!("the highest measured rate that held; {} did not", count(*above))
        }
        (1, CapacityBasis::Measured { not_held_ops_s: None }) => {
            "the highest measured rate, which held".to_owned()
        }
        (1, CapacityBasis::Interpolated { held_ops_s, broke_ops_s }) => format!(
            "interpolated between measured rates: {} held, {} did not",
            count(*held_ops_s),
            count(*broke_ops_s)
        ),
        (repeats, _) => format!("median of {repeats} repeats"),
    };
    let interpolated =
        found.iter().any(|it| matches!(it.basis, CapacityBasis::Interpolated { .. }));
    match interpolated && found.len() > 1 {
        true => format!("{one}, interpolated between measured rates"),
        false => one,
    }
}

fn open_end(name: &str, capacity: &Capacity) -> Option<String> {
    let CapacityBasis::Measured { not_held_ops_s: None } = capacity.basis else { return None };
    Some(format!(
        "{name}: no rate above {} was measured, so that one machine may hold more.",
        format::target_rate(capacity.rate_ops_s)
    ))
}
