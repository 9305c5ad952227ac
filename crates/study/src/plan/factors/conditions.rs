//! Checks the names in conditions, baselines and lists of cells.

use std::collections::BTreeMap;
use std::ops::Range;

use model::design::{Conditions, FactorLevels, LevelText};
use model::suggest::hint;
use toml::Spanned;

use super::read::FactorValues;
use crate::error::StudyError;
use crate::plan::bench;
use crate::text::{StudySpec, StudyText};

/// What can be named in conditions and lists.
pub(super) struct ConditionNames<'a> {
    pub(super) source: &'a StudyText,
    pub(super) spec: &'a StudySpec,
    pub(super) varied: &'a [FactorValues],
}

impl ConditionNames<'_> {
    /// The levels of a cell that the design names.
    pub(super) fn levels(
        &self,
        table: &BTreeMap<Spanned<String>, Spanned<LevelText>>,
    ) -> Result<FactorLevels, StudyError> {
        let mut levels = FactorLevels::new();
        for (name, level) in table {
            let Some(found) = self.varied.iter().find(|v| v.factor.name == *name.get_ref()) else {
                let known = self.varied.iter().map(|varied| varied.factor.name.as_str());
                let words = format!(
                    "there is no factor `{}`; {}",
                    name.get_ref(),
                    hint(name.get_ref(), known.collect::<Vec<_>>())
                );
                return Err(self.source.at(name.span(), &words));
            };
            let text = &level.get_ref().0;
            self.check_level(found, text).map_err(|words| self.source.at(level.span(), &words))?;
            levels.insert(name.get_ref().clone(), text.clone());
        }
        Ok(levels)
    }

    /// Checks that names are factors, `store` or `workload`, with existing values.
    pub(super) fn check_conditions(
        &self,
        conditions: &Conditions,
        place: Range<usize>,
    ) -> Result<(), StudyError> {
        let refuse = |words: String| Err(self.source.at(place.clone(), &words));
        for (name, wanted) in &conditions.0 {
            if wanted.0.is_empty() {
                return refuse(format!("`{name}` has no value here, so it never holds"));
            }
            let found = self.varied.iter().find(|varied| varied.factor.name == *name);
            for value in &wanted.0 {
                let known: Vec<&str> = match (found, name.as_str()) {
                    (Some(varied), _) => match self.check_level(varied, value) {
                        Ok(()) => continue,
                        Err(words) => return refuse(words),
                    },
                    (None, "store") => {
                        let stores = self.spec.store.keys().map(|name| name.get_ref().as_str());
                        stores.chain(bench::places(self.spec).map(|(kind, _)| kind)).collect()
                    }
                    // A factor may change the sequence.
                    (None, "workload") => continue,
                    (None, _) => {
                        let factors = self.varied.iter().map(|v| v.factor.name.as_str());
                        let known: Vec<&str> = factors.chain(["store", "workload"]).collect();
                        return refuse(format!(
                            "`{name}` is neither a factor nor `store` or `workload`; {}",
                            hint(name, known)
                        ));
                    }
                };
                if !known.contains(&value.as_str()) {
                    return refuse(format!(
                        "the study has no {name} `{value}`; {}",
                        hint(value, known)
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_level(&self, varied: &FactorValues, level: &str) -> Result<(), String> {
        let known = varied.factor.levels.iter().map(String::as_str);
        // A scaled study may lack levels that the rest of it names.
        if self.source.scale.is_some() || known.clone().any(|known| known == level) {
            return Ok(());
        }
        Err(format!(
            "`{}` has no level `{level}`; {}",
            varied.factor.name,
            hint(level, known.collect::<Vec<_>>())
        ))
    }
}
