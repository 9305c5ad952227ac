//! Selects the levels that are available on this machine.

use host::Root;
use host::knob::KnobError;
use model::design::{AS_FOUND, FactorLevels, SkippedCell};

use super::read::FactorValues;
use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::plan::bench;
use crate::plan::knobs::level_text;
use crate::text::StudyText;

/// Removes the levels that this machine or build lacks, and returns why. A factor without levels
/// stays as found.
///
/// # Errors
/// An unknown knob.
pub(super) fn retain_available(
    source: &StudyText,
    factors: &mut [FactorValues],
    root: &Root,
) -> Result<Vec<SkippedCell>, StudyError> {
    let mut skipped = Vec::new();
    for varied in factors {
        let mut available = Vec::new();
        for level in std::mem::take(&mut varied.levels) {
            let why = unavailable_reason(&level.changes, root).map_err(|(is_unknown, words)| {
                match is_unknown {
                    true => source.at(varied.span.clone(), &words),
                    false => source.at(level.span.clone(), &words),
                }
            })?;
            match why {
                None => available.push(level),
                Some(why) => skipped.push(SkippedCell {
                    levels: FactorLevels::from([(varied.factor.name.clone(), level.name.clone())]),
                    why,
                }),
            }
        }
        varied.factor.levels = available.iter().map(|level| level.name.clone()).collect();
        varied.levels = available;
        if varied.levels.is_empty() {
            varied.factor.levels = vec![AS_FOUND.to_owned()];
        }
    }
    Ok(skipped)
}

/// Why a level is unavailable. An error is one of the study: an unknown knob (true) or an invalid
/// value.
fn unavailable_reason(
    changes: &[(String, toml::Value)],
    root: &Root,
) -> Result<Option<String>, (bool, String)> {
    for (key, value) in changes {
        if let Some(why) = bench::absent(key, value) {
            return Ok(Some(why));
        }
        let Some(knob) = key.strip_prefix("knobs.") else { continue };
        let text = level_text(value).map_err(|words| (false, words))?;
        let level = KnobLevels(vec![(knob.to_owned(), text)]);
        match level.plan(root) {
            // Knobs that this user may not write are unavailable.
            Ok(plan) => {
                if let Some((write, why)) = plan.refused().first() {
                    return Ok(Some(format!("{knob} cannot be turned: {write}: {why}")));
                }
            }
            Err(error @ KnobError::Unknown { .. }) => return Err((true, error.to_string())),
            Err(error) => return Ok(Some(error.to_string())),
        }
    }
    Ok(None)
}
