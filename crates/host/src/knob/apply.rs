//! Turning: note, write, read back.

use super::error::KnobError;
use super::journal::Journal;
use super::place::Within;
use super::plan::Plan;
use super::supervisor::Supervisor;
use super::turned::Turned;
use super::write::{After, Write};
use crate::root::{Root, RootError};

/// A step of turning, for whoever watches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The supervisor watches; nothing is noted yet.
    Watched,
    /// A knob's writes are on the disk; none of them is done.
    Noted,
    /// So many writes are done, all knobs together.
    Written(usize),
}

impl Plan {
    /// Turns the knobs. Whatever fails, what was turned before is put back.
    ///
    /// CPU sets and memory nodes hold for the calling thread and for what it starts afterwards.
    pub fn apply(self, journal: Journal) -> Result<Turned, KnobError> {
        self.apply_watched(journal, &mut |_| {})
    }

    /// [`Plan::apply`], and tells each step.
    pub fn apply_watched(
        mut self,
        mut journal: Journal,
        watch: &mut dyn FnMut(Moment),
    ) -> Result<Turned, KnobError> {
        let refused = self.refused();
        if !refused.is_empty() {
            let lines: Vec<String> =
                refused.iter().map(|(write, why)| format!("{write}: {why}")).collect();
            return Err(KnobError::Refused(lines.join("; ")));
        }
        let supervisor = match journal.supervisor.take() {
            Some(command) => Some(Supervisor::start(command, &journal.lock)?),
            None => None,
        };
        watch(Moment::Watched);
        let turns = std::mem::take(&mut self.turns);
        let mut turned = Turned::new(self.root.clone(), journal, supervisor);
        let mut done = 0;
        for mut turn in turns {
            // The machine may have moved since the plan: what is put back is what is there now.
            for write in &mut turn.writes {
                look_again(&self.root, write)?;
            }
            turned.note(turn.knob, &turn.level, &turn.writes)?;
            watch(Moment::Noted);
            for write in &turn.writes {
                turned.write(write)?;
                done += 1;
                watch(Moment::Written(done));
            }
            turned.add(turn);
        }
        Ok(turned)
    }
}

fn look_again(root: &Root, write: &mut Write) -> Result<(), KnobError> {
    if write.after != After::Restored {
        return Ok(());
    }
    let held = write.place.read(root).map_err(|why| failed(write, why))?;
    write.old = Some(held);
    Ok(())
}

pub(super) fn failed(write: &Write, why: RootError) -> KnobError {
    KnobError::Write { write: write.to_string(), why }
}

/// Whether a place can be read back at once. A task leaves its group when it ends, and a list
/// of tasks is many values.
pub(super) fn reads_back(write: &Write) -> bool {
    let many = write.place.path.ends_with("/tasks");
    !many
        && write.place.within != Within::Held
        && matches!(write.after, After::Restored | After::Released)
}
