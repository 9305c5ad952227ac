//! Applying a plan: journal, write, read back.

use super::error::KnobError;
use super::journal::Journal;
use super::plan::KnobPlan;
use super::supervisor::KnobSupervisor;
use super::turned::TurnedKnobs;
use super::write::{KnobWrite, RestoreAction};
use crate::root::Root;

/// A step of applying a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobEvent {
    /// The supervisor runs; nothing is journalled yet.
    Watched,
    /// A knob's writes are in the journal; none of them is done.
    Noted,
    /// This many writes of all knobs are done.
    Written(usize),
}

impl KnobPlan {
    /// Turns the knobs. On a failure, what was turned before is put back.
    ///
    /// CPU sets and memory nodes hold for the calling thread and for what it starts afterwards.
    pub fn apply(self, journal: Journal) -> Result<TurnedKnobs, KnobError> {
        self.apply_with_events(journal, &mut |_| {})
    }

    /// [`KnobPlan::apply`] with a callback at each step.
    pub fn apply_with_events(
        mut self,
        mut journal: Journal,
        watch: &mut dyn FnMut(KnobEvent),
    ) -> Result<TurnedKnobs, KnobError> {
        let refused = self.refused();
        if !refused.is_empty() {
            let lines: Vec<String> =
                refused.iter().map(|(write, why)| format!("{write}: {why}")).collect();
            return Err(KnobError::Refused(lines.join("; ")));
        }
        let supervisor = match journal.supervisor.take() {
            Some(command) => Some(KnobSupervisor::start(command, &journal.lock)?),
            None => None,
        };
        watch(KnobEvent::Watched);
        let turns = std::mem::take(&mut self.changes);
        let mut turned = TurnedKnobs::new(self.root.clone(), journal, supervisor);
        let mut writes_done = 0;
        for mut turn in turns {
            // The machine may have changed since the plan: the present value is the one to put back.
            for write in &mut turn.writes {
                refresh_old_value(&self.root, write)?;
            }
            turned.note(turn.knob, &turn.level, &turn.writes)?;
            watch(KnobEvent::Noted);
            for write in &turn.writes {
                turned.write(write)?;
                writes_done += 1;
                watch(KnobEvent::Written(writes_done));
            }
            turned.add(turn);
        }
        Ok(turned)
    }
}

fn refresh_old_value(root: &Root, write: &mut KnobWrite) -> Result<(), KnobError> {
    if write.after != RestoreAction::Restored {
        return Ok(());
    }
    let present = write.place.read(root).map_err(|why| write.failed(why))?;
    write.old = Some(present);
    Ok(())
}
