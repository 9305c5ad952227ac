//! What a study varies: its factors, their levels, and the cells that follow from them.

mod available;
mod conditions;
mod expand;
mod read;

use std::collections::BTreeMap;
use std::ops::Range;

use host::Root;
use model::design::{
    AS_FOUND, AdaptiveRepeats, Conditions, DesignKind, Factor, FactorLevels, SkippedCell,
};
use toml::Spanned;

use super::known_names::check_figure;
use super::size::MAX_CELLS;
use crate::error::StudyError;
use crate::text::{DesignTable, StudySpec, StudyText};

pub(crate) use read::Change;

use conditions::ConditionNames;
use read::FactorValues;

/// Spare repeats of a cell, at most.
const MAX_SPARE: u32 = 100;

/// The design of a study on this machine.
pub(crate) struct FactorDesign {
    varied: Vec<FactorValues>,
    pub(crate) kind: DesignKind,
    pub(crate) baseline: FactorLevels,
    /// The available cells of a list.
    list: Vec<FactorLevels>,
    pub(crate) exclude: Vec<(Range<usize>, Conditions)>,
    pub(crate) skipped: Vec<SkippedCell>,
    pub(crate) adaptive: Option<AdaptiveRepeats>,
    pub(crate) spare_repeats: u32,
}

impl FactorDesign {
    /// # Errors
    /// An unknown setting, factor or level, or an invalid level, each at its place.
    pub(crate) fn of(
        source: &StudyText,
        spec: &StudySpec,
        root: &Root,
    ) -> Result<FactorDesign, StudyError> {
        let mut varied = read::factors(source, spec)?;
        let design = &spec.design;
        let kind = design.kind.as_ref().map_or(DesignKind::default(), |kind| *kind.get_ref());
        check_design(source, design, kind, &varied)?;
        let names = ConditionNames { source, spec, varied: &varied };
        for within in spec.factors.values().filter_map(|table| table.within.as_ref()) {
            names.check_conditions(within.get_ref(), within.span())?;
        }
        for excluded in &design.exclude {
            if excluded.get_ref().is_empty() {
                let words = "an empty exclusion would exclude every cell; name levels";
                return Err(source.at(excluded.span(), words));
            }
            names.check_conditions(excluded.get_ref(), excluded.span())?;
        }
        let mut baseline = names.levels(&design.baseline)?;
        let mut list: Vec<FactorLevels> = Vec::new();
        for entry in &design.list {
            if entry.get_ref().is_empty() {
                return Err(source.at(entry.span(), "an empty cell; name the level of a factor"));
            }
            list.push(names.levels(entry.get_ref())?);
        }
        let skipped = available::retain_available(source, &mut varied, root)?;
        let factors: Vec<Factor> = varied.iter().map(|varied| varied.factor.clone()).collect();
        for levels in list.iter_mut().chain([&mut baseline]) {
            // A factor that is unavailable here stays as found, whatever the design says.
            for factor in factors.iter().filter(|factor| factor.levels == [AS_FOUND]) {
                if let Some(level) = levels.get_mut(&factor.name) {
                    *level = AS_FOUND.to_owned();
                }
            }
        }
        let is_here = |(name, level): (&String, &String)| {
            factors.iter().any(|factor| factor.name == *name && factor.levels.contains(level))
        };
        baseline.retain(|name, level| is_here((name, level)));
        list.retain(|levels| levels.iter().all(is_here));
        if kind == DesignKind::List && list.is_empty() {
            let why: Vec<String> = skipped.iter().map(|skipped| skipped.why.clone()).collect();
            return Err(StudyError::Request(format!(
                "{}: none of its cells can be measured on this machine: {}",
                source.origin,
                why.join("; ")
            )));
        }
        if kind != DesignKind::OneAtATime {
            baseline.clear();
        }
        let exclude = design.exclude.iter().map(|e| (e.span(), e.get_ref().clone())).collect();
        let adaptive = adaptive(source, spec)?;
        let spare_repeats = spare_repeats(source, spec)?;
        Ok(FactorDesign { varied, kind, baseline, list, exclude, skipped, adaptive, spare_repeats })
    }

    /// The cells for one store and workload, before exclusions.
    ///
    /// # Errors
    /// There are more than a plan may have.
    pub(crate) fn cells(
        &self,
        source: &StudyText,
        factors: &[Factor],
        place: (&str, Option<&str>),
    ) -> Result<Vec<FactorLevels>, StudyError> {
        let design = (&self.baseline, &self.list[..]);
        let cells = expand::cells(self.kind, factors, design, place, MAX_CELLS);
        cells.ok_or_else(|| {
            StudyError::Request(format!(
                "{}: its factors have more than {MAX_CELLS} combinations of levels; leave some \
                 out, limit factors by `where`, or set `kind` of [design] to \"one-at-a-time\" or \
                 \"list\"",
                source.origin
            ))
        })
    }

    pub(crate) fn factors(&self) -> Vec<Factor> {
        self.varied.iter().map(|varied| varied.factor.clone()).collect()
    }

    /// The study at these levels.
    ///
    /// # Errors
    /// A key that lies in a value.
    pub(crate) fn at(
        &self,
        source: &StudyText,
        levels: &FactorLevels,
    ) -> Result<StudyText, StudyError> {
        let mut changes: Vec<Change> = Vec::new();
        for varied in &self.varied {
            let Some(name) = levels.get(&varied.factor.name) else { continue };
            let level = varied.levels.iter().find(|level| level.name == *name);
            changes.extend(level.iter().flat_map(|level| level.changes.clone()));
        }
        source.with(&changes).map_err(StudyError::Request)
    }

    /// Refuses two factors that set the same key in one cell.
    pub(crate) fn check_keys(
        &self,
        source: &StudyText,
        levels: &FactorLevels,
    ) -> Result<(), StudyError> {
        let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
        for varied in &self.varied {
            let Some(name) = levels.get(&varied.factor.name) else { continue };
            let level = varied.levels.iter().find(|level| level.name == *name);
            for (key, _) in level.iter().flat_map(|level| &level.changes) {
                if let Some(other) = taken.insert(key, &varied.factor.name) {
                    let words = format!(
                        "the factor `{other}` sets `{key}` in the same cells; limit one of the \
                         two to others with `where`"
                    );
                    return Err(source.at(varied.span.clone(), &words));
                }
            }
        }
        Ok(())
    }

    /// Shows an error of one cell at the level that alone causes it, else with the cell's levels.
    pub(crate) fn blame(
        &self,
        source: &StudyText,
        levels: &FactorLevels,
        error: &StudyError,
        fails: impl Fn(&StudyText) -> bool,
    ) -> StudyError {
        let words = error.reason();
        for varied in &self.varied {
            let Some(name) = levels.get(&varied.factor.name) else { continue };
            let Some(level) = varied.levels.iter().find(|level| level.name == *name) else {
                continue;
            };
            if source.with(&level.changes).is_ok_and(|alone| fails(&alone)) {
                return source.at(level.span.clone(), &words);
            }
        }
        let cell: Vec<String> =
            levels.iter().map(|(name, level)| format!("{name}={level}")).collect();
        StudyError::Request(format!("{}, in the cell {}: {words}", source.origin, cell.join(", ")))
    }
}

/// The tables of `[design]` that fit its kind.
fn check_design(
    source: &StudyText,
    design: &DesignTable,
    kind: DesignKind,
    varied: &[FactorValues],
) -> Result<(), StudyError> {
    if kind == DesignKind::List && design.list.is_empty() {
        let place = design.kind.as_ref().map_or(0..0, Spanned::span);
        let words = "the list is missing; add `list = [{ FACTOR = LEVEL }]`";
        return Err(source.at(place, words));
    }
    if let Some(entry) = design.list.first().filter(|_| kind != DesignKind::List) {
        let words = "a list belongs to `kind = \"list\"`; add that, or leave out the list";
        return Err(source.at(entry.span(), words));
    }
    if let Some(name) = design.baseline.keys().next().filter(|_| kind != DesignKind::OneAtATime) {
        let words = "a baseline belongs to `kind = \"one-at-a-time\"`; add that, or leave it out";
        return Err(source.at(name.span(), words));
    }
    match (&design.kind, varied.is_empty()) {
        (Some(kind), true) => {
            Err(source.at(kind.span(), "there are no factors; add [factors.NAME]"))
        }
        _ => Ok(()),
    }
}

fn spare_repeats(source: &StudyText, spec: &StudySpec) -> Result<u32, StudyError> {
    let Some(spare) = &spec.design.spare_repeats else { return Ok(0) };
    if spec.design.adaptive.is_some() {
        let words =
            "adaptive repeats already continue after invalid runs, up to `most`; leave this out";
        return Err(source.at(spare.span(), words));
    }
    if *spare.get_ref() > MAX_SPARE {
        let words =
            format!("at most {MAX_SPARE}: what is still invalid then will not become valid");
        return Err(source.at(spare.span(), &words));
    }
    Ok(*spare.get_ref())
}

fn adaptive(source: &StudyText, spec: &StudySpec) -> Result<Option<AdaptiveRepeats>, StudyError> {
    let Some(adaptive) = &spec.design.adaptive else { return Ok(None) };
    let AdaptiveRepeats { metric, width, most } = adaptive.get_ref();
    let refuse = |words: &str| Err(source.at(adaptive.span(), words));
    if let Err(error) = check_figure(metric) {
        return refuse(&error);
    }
    if !(*width > 0.0 && *width < 1.0) {
        return refuse("`width` is a share of the median between 0 and 1, such as 0.02");
    }
    if *most < spec.repeats.max(2) {
        return refuse("`most` is the most repeats: at least 2, and no fewer than `repeats`");
    }
    Ok(Some(adaptive.get_ref().clone()))
}
