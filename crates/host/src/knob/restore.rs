//! Putting old values back, in reverse order.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::KnobError;
use super::journal_entry::JournalEntry;
use super::target::TargetPart;
use crate::format;
use crate::root::{Root, RootError};

/// The outcome of restoring a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreOutcome {
    /// Every target holds its old value.
    Done {
        /// Targets that held another value and were written.
        written: usize,
        /// Targets that held neither the knob's value nor the old one.
        foreign: Vec<String>,
        /// Lines of the journal that could not be applied, and where they are now.
        unread: Vec<String>,
    },
    /// It was of an earlier boot, so everything is reset already; it was renamed to this.
    Stale { entries: usize, aside: PathBuf },
}

impl std::fmt::Display for RestoreOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RestoreOutcome::Done { written, foreign, unread } => {
                write!(f, "{} restored", format::count(*written, "place"))?;
                for place in foreign.iter().chain(unread) {
                    write!(f, "; {place}")?;
                }
                Ok(())
            }
            RestoreOutcome::Stale { entries, aside } => write!(
                f,
                "{} of an earlier boot, which this boot has reset: moved to {}",
                format::count(*entries, "write"),
                aside.display()
            ),
        }
    }
}

/// Writes the old values of a journal back in reverse order. Failures are retried once at the end,
/// as a value may be locked by one that was turned before it.
pub(super) fn restore(
    root: &Root,
    entries: &[JournalEntry],
    journal: &Path,
) -> Result<RestoreOutcome, KnobError> {
    let (mut written, mut foreign, mut failed) = (0, Vec::new(), Vec::new());
    for entry in entries.iter().rev() {
        match put_back(root, entry) {
            Ok(None) => {}
            Ok(Some(replaced)) => {
                written += 1;
                if replaced != entry.new {
                    let place = &entry.place;
                    foreign.push(format!(
                        "{place} had the value {replaced}, which kvmeter had not written"
                    ));
                }
            }
            Err(_) => failed.push(entry),
        }
    }
    let mut lost = Vec::new();
    for entry in failed {
        match put_back(root, entry) {
            Ok(replaced) => written += usize::from(replaced.is_some()),
            Err(error) => lost.push(format!("{}: {error}", entry.place)),
        }
    }
    if lost.is_empty() {
        return Ok(RestoreOutcome::Done { written, foreign, unread: Vec::new() });
    }
    let journal = journal.display().to_string();
    Err(KnobError::NotRestored { places: lost.join("; "), journal })
}

/// Writes the old value if the target holds another; returns the value that it held.
fn put_back(root: &Root, entry: &JournalEntry) -> Result<Option<String>, RootError> {
    let place = &entry.place;
    let present = place.read(root)?;
    let Some(old) = entry.old.as_deref() else {
        if place.within != TargetPart::Group || !root.exists(&place.path) {
            return Ok(None);
        }
        root.remove_group(&place.path)?;
        return Ok(Some(present));
    };
    if present == old {
        return Ok(None);
    }
    place.write(root, old)?;
    let now = place.read(root)?;
    if now != old {
        let why = format!("it reads {now} after {old} was written");
        return Err(RootError::Io { path: place.path.clone(), why });
    }
    Ok(Some(present))
}
