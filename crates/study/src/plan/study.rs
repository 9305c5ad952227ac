//! Plans a study: cells, repeats and their order, grouped by what is expensive to change.

use std::path::Path;

use host::Root;
use model::Design;
use model::design::{FactorLevels, SkippedCell};
use workload::DatasetId;

use super::cells::{CellPlan, units};
use super::estimate::mark_copies;
use super::factors::FactorDesign;
use super::known_names;
use super::order::{Agree, order};
use super::replay::check_stdin;
use super::segments::{Plan, Segment};
use super::size::check_runs;
use super::step::Activity;
use super::stores::unavailable;
use crate::error::StudyError;
use crate::text::{StudySpec, StudyText};

impl Plan {
    /// Every run of a study on the machine of `root`. Stores without a path get a folder of
    /// their own under `data`.
    pub fn of(source: &StudyText, data: &Path, root: &Root) -> Result<Plan, StudyError> {
        let source = &source.on(root);
        let spec = source.spec()?;
        let varying = FactorDesign::of(source, &spec, root)?;
        let (first, units) = units(source, &varying, data, root)?;
        let usual = first.repeats.saturating_add(varying.spare_repeats);
        let (key, repeats) = match &varying.adaptive {
            Some(adaptive) => ("`most` of [design.adaptive]", adaptive.most),
            None => ("`repeats`", usual),
        };
        let each = units.iter().flatten().map(|segment| segment.steps.len()).sum();
        check_runs(&format!("{}: {key} of", source.origin), repeats, each)?;
        let costly: Vec<CostlySettings> = units.iter().map(CostlySettings::of).collect();
        let mut segments: Vec<Segment> = Vec::new();
        for (unit, repeat) in order(&costly, &CostlySettings::AGREE, repeats, first.seed) {
            for segment in &units[unit] {
                let mut segment = segment.clone();
                for step in &mut segment.steps {
                    (step.unit, step.repeat) = (unit as u32, repeat);
                    step.settings.insert("repeat".to_owned(), repeat.to_string());
                }
                match segments.last_mut() {
                    Some(last) if continues(last, &segment, &units, repeat) => {
                        last.steps.append(&mut segment.steps);
                    }
                    _ => segments.push(segment),
                }
            }
        }
        mark_copies(&mut segments);
        let steps = segments.iter_mut().flat_map(|segment| &mut segment.steps);
        steps.enumerate().for_each(|(n, step)| step.ordinal = n as u32 + 1);
        let missing = unavailable(source, &spec).into_iter().map(|(store, why)| SkippedCell {
            levels: FactorLevels::from([("store".to_owned(), store)]),
            why,
        });
        let factors = varying.factors();
        for step in segments.iter_mut().flat_map(|segment| &mut segment.steps) {
            let load = step.activity.load_mut();
            if let Some(calibrate) = load.and_then(|load| load.calibrate.as_mut()) {
                calibrate.shared_by_all_rates(&step.settings, &factors);
            }
        }
        check_calibration(source, &spec, &segments)?;
        let design = Design {
            kind: varying.kind,
            factors,
            baseline: varying.baseline.clone(),
            skipped: varying.skipped.iter().cloned().chain(missing).collect(),
            adaptive: varying.adaptive.clone(),
            spare_repeats: varying.spare_repeats,
            ..Design::default()
        };
        let plan = Plan { text: source.text.clone(), segments, repeats: first.repeats, ..first };
        let plan = Plan { design: known_names::designed(source, &spec, &plan, design)?, ..plan };
        check_stdin(&plan)?;
        Ok(plan)
    }
}

/// Refuses a calibration whose maximum no run uses.
fn check_calibration(
    source: &StudyText,
    spec: &StudySpec,
    segments: &[Segment],
) -> Result<(), StudyError> {
    let uses = |segment: &Segment| {
        segment
            .steps
            .iter()
            .filter_map(|step| step.activity.load())
            .any(|load| load.calibrate.is_some())
    };
    match &spec.calibrate {
        Some(table) if !segments.iter().any(uses) => {
            let words = "no run has a rate that is a share of this maximum; give one as \
                         `rate = \"80%\"` in [measure] or in a factor";
            Err(source.at(table.slo.span(), words))
        }
        _ => Ok(()),
    }
}

/// What has to be changed for a unit.
struct CostlySettings<'a> {
    first: Option<&'a Segment>,
    dataset: Option<DatasetId>,
}

impl<'a> CostlySettings<'a> {
    /// Knobs, then data, then the server or the way in which a store is opened.
    const AGREE: [Agree<CostlySettings<'a>>; 3] = [
        |a, b| a.first.map(|a| &a.knobs) == b.first.map(|b| &b.knobs),
        |a, b| {
            let directory = |segment: &'a Segment| (&segment.store.scheme, &segment.store.path);
            a.first.map(directory) == b.first.map(directory) && a.dataset == b.dataset
        },
        |a, b| {
            let target = |segment: &'a Segment| (&segment.store, &segment.server);
            a.first.map(target) == b.first.map(target)
        },
    ];

    fn of(unit: &'a CellPlan) -> CostlySettings<'a> {
        let first = unit.first();
        CostlySettings { first, dataset: first.and_then(dataset) }
    }
}

/// The data of a segment's first run on a store.
fn dataset(segment: &Segment) -> Option<DatasetId> {
    let load = segment.steps.first()?.activity.load()?;
    Some(load.workload.dataset())
}

/// Whether a unit can run on the store or server that the previous one leaves open: the same
/// settings, within one repeat, and no step that begins with an empty store.
fn continues(last: &Segment, next: &Segment, units: &[CellPlan], repeat: u32) -> bool {
    let alone = |segment: &Segment| {
        segment.steps.iter().all(|step| {
            matches!(step.activity, Activity::Measure(_))
                && units.get(step.unit as usize).is_some_and(|unit| unit.len() == 1)
        })
    };
    last.steps.iter().all(|step| step.repeat == repeat)
        && last.knobs == next.knobs
        && (&last.store, &last.server) == (&next.store, &next.server)
        && dataset(last) == dataset(next)
        && alone(last)
        && alone(next)
}
