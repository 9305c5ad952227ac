//! Pairs the runs of two selections.

use std::collections::{BTreeMap, BTreeSet};

use model::{LoopKind, Phase, Run, RunSettings};

use super::error::{CompareError, ComparisonSide};
use super::titles::{ABSENT, titles};

/// Settings that differ between repeats.
const REPEAT_KEYS: [&str; 2] = ["repeat", "seed"];

/// A setting in which the selections differ as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingDifference {
    pub setting: String,
    /// Its values on each side; `(not set)` where a run has none.
    pub a: Vec<String>,
    pub b: Vec<String>,
    /// A warning, in case this difference was not intended.
    pub caution: Option<&'static str>,
}

/// A cell that only one side has.
#[derive(Debug, Clone, PartialEq)]
pub struct Unmatched {
    pub side: ComparisonSide,
    pub title: String,
    /// The settings that its runs share.
    pub settings: RunSettings,
    pub runs: usize,
    /// Invalid runs of the other side that would match it.
    pub invalid_on_other_side: usize,
}

pub(super) struct RunPair<'a> {
    pub(super) title: String,
    pub(super) settings: RunSettings,
    pub(super) a: Vec<&'a Run>,
    pub(super) b: Vec<&'a Run>,
}

pub(super) struct Pairing<'a> {
    pub(super) differences: Vec<SettingDifference>,
    pub(super) cells: Vec<RunPair<'a>>,
    pub(super) unmatched: Vec<Unmatched>,
    pub(super) excluded_a: usize,
    pub(super) excluded_b: usize,
}

/// A run and its settings for comparison.
type KeyedRun<'a> = (&'a Run, RunSettings);
type Cells<'a> = BTreeMap<RunSettings, Vec<KeyedRun<'a>>>;

pub(super) fn pair<'a>(
    a: &[&'a Run],
    b: &[&'a Run],
    machine_of: &dyn Fn(&Run) -> Option<String>,
) -> Result<Pairing<'a>, CompareError> {
    let (mut valid_a, mut invalid_a) = partition_valid(a, ComparisonSide::A, machine_of)?;
    let (mut valid_b, mut invalid_b) = partition_valid(b, ComparisonSide::B, machine_of)?;
    let is_silent = |(_, settings): &KeyedRun<'_>| !settings.contains_key(Run::SURVIVES);
    if valid_a.iter().chain(&valid_b).any(is_silent) {
        // It is derived from other settings, and older files do not have it.
        for (_, settings) in
            [&mut valid_a, &mut invalid_a, &mut valid_b, &mut invalid_b].into_iter().flatten()
        {
            settings.remove(Run::SURVIVES);
        }
    }
    let differences = differences(&valid_a, &valid_b);
    if let Some(phase) = differences.iter().find(|d| d.setting == "phase") {
        return Err(CompareError::Meaningless {
            setting: phase.setting.clone(),
            a: phase.a.join(", "),
            b: phase.b.join(", "),
        });
    }
    let compared: BTreeSet<&str> = differences.iter().map(|d| d.setting.as_str()).collect();
    let group = |runs: Vec<KeyedRun<'a>>| -> Cells<'a> {
        let mut cells = Cells::new();
        for (run, settings) in runs {
            let mut key = settings.clone();
            key.retain(|name, _| !compared.contains(name.as_str()));
            cells.entry(key).or_default().push((run, settings));
        }
        cells
    };
    let (excluded_a, excluded_b) = (invalid_a.len(), invalid_b.len());
    let (cells_a, mut cells_b) = (group(valid_a), group(valid_b));
    let (invalid_a, invalid_b) = (group(invalid_a), group(invalid_b));
    let keys: BTreeSet<RunSettings> = cells_a.keys().chain(cells_b.keys()).cloned().collect();
    let titles = titles(keys.iter());
    let title = |key: &RunSettings| titles.get(key).cloned().unwrap_or_default();

    let (mut cells, mut lonely) = (Vec::new(), Vec::new());
    let alone = |side, key: &RunSettings, runs: usize, others: &Cells<'_>| Unmatched {
        side,
        title: title(key),
        settings: key.clone(),
        runs,
        invalid_on_other_side: others.get(key).map_or(0, Vec::len),
    };
    for (key, of_a) in cells_a {
        let title = title(&key);
        let Some(of_b) = cells_b.remove(&key) else {
            lonely.push(alone(ComparisonSide::A, &key, of_a.len(), &invalid_b));
            continue;
        };
        check_repeats(ComparisonSide::A, &title, &of_a, &compared)?;
        check_repeats(ComparisonSide::B, &title, &of_b, &compared)?;
        let runs = |known: Vec<KeyedRun<'a>>| known.into_iter().map(|(run, _)| run).collect();
        cells.push(RunPair { title, settings: key, a: runs(of_a), b: runs(of_b) });
    }
    for (key, of_b) in cells_b {
        lonely.push(alone(ComparisonSide::B, &key, of_b.len(), &invalid_a));
    }
    if cells.is_empty() {
        let settings: Vec<String> =
            varying(&keys).into_iter().map(|name| format!("`{name}`")).collect();
        return Err(CompareError::NothingInCommon { settings: settings.join(", ") });
    }
    Ok(Pairing { differences, cells, unmatched: lonely, excluded_a, excluded_b })
}

/// The valid and the invalid runs, each once.
fn partition_valid<'a>(
    runs: &[&'a Run],
    side: ComparisonSide,
    machine_of: &dyn Fn(&Run) -> Option<String>,
) -> Result<(Vec<KeyedRun<'a>>, Vec<KeyedRun<'a>>), CompareError> {
    let mut seen = BTreeSet::new();
    let (valid, invalid): (Vec<_>, Vec<_>) = runs
        .iter()
        .filter(|run| seen.insert(run.id.as_str()))
        .map(|run| (*run, comparison_settings(run, machine_of(run))))
        .partition(|(run, _)| run.valid());
    if !valid.is_empty() {
        return Ok((valid, invalid));
    }
    let because = invalid.first().and_then(|(run, _)| run.invalid_because.first());
    Err(match because {
        None => CompareError::Empty(side),
        Some(because) => {
            CompareError::AllInvalid { side, count: invalid.len(), because: because.clone() }
        }
    })
}

/// The run's settings and other conditions, without those of [`REPEAT_KEYS`].
fn comparison_settings(run: &Run, machine: Option<String>) -> RunSettings {
    let mut settings = run.settings.clone();
    settings.retain(|name, _| !REPEAT_KEYS.contains(&name.as_str()));
    let phase = match run.phase {
        Phase::Load => "load",
        Phase::Measure => "measure",
        Phase::Simulate => "simulate",
    };
    let pacing = match &run.pacing {
        LoopKind::Closed { think_s } if *think_s > 0.0 => format!("closed, {think_s} s between"),
        LoopKind::Closed { .. } => "closed".to_owned(),
        LoopKind::Open { rate_ops_s, arrivals } => format!("open, {arrivals}, {rate_ops_s} ops/s"),
    };
    settings.insert("phase".to_owned(), phase.to_owned());
    settings.insert("pacing".to_owned(), pacing);
    settings.insert("store_version".to_owned(), run.store_version.clone());
    settings.entry("threads".to_owned()).or_insert_with(|| run.threads.to_string());
    if let Some(machine) = machine {
        settings.insert("machine".to_owned(), machine);
    }
    settings
}

fn values<'a>(runs: &'a [KeyedRun<'_>], name: &str) -> BTreeSet<&'a str> {
    runs.iter().map(|(_, settings)| settings.get(name).map_or(ABSENT, String::as_str)).collect()
}

/// The settings of which no value occurs on both sides.
fn differences(a: &[KeyedRun<'_>], b: &[KeyedRun<'_>]) -> Vec<SettingDifference> {
    let names: BTreeSet<&String> = a.iter().chain(b).flat_map(|(_, s)| s.keys()).collect();
    let owned = |values: BTreeSet<&str>| values.into_iter().map(str::to_owned).collect();
    names
        .into_iter()
        .filter_map(|name| {
            let (of_a, of_b) = (values(a, name), values(b, name));
            of_a.is_disjoint(&of_b).then(|| SettingDifference {
                setting: name.clone(),
                a: owned(of_a),
                b: owned(of_b),
                caution: caution(name),
            })
        })
        .collect()
}

fn caution(setting: &str) -> Option<&'static str> {
    match setting {
        "machine" => Some("another machine: it may be the cause of any difference"),
        "pacing" => Some("another pacing: throughput and latency depend on how requests arrive"),
        Run::SURVIVES => {
            Some("they promise different durability, and are not comparable in that respect")
        }
        _ if setting == "workload" || setting.starts_with("workload.") => {
            Some("another workload: the stores did not get the same requests")
        }
        _ => None,
    }
}

/// Checks that the runs of one cell and side agree in the compared settings, as repeats do.
fn check_repeats(
    side: ComparisonSide,
    cell: &str,
    runs: &[KeyedRun<'_>],
    compared: &BTreeSet<&str>,
) -> Result<(), CompareError> {
    for setting in compared {
        let values = values(runs, setting);
        if values.len() > 1 {
            return Err(CompareError::Mixed {
                side,
                cell: cell.to_owned(),
                setting: (*setting).to_owned(),
                values: values.into_iter().collect::<Vec<_>>().join(" and "),
            });
        }
    }
    Ok(())
}

/// The settings that do not have one and the same value in all cells.
fn varying(cells: &BTreeSet<RunSettings>) -> BTreeSet<&String> {
    let names: BTreeSet<&String> = cells.iter().flat_map(BTreeMap::keys).collect();
    let differs = |name: &str| {
        let values: BTreeSet<_> = cells.iter().map(|settings| settings.get(name)).collect();
        values.len() > 1
    };
    names.into_iter().filter(|name| differs(name)).collect()
}
