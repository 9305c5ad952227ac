//! The guard over turned knobs.

use std::fs::File;

use super::error::KnobError;
use super::journal::Journal;
use super::plan::PlannedKnob;
use super::proof::{Proof, ProofOutcome};
use super::restore::RestoreOutcome;
use super::supervisor::KnobSupervisor;
use super::target::{KnobTarget, TargetPart};
use super::write::{KnobWrite, RestoreAction};
use crate::root::Root;

/// A guard over turned knobs, which are put back when it is dropped; [`TurnedKnobs::restore`] also
/// returns the outcome.
pub struct TurnedKnobs {
    root: Root,
    journal: Journal,
    supervisor: Option<KnobSupervisor>,
    changes: Vec<PlannedKnob>,
    /// Open devices, whose values hold while they are open.
    open_devices: Vec<File>,
    /// The old values of this process's own settings.
    own_values: Vec<(KnobTarget, String)>,
    proofs: Option<Vec<Proof>>,
    ended: bool,
}

impl TurnedKnobs {
    pub(super) fn new(
        root: Root,
        journal: Journal,
        supervisor: Option<KnobSupervisor>,
    ) -> TurnedKnobs {
        let (turns, held, own) = (Vec::new(), Vec::new(), Vec::new());
        TurnedKnobs {
            root,
            journal,
            supervisor,
            changes: turns,
            open_devices: held,
            own_values: own,
            proofs: None,
            ended: false,
        }
    }

    pub(super) fn note(
        &mut self,
        knob: &str,
        level: &str,
        writes: &[KnobWrite],
    ) -> Result<(), KnobError> {
        self.journal.note(knob, level, writes)
    }

    /// Makes one write and reads it back.
    pub(super) fn write(&mut self, write: &KnobWrite) -> Result<(), KnobError> {
        let KnobWrite { place, old, new, after } = write;
        if *after == RestoreAction::Kept || old.as_ref() == Some(new) {
            return Ok(());
        }
        if place.within == TargetPart::Held {
            let number: i32 = new.parse().unwrap_or(0);
            let file = self.root.hold(&place.path, &number.to_le_bytes());
            self.open_devices.push(file.map_err(|why| write.failed(why))?);
            return Ok(());
        }
        if *after == RestoreAction::Lasting && self.root.is_live() {
            // Dirty pages are not dropped, so write them out first.
            nix::unistd::sync();
        }
        if let (true, Some(old)) = (place.is_own(), old) {
            self.own_values.push((place.clone(), old.clone()));
        }
        if place.within == TargetPart::Interrupt {
            let taken = self.root.write_unless_fixed(&place.path, new);
            if !taken.map_err(|why| write.failed(why))? {
                // The proof names it.
                return Ok(());
            }
        } else {
            place.write(&self.root, new).map_err(|why| write.failed(why))?;
        }
        if write.reads_back() {
            let read_back = place.read(&self.root).map_err(|why| write.failed(why))?;
            if read_back != *new {
                let (place, new) = (place.to_string(), new.clone());
                return Err(KnobError::ReadBack { place, new, found: read_back });
            }
        }
        Ok(())
    }

    pub(super) fn add(&mut self, turn: PlannedKnob) {
        self.changes.push(turn);
    }

    /// The proof of each knob's effect, in the order in which they were turned. The first call
    /// observes, for up to a fraction of a second per knob; later calls return the same.
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

    /// An error if a knob has no effect.
    pub fn check_effect(&mut self) -> Result<(), KnobError> {
        let refuted: Vec<String> = self
            .proofs()
            .iter()
            .filter(|proof| matches!(proof.outcome, ProofOutcome::Refuted(_)))
            .map(ToString::to_string)
            .collect();
        if refuted.is_empty() { Ok(()) } else { Err(KnobError::Refuted(refuted.join("; "))) }
    }

    /// Puts everything back and returns the outcome.
    pub fn restore(mut self) -> Result<RestoreOutcome, KnobError> {
        self.put_back()
    }

    /// Leaves the knobs turned after this process ends, until `Journal::restore_kept`.
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
        // If this process fails to put a value back, the supervisor would fail, too.
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
        // Errors cannot be returned from `drop`.
        if let Err(error) = self.put_back() {
            eprintln!("warning: {error}");
        }
    }
}
