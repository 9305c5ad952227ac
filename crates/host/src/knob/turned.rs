//! Knobs that are turned, for as long as this lives.

use std::fs::File;

use super::apply::{failed, reads_back};
use super::error::KnobError;
use super::journal::Journal;
use super::place::{Place, Within};
use super::plan::Planned;
use super::proof::{Outcome, Proof};
use super::restore::Restored;
use super::supervisor::Supervisor;
use super::write::{After, Write};
use crate::root::Root;

/// A guard over turned knobs. They return when it is dropped; [`Turned::restore`] also says how
/// that went.
pub struct Turned {
    root: Root,
    journal: Journal,
    supervisor: Option<Supervisor>,
    turns: Vec<Planned>,
    /// Devices whose values hold while they are open.
    held: Vec<File>,
    /// What this process had set for itself.
    own: Vec<(Place, String)>,
    proofs: Option<Vec<Proof>>,
    ended: bool,
}

impl Turned {
    pub(super) fn new(root: Root, journal: Journal, supervisor: Option<Supervisor>) -> Turned {
        let (turns, held, own) = (Vec::new(), Vec::new(), Vec::new());
        Turned { root, journal, supervisor, turns, held, own, proofs: None, ended: false }
    }

    pub(super) fn note(
        &mut self,
        knob: &str,
        level: &str,
        writes: &[Write],
    ) -> Result<(), KnobError> {
        self.journal.note(knob, level, writes)
    }

    /// Does one write and reads it back.
    pub(super) fn write(&mut self, write: &Write) -> Result<(), KnobError> {
        let Write { place, old, new, after } = write;
        if *after == After::Kept || old.as_ref() == Some(new) {
            return Ok(());
        }
        if place.within == Within::Held {
            let number: i32 = new.parse().unwrap_or(0);
            let file = self.root.hold(&place.path, &number.to_le_bytes());
            self.held.push(file.map_err(|why| failed(write, why))?);
            return Ok(());
        }
        if *after == After::Lasting && self.root.is_live() {
            // Dropping caches spares dirty pages; after this there are few.
            nix::unistd::sync();
        }
        if let (true, Some(old)) = (place.is_own(), old) {
            self.own.push((place.clone(), old.clone()));
        }
        place.write(&self.root, new).map_err(|why| failed(write, why))?;
        if reads_back(write) {
            let found = place.read(&self.root).map_err(|why| failed(write, why))?;
            if found != *new {
                let (place, new) = (place.to_string(), new.clone());
                return Err(KnobError::ReadBack { place, new, found });
            }
        }
        Ok(())
    }

    pub(super) fn add(&mut self, turn: Planned) {
        self.turns.push(turn);
    }

    /// What is seen of each knob's effect, in the order in which they were turned. The first call
    /// looks, which may take a fraction of a second a knob; the next ones repeat what was seen.
    pub fn proofs(&mut self) -> &[Proof] {
        let (root, turns) = (&self.root, &self.turns);
        self.proofs.get_or_insert_with(|| {
            let proof = |turn: &Planned| Proof {
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
            .filter(|proof| matches!(proof.outcome, Outcome::Refuted(_)))
            .map(ToString::to_string)
            .collect();
        if refuted.is_empty() { Ok(()) } else { Err(KnobError::Refuted(refuted.join("; "))) }
    }

    /// Puts everything back and says what was done.
    pub fn restore(mut self) -> Result<Restored, KnobError> {
        self.put_back()
    }

    /// Leaves the knobs turned when this process ends, until `Journal::restore_kept`.
    pub fn keep(mut self) -> Result<(), KnobError> {
        self.journal.keep()?;
        self.ended = true;
        self.dismiss();
        Ok(())
    }

    fn put_back(&mut self) -> Result<Restored, KnobError> {
        self.ended = true;
        let (mut lost, mut own) = (Vec::new(), self.held.len());
        self.held.clear();
        for (place, old) in self.own.drain(..).rev() {
            match place.write(&self.root, &old) {
                Ok(()) => own += 1,
                Err(error) => lost.push(format!("{place}: {error}")),
            }
        }
        let restored = self.journal.put_back_running();
        // What this process could not put back, the supervisor could not either.
        self.dismiss();
        let restored = restored?.unwrap_or(Restored::Done {
            written: 0,
            foreign: Vec::new(),
            unread: Vec::new(),
        });
        if !lost.is_empty() {
            return Err(KnobError::OwnNotRestored { places: lost.join("; ") });
        }
        Ok(match restored {
            Restored::Done { written, foreign, unread } => {
                Restored::Done { written: written + own, foreign, unread }
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

impl Drop for Turned {
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
