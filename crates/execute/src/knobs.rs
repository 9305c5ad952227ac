//! The machine's knobs around runs: turned with a journal and a supervisor, put back whatever
//! happens.

use std::process::Command;
use std::sync::Arc;

use host::Root;
use host::knob::{
    Journal, KnobError, Proof, ProofOutcome, RestoreOutcome, TurnedKnobs, state_folder,
};
use model::{Fact, RunSettings};
use study::KnobLevels;

use crate::error::ExecuteError;

/// How the process is started that puts the knobs back when this one is killed.
pub type Supervisor = Arc<dyn Fn() -> Command + Send + Sync>;

/// The proven effects of turned knobs.
#[derive(Debug, Clone, Default)]
pub struct KnobEffects {
    pub proofs: Vec<Proof>,
    /// The CPU's model, if the user answers for its registers.
    pub trusted_model: Option<String>,
}

impl KnobEffects {
    /// `knob.NAME.effect`: whether the effect was proven. A level without proof is another condition
    /// than a proven one. `knob.trusted_register`: the model for whose registers the user answers.
    pub(crate) fn settings(&self, settings: &mut RunSettings) {
        if let Some(model) = &self.trusted_model {
            settings.insert("knob.trusted_register".to_owned(), model.clone());
        }
        for proof in &self.proofs {
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
        self.proofs.iter().map(fact).collect()
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
    let (turned, effects) = turned(root, levels, supervisor)?;
    let done = work(&effects);
    let restored = turned.restore();
    // The error of the work comes first; the journal still has the rest.
    let done = done?;
    Ok((done, Some(restored?)))
}

/// The knobs of the machine at `levels`, until the guard is dropped.
///
/// # Errors
/// An unavailable level, a refused write or a knob without effect.
pub(crate) fn turned(
    root: &Root,
    levels: &KnobLevels,
    supervisor: &Supervisor,
) -> Result<(TurnedKnobs, KnobEffects), KnobError> {
    let plan = levels.plan(root)?;
    let journal = Journal::open(root, &state_folder()?)?.supervised_by(supervisor());
    let mut turned = plan.apply(journal)?;
    turned.check_effect()?;
    let trusted_model = root.trusted_model().map(str::to_owned);
    let effects = KnobEffects { proofs: turned.proofs().to_vec(), trusted_model };
    Ok((turned, effects))
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
        work: &mut dyn FnMut(&KnobEffects) -> Result<(), ExecuteError>,
    ) -> Result<(), ExecuteError>;
}

/// The knobs are turned already, around all of it.
pub struct KnobsHeld<'a>(pub &'a KnobEffects);

impl KnobControl for KnobsHeld<'_> {
    fn turn(
        &mut self,
        _: &KnobLevels,
        work: &mut dyn FnMut(&KnobEffects) -> Result<(), ExecuteError>,
    ) -> Result<(), ExecuteError> {
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
        work: &mut dyn FnMut(&KnobEffects) -> Result<(), ExecuteError>,
    ) -> Result<(), ExecuteError> {
        let log = self.log;
        let logged = |effects: &KnobEffects| {
            effects.proofs.iter().for_each(|proof| log(&proof.to_string()));
            work(effects)
        };
        let ((), restored) = with_levels(&self.root, levels, &self.supervisor, logged)?;
        if let Some(restored) = restored {
            log(&restored.to_string());
        }
        Ok(())
    }
}
