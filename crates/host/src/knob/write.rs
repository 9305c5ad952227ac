//! One write of a plan, and what becomes of it afterwards.

use std::fmt;

use serde::Serialize;

use super::place::Place;
use crate::root::{Root, RootError};

/// What becomes of a write when the knobs are put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// The old value is written back.
    Restored,
    /// Nothing is written, but another write of the plan loses this value: it is written back.
    Kept,
    /// It goes with the group, the descriptor or the process that kvmeter made for it.
    Released,
    /// An action; nothing undoes it.
    Lasting,
}

/// One write: where, what is there, what will be there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Write {
    pub place: Place,
    /// `None` where the place comes to be with the plan, or holds nothing that can be read.
    pub old: Option<String>,
    pub new: String,
    pub after: After,
}

impl Write {
    /// Turns a place that holds another value; `None` where it already holds this one.
    pub(super) fn turn(
        root: &Root,
        place: Place,
        new: impl Into<String>,
    ) -> Result<Option<Write>, RootError> {
        let (old, new) = (place.read(root)?, new.into());
        if old == new {
            return Ok(None);
        }
        Ok(Some(Write { place, old: Some(old), new, after: After::Restored }))
    }

    /// Remembers what a place holds.
    pub(super) fn keep(place: Place, value: String) -> Write {
        Write { place, old: Some(value.clone()), new: value, after: After::Kept }
    }

    /// Writes to what this process or a group of it holds.
    pub(super) fn release(place: Place, new: impl Into<String>) -> Write {
        Write { place, old: None, new: new.into(), after: After::Released }
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Write { place, old, new, after } = self;
        match after {
            After::Kept => return write!(f, "{place}: {new} is remembered"),
            After::Lasting => return write!(f, "{place}: {new} (an action that nothing undoes)"),
            After::Restored | After::Released => {}
        }
        match old {
            Some(old) => write!(f, "{place}: {old} -> {new}")?,
            None => write!(f, "{place}: -> {new}")?,
        }
        match after {
            After::Released => f.write_str(" (until the process or group ends)"),
            _ => Ok(()),
        }
    }
}
