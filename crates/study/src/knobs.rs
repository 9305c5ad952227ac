//! The machine's knobs around runs: planned before anything starts, turned with a journal and a
//! supervisor, put back whatever happens.

use std::ops::Range;
use std::process::Command;
use std::sync::Arc;

use host::Root;
use host::knob::{Journal, KnobError, KnobPlan, Proof, ProofOutcome, RestoreOutcome, state_folder};
use model::{Fact, RunSettings};
use toml::Spanned;

use crate::error::StudyError;
use crate::spec::StudySpec;
use crate::study_text::StudyText;

/// Levels such as `("idle", "none")`, which the knobs of a machine are to be at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnobLevels(pub Vec<(String, String)>);

/// How the process is started that puts the knobs back when this one is killed.
pub type Supervisor = Arc<dyn Fn() -> Command + Send + Sync>;

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
    pub(crate) fn cpus(&self) -> Option<Vec<u32>> {
        let (_, level) = self.0.iter().find(|(knob, _)| knob == "cpus")?;
        host::cpu_list(level)
    }

    /// What a run under these levels depends on: `knob.NAME = LEVEL`.
    pub(crate) fn settings(&self, settings: &mut RunSettings) {
        for (knob, level) in &self.0 {
            settings.insert(format!("knob.{knob}"), level.clone());
        }
    }
}

/// The proven effects of turned knobs.
#[derive(Debug, Clone, Default)]
pub struct KnobEffects(pub Vec<Proof>);

impl KnobEffects {
    /// `knob.NAME.effect`: whether the effect was proven. A level without proof is another condition
    /// than a proven one.
    pub(crate) fn settings(&self, settings: &mut RunSettings) {
        for proof in &self.0 {
            let word = match proof.outcome {
                ProofOutcome::Proven(_) => "proven",
                ProofOutcome::Unverified(_) => "unverified",
                ProofOutcome::Refuted(_) => "none",
            };
            settings.insert(format!("knob.{}.effect", proof.knob), word.to_owned());
        }
    }

    /// The effects as facts of the machine.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let fact = |proof: &Proof| Fact {
            name: format!("knob.{}", proof.knob),
            value: Ok(proof.to_string()),
            source: "kvmeter knob".to_owned(),
        };
        self.0.iter().map(fact).collect()
    }
}

/// Runs `work` while the knobs of the machine stand at `levels`: journalled, watched over by a
/// process of its own, read back, proven, and put back when `work` has ended, however it ended.
/// Without levels it only runs `work`. Also returns how the knobs were put back.
///
/// # Errors
/// An unavailable level, a refused write or a knob without effect (`work` is then not run); the
/// error of `work`; a knob that could not be put back.
pub fn with_levels<T, E: From<KnobError>>(
    root: &Root,
    levels: &KnobLevels,
    supervisor: &Supervisor,
    work: impl FnOnce(&KnobEffects) -> Result<T, E>,
) -> Result<(T, Option<RestoreOutcome>), E> {
    if levels.is_empty() {
        return Ok((work(&KnobEffects::default())?, None));
    }
    let plan = levels.plan(root)?;
    let journal = Journal::open(root, &state_folder()?)?.supervised_by(supervisor());
    let mut turned = plan.apply(journal)?;
    turned.check_effect()?;
    let effects = KnobEffects(turned.proofs().to_vec());
    let done = work(&effects);
    let restored = turned.restore();
    // The error of the work comes first; the journal still has the rest.
    let done = done?;
    Ok((done, Some(restored?)))
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

/// Turns the knobs for runs.
pub trait KnobControl {
    /// Runs `work` while the knobs are at `levels`, and puts them back.
    ///
    /// # Errors
    /// As [`with_levels`].
    fn turn(
        &mut self,
        levels: &KnobLevels,
        work: &mut dyn FnMut(&KnobEffects) -> Result<(), StudyError>,
    ) -> Result<(), StudyError>;
}

/// The knobs are turned already, around all of it.
pub struct KnobsHeld<'a>(pub &'a KnobEffects);

impl KnobControl for KnobsHeld<'_> {
    fn turn(
        &mut self,
        _: &KnobLevels,
        work: &mut dyn FnMut(&KnobEffects) -> Result<(), StudyError>,
    ) -> Result<(), StudyError> {
        work(self.0)
    }
}

/// They are turned for each block of runs at the same levels.
pub struct KnobsPerBlock<'a> {
    pub root: Root,
    pub supervisor: Supervisor,
    /// Receives the effects of the knobs, and how they were put back.
    pub log: &'a dyn Fn(&str),
}

impl KnobControl for KnobsPerBlock<'_> {
    fn turn(
        &mut self,
        levels: &KnobLevels,
        work: &mut dyn FnMut(&KnobEffects) -> Result<(), StudyError>,
    ) -> Result<(), StudyError> {
        let log = self.log;
        let logged = |effects: &KnobEffects| {
            effects.0.iter().for_each(|proof| log(&proof.to_string()));
            work(effects)
        };
        let ((), restored) = with_levels(&self.root, levels, &self.supervisor, logged)?;
        if let Some(restored) = restored {
            log(&restored.to_string());
        }
        Ok(())
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
