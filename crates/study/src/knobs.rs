//! The levels of the machine's knobs under which runs happen, checked before anything starts.

use std::ops::Range;

use host::Root;
use host::knob::{KnobError, KnobPlan};
use model::RunSettings;
use toml::Spanned;

use crate::error::StudyError;
use crate::spec::StudySpec;
use crate::study_text::StudyText;

/// Levels such as `("idle", "none")`, which the knobs of a machine are to be at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnobLevels(pub Vec<(String, String)>);

impl KnobLevels {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every write that leads to the levels. Nothing is written.
    ///
    /// # Errors
    /// A knob or level that is not here.
    pub fn plan(&self, root: &Root) -> Result<KnobPlan, KnobError> {
        let levels: Vec<(&str, &str)> =
            self.0.iter().map(|(knob, level)| (knob.as_str(), level.as_str())).collect();
        host::knob::Knobs::plan(root, &levels)
    }

    /// The CPUs that the knob `cpus` leaves to the load, where its level lists them.
    pub fn cpus(&self) -> Option<Vec<u32>> {
        let (_, level) = self.0.iter().find(|(knob, _)| knob == "cpus")?;
        model::cpu_list::parse(level)
    }

    /// What a run under these levels depends on: `knob.NAME = LEVEL`.
    pub fn settings(&self, settings: &mut RunSettings) {
        for (knob, level) in &self.0 {
            settings.insert(format!("knob.{knob}"), level.clone());
        }
    }
}

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
