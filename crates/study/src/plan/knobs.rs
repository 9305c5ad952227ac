//! `[knobs]` of a study, checked level by level.

use std::ops::Range;

use host::Root;
use host::knob::KnobError;
use toml::Spanned;

use crate::error::StudyError;
use crate::knobs::KnobLevels;
use crate::text::{StudySpec, StudyText};

/// A level as `kvmeter knob set` takes it.
pub(crate) fn level_text(level: &toml::Value) -> Result<String, String> {
    match level {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        // `turbo = off` without quotes is no TOML, so people write `false`.
        toml::Value::Boolean(on) => Ok((if *on { "on" } else { "off" }).to_owned()),
        other => Err(format!("a level is text or a number, not {}", other.type_str())),
    }
}

/// `[knobs]` of a study: levels by name, as `kvmeter knob set` takes them.
pub(crate) fn of_study(
    source: &StudyText,
    spec: &StudySpec,
    root: &Root,
) -> Result<KnobLevels, StudyError> {
    let mut levels = KnobLevels::default();
    for (knob, level) in spec.knobs.iter().flatten() {
        let text = level_text(level.get_ref()).map_err(|words| source.at(level.span(), &words))?;
        levels.0.push((knob.get_ref().clone(), text));
        // One by one, so that an error points at its knob; conflicts show at the last one.
        if let Err(error) = levels.plan(root) {
            let place: Range<usize> = match error {
                KnobError::NoSuchLevel { .. } => level.span(),
                _ => Spanned::span(knob),
            };
            return Err(source.at(place, &error.to_string()));
        }
    }
    Ok(levels)
}
