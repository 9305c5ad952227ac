//! Plans the cells of a design: each is the study with its levels put in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use host::Root;
use model::Phase;
use model::design::{Factor, FactorLevels, setting_of};
use toml::Spanned;

use super::factors::FactorDesign;
use super::segments::{Plan, Segment};
use super::size::MAX_CELLS;
use super::step::Step;
use super::{bench, document};
use crate::error::StudyError;
use crate::text::{StudySpec, StudyText};

/// The segments of one cell for one store, once through its sequence.
pub(super) type CellPlan = Vec<Segment>;

/// A cell on one store under one workload; none for a load.
type Place = (FactorLevels, String, Option<String>);

/// Every unit of a study, and the plan of its first cell for what all cells share.
///
/// # Errors
/// A cell that cannot be planned; no cell left.
pub(super) fn units(
    source: &StudyText,
    varying: &FactorDesign,
    data: &Path,
    root: &Root,
) -> Result<(Plan, Vec<CellPlan>), StudyError> {
    let factors = varying.factors();
    let (cells, places) = cells(source, varying, &factors)?;
    let mut first: Option<Plan> = None;
    let mut units: Vec<CellPlan> = Vec::new();
    let mut excluded = BTreeSet::new();
    for levels in &cells {
        varying.check_keys(source, levels)?;
        let text = varying.at(source, levels)?;
        // Only what runs in this cell has to be valid in it.
        let runs = |store: &str, bench: Option<&str>| {
            let of_cell = |(at, of, workload): &&Place| {
                at == levels && of == store && (bench.is_none() || workload.as_deref() == bench)
            };
            places.iter().any(|place| of_cell(&place))
        };
        let plan =
            document::of(&text, data, root, &runs).map_err(|error| match levels.is_empty() {
                true => error,
                false => varying.blame(source, levels, &error, |alone| {
                    document::of(alone, data, root, &runs).is_err()
                }),
            })?;
        for unit in by_store(&plan.segments) {
            let left = of_cell(unit, levels, &places, &factors, varying, &mut excluded);
            if !left.is_empty() {
                units.push(left);
            }
        }
        first.get_or_insert(plan);
    }
    let idle = varying.exclude.iter().enumerate().find(|(n, _)| !excluded.contains(n));
    // Levels that a smaller size or this machine does not have cannot be excluded either.
    let whole = source.scale.is_none() && varying.skipped.is_empty();
    if let Some((_, (place, _))) = idle.filter(|_| whole) {
        let words = "this excludes no cell; correct it or leave it out";
        return Err(source.at(place.clone(), words));
    }
    match first {
        Some(plan) if !units.is_empty() => Ok((plan, units)),
        _ => Err(StudyError::Request(format!(
            "{}: no cell is left to run: everything is excluded",
            source.origin
        ))),
    }
}

/// The cells that there are when conditions are looked at, and where each of them holds.
fn cells(
    source: &StudyText,
    varying: &FactorDesign,
    factors: &[Factor],
) -> Result<(Vec<FactorLevels>, BTreeSet<Place>), StudyError> {
    let mut cells: Vec<FactorLevels> = Vec::new();
    let mut places = BTreeSet::new();
    let spec = source.spec()?;
    let sequences = CellSequences::of(source, &spec, varying, factors)?;
    // An empty study is planned too, so that planning reports what is missing.
    let benches: Vec<_> = bench::places(&spec).map(|(kind, name)| (kind, Some(name))).collect();
    let nothing = (spec.store.is_empty() && benches.is_empty()).then_some("");
    let stores = spec.store.keys().map(|name| name.get_ref().as_str()).chain(nothing);
    let store_places = stores.flat_map(|store| sequences.workloads().map(move |w| (store, w)));
    for (store, workload) in store_places.chain(benches.iter().copied()) {
        let is_bench = benches.contains(&(store, workload));
        for levels in varying.cells(source, factors, (store, workload))? {
            if !is_bench && !sequences.has(&levels, workload) {
                continue;
            }
            let place = (levels.clone(), store.to_owned(), workload.map(str::to_owned));
            if places.insert(place) && !cells.contains(&levels) {
                cells.push(levels);
            }
        }
    }
    Ok((cells, places))
}

/// The workloads at each combination of the factors that change the sequence, cached because reading
/// a study takes time.
struct CellSequences {
    factors: Vec<String>,
    workloads: BTreeMap<FactorLevels, BTreeSet<Option<String>>>,
}

impl CellSequences {
    fn of(
        source: &StudyText,
        spec: &StudySpec,
        varying: &FactorDesign,
        factors: &[Factor],
    ) -> Result<CellSequences, StudyError> {
        let changes = |factor: &&Factor| factor.sets.iter().any(|key| key == "sequence");
        let factors: Vec<&Factor> = factors.iter().filter(changes).collect();
        // Where none of them counts, the study's own sequence holds.
        let mut all = BTreeMap::from([(FactorLevels::new(), workloads(spec))]);
        for factor in &factors {
            for before in all.keys().cloned().collect::<Vec<_>>() {
                for level in &factor.levels {
                    let mut levels = before.clone();
                    levels.insert(factor.name.clone(), level.clone());
                    let own = workloads(&varying.at(source, &levels)?.spec()?);
                    all.insert(levels, own);
                }
            }
            if all.len() > MAX_CELLS {
                return Err(StudyError::Request(format!(
                    "{}: the factors that change `sequence` have more than {MAX_CELLS} \
                     combinations of levels; leave some out",
                    source.origin
                )));
            }
        }
        let factors = factors.into_iter().map(|factor| factor.name.clone()).collect();
        Ok(CellSequences { factors, workloads: all })
    }

    /// Each that is measured anywhere.
    fn workloads(&self) -> impl Iterator<Item = Option<&str>> {
        let all: BTreeSet<_> = self.workloads.values().flatten().map(Option::as_deref).collect();
        all.into_iter()
    }

    fn has(&self, levels: &FactorLevels, workload: Option<&str>) -> bool {
        let mut own = levels.clone();
        own.retain(|name, _| self.factors.contains(name));
        let here = self.workloads.get(&own);
        here.is_some_and(|here| here.iter().any(|known| known.as_deref() == workload))
    }
}

/// The workloads of the sequence; None for a load. An empty sequence is planned too, so that
/// planning reports the error.
fn workloads(spec: &StudySpec) -> BTreeSet<Option<String>> {
    let workload = |step: &Spanned<String>| match step.get_ref().as_str() {
        "load" | "clear" => None,
        name => Some(name.to_owned()),
    };
    let all: BTreeSet<_> = spec.sequence.iter().map(workload).collect();
    if all.is_empty() { BTreeSet::from([None]) } else { all }
}

/// One store's segments stand together.
fn by_store(segments: &[Segment]) -> Vec<Vec<Segment>> {
    let unit = |segment: &Segment| segment.steps.first().map(|step| step.unit);
    segments.chunk_by(|a, b| unit(a) == unit(b)).map(<[Segment]>::to_vec).collect()
}

/// The part of a store's sequence that belongs to a cell, with the levels in its settings.
fn of_cell(
    unit: Vec<Segment>,
    levels: &FactorLevels,
    places: &BTreeSet<Place>,
    factors: &[Factor],
    varying: &FactorDesign,
    excluded: &mut BTreeSet<usize>,
) -> CellPlan {
    let mut left = Vec::new();
    for mut segment in unit {
        segment.steps.retain_mut(|step| {
            let workload = workload_of(step);
            let store = segment.store.scheme.clone();
            if !places.contains(&(levels.clone(), store, workload)) {
                return false;
            }
            for factor in factors {
                if let Some(level) = levels.get(&factor.name) {
                    step.settings.insert(setting_of(&factor.name), level.clone());
                }
            }
            let mut out = varying.exclude.iter().enumerate();
            match out.find(|(_, (_, conditions))| conditions.hold(&step.settings)) {
                Some((n, _)) => {
                    excluded.insert(n);
                    false
                }
                None => true,
            }
        });
        if !segment.steps.is_empty() {
            left.push(segment);
        }
    }
    left
}

/// As the sequence names it; none of a load of its own.
fn workload_of(step: &Step) -> Option<String> {
    let name = step.settings.get("workload")?;
    match (step.phase(), name.as_str()) {
        (Phase::Load, "load") => None,
        _ => Some(name.clone()),
    }
}
