//! One write of a plan, and what undoes it.

use std::fmt;

use serde::Serialize;

use super::error::KnobError;
use super::target::{KnobTarget, TargetPart};
use crate::root::{Root, RootError};

/// How a write is undone when the knobs are put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreAction {
    /// The old value is written back.
    Restored,
    /// Nothing is written, but another write of the plan loses this value, so it is written back.
    Kept,
    /// It ends with the group, the descriptor or the process that kvmeter made for it.
    Released,
    /// An action; nothing undoes it.
    Lasting,
}

/// One write: target, old value, new value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnobWrite {
    pub place: KnobTarget,
    /// `None` where the target is created by the plan, or cannot be read.
    pub old: Option<String>,
    pub new: String,
    pub after: RestoreAction,
}

impl KnobWrite {
    pub(super) fn failed(&self, why: RootError) -> KnobError {
        KnobError::Write { write: self.to_string(), why }
    }

    /// Whether the value can be read back at once. A list of tasks cannot: it has many values, and a
    /// task leaves its group when it ends.
    pub(super) fn reads_back(&self) -> bool {
        !self.place.path.ends_with("/tasks")
            && self.place.within != TargetPart::Held
            && matches!(self.after, RestoreAction::Restored | RestoreAction::Released)
    }

    /// A write to a target that holds another value; `None` where it already holds this one.
    pub(super) fn turn(
        root: &Root,
        place: KnobTarget,
        new: impl Into<String>,
    ) -> Result<Option<KnobWrite>, RootError> {
        let (old, new) = (place.read(root)?, new.into());
        if old == new {
            return Ok(None);
        }
        Ok(Some(KnobWrite { place, old: Some(old), new, after: RestoreAction::Restored }))
    }

    /// Remembers the value of a target.
    pub(super) fn keep(place: KnobTarget, value: String) -> KnobWrite {
        KnobWrite { place, old: Some(value.clone()), new: value, after: RestoreAction::Kept }
    }

    /// A write to a setting of this process or its group.
    pub(super) fn release(place: KnobTarget, new: impl Into<String>) -> KnobWrite {
        KnobWrite { place, old: None, new: new.into(), after: RestoreAction::Released }
    }
}

impl fmt::Display for KnobWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KnobWrite { place, old, new, after } = self;
        match after {
            RestoreAction::Kept => return write!(f, "{place}: {new} is remembered"),
            RestoreAction::Lasting => {
                return write!(f, "{place}: {new} (an action that nothing undoes)");
            }
            RestoreAction::Restored | RestoreAction::Released => {}
        }
        match old {
            Some(old) => write!(f, "{place}: {old} -> {new}")?,
            None => write!(f, "{place}: -> {new}")?,
        }
        match after {
            RestoreAction::Released => f.write_str(" (until the process or group ends)"),
            _ => Ok(()),
        }
    }
}
