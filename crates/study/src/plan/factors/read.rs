//! Reads factors from the tables of a study, and checks every level.

use std::collections::BTreeMap;
use std::ops::Range;

use model::design::Factor;
use model::suggest::hint;
use model::{MICRO, SIMULATE};
use toml::Spanned;

use crate::error::StudyError;
use crate::plan::bench;
use crate::text::{FactorTable, LevelsTable, StudySpec, StudyText};

/// A key of the study and its value.
pub(crate) type Change = (String, toml::Value);

/// A factor with the changes of its levels.
#[derive(Debug, Clone)]
pub(crate) struct FactorValues {
    pub(crate) factor: Factor,
    pub(crate) levels: Vec<LevelValues>,
    pub(crate) span: Range<usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct LevelValues {
    pub(crate) name: String,
    pub(crate) changes: Vec<Change>,
    pub(crate) span: Range<usize>,
}

/// Tables in which a factor may set a key; those of the last have names that the study gives.
const SECTIONS: [&str; 7] = ["measure", "load", "data", "knobs", "beside", "calibrate", "sequence"];
/// Tables of which no key can vary within a study, and why.
const FIXED: [(&str, &str); 2] = [
    (
        "probes",
        "probes are the same for all runs of a study: figures that were read in \
         different ways are not compared. Make two studies of it",
    ),
    (
        "agents",
        "agents are the same for all runs: they are connected once. Make a study \
         for each set of them, and merge the results",
    ),
];
const NAMED_SECTIONS: [&str; 5] = ["store", "server", "workloads", MICRO, SIMULATE];
/// Reserved names.
const TAKEN: [&str; 3] = ["store", "workload", "repeat"];

/// The factors of a study in its order.
///
/// # Errors
/// An invalid name, key or level, at its place.
pub(crate) fn factors(
    source: &StudyText,
    spec: &StudySpec,
) -> Result<Vec<FactorValues>, StudyError> {
    let mut tables: Vec<_> = spec.factors.iter().collect();
    tables.sort_by_key(|(name, _)| name.span().start);
    tables.into_iter().map(|(name, table)| factor(source, spec, name, table)).collect()
}

fn factor(
    source: &StudyText,
    spec: &StudySpec,
    name: &Spanned<String>,
    table: &FactorTable,
) -> Result<FactorValues, StudyError> {
    check_name(source, name)?;
    let levels = match (table.levels.get_ref(), &table.set) {
        (LevelsTable::Values(values), Some(set)) => {
            check_key(source, spec, set.get_ref(), set.span())?;
            let level = |value: &Spanned<toml::Value>| LevelValues {
                name: level_name(value.get_ref()),
                changes: vec![(set.get_ref().clone(), value.get_ref().clone())],
                span: value.span(),
            };
            values.iter().map(level).collect()
        }
        (LevelsTable::Tables(tables), None) => tables_of(source, spec, tables)?,
        (LevelsTable::Values(_), None) => {
            let words =
                "the key that the levels set is missing; write it as `set = \"measure.rate\"`";
            return Err(source.at(name.span(), words));
        }
        (LevelsTable::Tables(_), Some(set)) => {
            let words = "each level names its own keys here; leave `set` out";
            return Err(source.at(set.span(), words));
        }
    };
    if levels.is_empty() {
        let words = "a factor without a level leaves every cell empty; give it at least one";
        return Err(source.at(table.levels.span(), words));
    }
    for (n, level) in levels.iter().enumerate() {
        if levels[..n].iter().any(|before| before.name == level.name) {
            return Err(source.at(level.span.clone(), "this level is there already"));
        }
        let key = match (table.levels.get_ref(), &table.set) {
            (LevelsTable::Values(_), Some(set)) => set.span(),
            _ => level.span.clone(),
        };
        check_level(source, level, key)?;
    }
    let mut sets: Vec<String> = Vec::new();
    for (key, _) in levels.iter().flat_map(|level| &level.changes) {
        if !sets.contains(key) {
            sets.push(key.clone());
        }
    }
    let conditions = table.within.as_ref().map(|w| w.get_ref().clone()).unwrap_or_default();
    let factor = Factor {
        name: name.get_ref().clone(),
        within: bench::within(spec, &sets, conditions),
        sets,
        levels: levels.iter().map(|level| level.name.clone()).collect(),
        given: table.given,
    };
    Ok(FactorValues { factor, levels, span: name.span() })
}

fn tables_of(
    source: &StudyText,
    spec: &StudySpec,
    tables: &BTreeMap<Spanned<String>, BTreeMap<Spanned<String>, toml::Value>>,
) -> Result<Vec<LevelValues>, StudyError> {
    let mut levels = Vec::new();
    for (name, keys) in tables {
        if keys.is_empty() {
            return Err(source.at(name.span(), "this level sets nothing; name a key"));
        }
        for key in keys.keys() {
            check_key(source, spec, key.get_ref(), key.span())?;
        }
        levels.push(LevelValues {
            name: name.get_ref().clone(),
            changes: keys.iter().map(|(k, v)| (k.get_ref().clone(), v.clone())).collect(),
            span: name.span(),
        });
    }
    levels.sort_by_key(|level| level.span.start);
    Ok(levels)
}

/// It becomes part of a setting's name, `factor.NAME`, and of checks.
fn check_name(source: &StudyText, name: &Spanned<String>) -> Result<(), StudyError> {
    let text = name.get_ref();
    if TAKEN.contains(&text.as_str()) {
        let words = format!("kvmeter uses the name `{text}` itself; give the factor another one");
        return Err(source.at(name.span(), &words));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain) {
        return Ok(());
    }
    let words = "a factor's name begins with a letter and holds only letters, digits, `_` and `-`";
    Err(source.at(name.span(), words))
}

/// Checks that the key exists. Keys of named tables must be in a table of the study: a factor adds
/// no store.
fn check_key(
    source: &StudyText,
    spec: &StudySpec,
    key: &str,
    place: Range<usize>,
) -> Result<(), StudyError> {
    let parts: Vec<&str> = key.split('.').collect();
    let first = parts.first().copied().unwrap_or_default();
    let refuse = |words: String| Err(source.at(place.clone(), &words));
    if parts.iter().any(|part| part.is_empty()) {
        return refuse(format!("`{key}` is not a key; write it as `measure.rate`"));
    }
    if NAMED_SECTIONS.contains(&first) {
        let names: Vec<&str> = match first {
            "store" => spec.store.keys().map(|name| name.get_ref().as_str()).collect(),
            MICRO => spec.micro.keys().map(|name| name.get_ref().as_str()).collect(),
            SIMULATE => spec.simulate.keys().map(|name| name.get_ref().as_str()).collect(),
            "server" => spec.server.keys().map(|name| name.get_ref().as_str()).collect(),
            _ => spec.workloads.keys().map(|name| name.get_ref().as_str()).collect(),
        };
        return match parts.get(1) {
            _ if parts.len() < 3 => {
                refuse(format!("`{key}` names no setting; write it as `{first}.NAME.KEY`"))
            }
            Some(name) if names.contains(name) => Ok(()),
            Some(name) if names.is_empty() => {
                refuse(format!("the study has no table [{first}.{name}]; add it"))
            }
            Some(name) => refuse(format!(
                "the study has no table [{first}.{name}]; {}",
                hint(name, names.iter().copied())
            )),
            None => Ok(()),
        };
    }
    if let Some((_, why)) = FIXED.iter().find(|(table, _)| *table == first) {
        return refuse(format!("`{key}` cannot be a factor: {why}"));
    }
    if !SECTIONS.contains(&first) {
        let known = SECTIONS.iter().chain(&NAMED_SECTIONS).copied();
        return refuse(format!(
            "`{key}` is not a setting of store, server, workload, load, measure, data, knobs, \
             beside, calibrate, micro or simulate; {}",
            hint(first, known.collect::<Vec<_>>().iter().copied())
        ));
    }
    Ok(())
}

/// Checks that the study parses with this level; errors are shown at the level, or at an unknown
/// key.
fn check_level(
    source: &StudyText,
    level: &LevelValues,
    key: Range<usize>,
) -> Result<(), StudyError> {
    let keys: Vec<&str> = level.changes.iter().map(|(key, _)| key.as_str()).collect();
    let place = || level.span.clone();
    let changed = source.with(&level.changes).map_err(|words| source.at(place(), &words))?;
    changed.spec().map(drop).map_err(|error| {
        let words = error.reason();
        let place = if words.starts_with("unknown field") { key } else { place() };
        source.at(place, &format!("{}: {words}", keys.join(", ")))
    })
}

/// A level as it stands in `factor.NAME`.
fn level_name(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
