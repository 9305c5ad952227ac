//! Knobs that are turned, for as long as this lives.

use std::fs::File;

use super::apply::{write_failed, reads_back};
use super::error::KnobError;
use super::journal::Journal;
use super::target::{KnobTarget, TargetPart};
use super::plan::PlannedKnob;
use super::proof::{ProofOutcome, Proof};
use super::restore::RestoreOutcome;
use super::supervisor::KnobSupervisor;
use super::write::{RestoreAction, KnobWrite};
use crate::root::Root;

/// A guard over turned knobs. They return when it is dropped; [`Turned::restore`] also says how
/// that went.
pub struct TurnedKnobs {
    root: Root,
    journal: Journal,
    supervisor: Option<KnobSupervisor>,
    changes: Vec<PlannedKnob>,
    /// Devices whose values hold while they are open.
    open_devices: Vec<File>,
    /// What this process had set for itself.
    own_values: Vec<(KnobTarget, String)>,
    proofs: Option<Vec<Proof>>,
    ended: bool,
}

impl TurnedKnobs {
    pub(super) fn new(root: Root, journal: Journal, supervisor: Option<KnobSupervisor>) -> TurnedKnobs {
        let (turns, held, own) = (Vec::new(), Vec::new(), Vec::new());
        TurnedKnobs { root, journal, supervisor, changes: turns, open_devices: held, own_values: own, proofs: None, ended: false }
    }

    pub(super) fn note(
        &mut self,
        knob: &str,
        level: &str,
        writes: &[KnobWrite],
    ) -> Result<(), KnobError> {
        self.journal.note(knob, level, writes)
    }

    /// Does one write and reads it back.
    pub(super) fn write(&mut self, write: &KnobWrite) -> Result<(), KnobError> {
        let KnobWrite { place, old, new, after } = write;
        if *after == RestoreAction::Kept || old.as_ref() == Some(new) {
            return Ok(());
        }
        if place.within == TargetPart::Held {
            let number: i32 = new.parse().unwrap_or(0);
            let file = self.root.hold(&place.path, &number.to_le_bytes());
            self.open_devices.push(file.map_err(|why| write_failed(write, why))?);
            return Ok(());
        }
        if *after == RestoreAction::Lasting && self.root.is_live() {
            // Dropping caches spares dirty pages; after this there are few.
            nix::unistd::sync();
        }
        if let (true, Some(old)) = (place.is_own(), old) {
            self.own_values.push((place.clone(), old.clone()));
        }
        place.write(&self.root, new).map_err(|why| write_failed(write, why))?;
        if reads_back(write) {
            let found = place.read(&self.root).map_err(|why| write_failed(write, why))?;
            if found != *new {
                let (place, new) = (place.to_string(), new.clone());
                return Err(KnobError::ReadBack { place, new, found });
            }
        }
        Ok(())
    }

    pub(super) fn add(&mut self, turn: PlannedKnob) {
        self.changes.push(turn);
    }

    /// What is seen of each knob's effect, in the order in which they were turned. The first call
    /// looks, which may take a fraction of a second a knob; the next ones repeat what was seen.
    pub fn proofs(&mut self) -> &[Proof] {
        let (root, turns) = (&self.root, &self.changes);
        self.proofs.get_or_insert_with(|| {
            let proof = |turn: &PlannedKnob| Proof {
                knob: turn.knob.to_owned(),
                level: turn.level.clone(),
                outcome: (turn.prove)(root),
            };
            turns.iter().map(proof).collect()
        })
    }

    /// An error if a knob is without effect.
    pub fn check_effect(&mut self) -> Result<(), KnobError> {
        let refuted: Vec<String> = self
            .proofs()
            .iter()
            .filter(|proof| matches!(proof.outcome, ProofOutcome::Refuted(_)))
            .map(ToString::to_string)
            .collect();
        if refuted.is_empty() { Ok(()) } else { Err(KnobError::Refuted(refuted.join("; "))) }
    }

    /// Puts everything back and says what was done.
    pub fn restore(mut self) -> Result<RestoreOutcome, KnobError> {
        self.put_back()
    }

    /// Leaves the knobs turned when this process ends, until `Journal::restore_kept`.
    pub fn keep(mut self) -> Result<(), KnobError> {
        self.journal.keep()?;
        self.ended = true;
        self.dismiss();
        Ok(())
    }

    fn put_back(&mut self) -> Result<RestoreOutcome, KnobError> {
        self.ended = true;
        let (mut lost, mut own) = (Vec::new(), self.open_devices.len());
        self.open_devices.clear();
        for (place, old) in self.own_values.drain(..).rev() {
            match place.write(&self.root, &old) {
                Ok(()) => own += 1,
                Err(error) => lost.push(format!("{place}: {error}")),
            }
        }
        let restored = self.journal.put_back_running();
        // What this process could not put back, the supervisor could not either.
        self.dismiss();
        let restored = restored?.unwrap_or(RestoreOutcome::Done {
            written: 0,
            foreign: Vec::new(),
            unread: Vec::new(),
        });
        if !lost.is_empty() {
            return Err(KnobError::OwnNotRestored { places: lost.join("; ") });
        }
        Ok(match restored {
            RestoreOutcome::Done { written, foreign, unread } => {
                RestoreOutcome::Done { written: written + own, foreign, unread }
            }
            stale => stale,
        })
    }

    fn dismiss(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.dismiss();
        }
    }
}

impl Drop for TurnedKnobs {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // Nobody is left to whom an error could be returned.
        if let Err(error) = self.put_back() {
            eprintln!("warning: {error}");
        }
    }
}
