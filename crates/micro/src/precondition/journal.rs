//! How far a job is, on disk, so that another process can go on.

use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{PreconditionError, WriteError};
use super::job::PreconditionRequest;
use super::target::Target;

/// What is noted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JournalNote {
    pub(super) names: Vec<String>,
    pub(super) bytes: u64,
    pub(super) order: PreconditionRequest,
    /// Words of what was on it and was allowed to be lost.
    #[serde(default)]
    pub(super) overwritten: Vec<String>,
    pub(super) purged: bool,
    /// Bytes of the sequential writes that are done without a gap.
    pub(super) written: u64,
    /// Random writes per second of each round.
    pub(super) rounds: Vec<f64>,
}

impl JournalNote {
    pub(super) fn new(target: &Target, order: &PreconditionRequest) -> JournalNote {
        JournalNote {
            names: target.names.clone(),
            bytes: target.bytes,
            order: order.clone(),
            overwritten: target.content.iter().map(|found| found.token.clone()).collect(),
            purged: false,
            written: 0,
            rounds: Vec::new(),
        }
    }

    /// Adds what is on it by now and may be lost, too.
    pub(super) fn also_overwrites(&mut self, target: &Target) {
        for found in &target.content {
            if !self.overwritten.contains(&found.token) {
                self.overwritten.push(found.token.clone());
            }
        }
    }

    /// Whether a new note may take the place of what is there: this user's note, or a plain file in
    /// a folder in which nobody else can put one.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn check(path: &Path) -> Result<(), PreconditionError> {
        let Err(error) = safe_file::open_private(path, File::options().read(true)) else {
            return Ok(());
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        match path.symlink_metadata() {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(()),
            Ok(there) if there.is_file() && safe_file::make_private_folder(folder).is_ok() => {
                Ok(())
            }
            _ => {
                let why = format!("the note of how far a job is cannot be put there: {error}");
                Err(PreconditionError::Refused { path: path.to_owned(), why })
            }
        }
    }

    /// The note of this job, to go on with.
    ///
    /// # Errors
    /// None is there, it cannot be read, or it is of another device or order.
    pub(super) fn read(
        path: &Path,
        target: &Target,
        order: &PreconditionRequest,
    ) -> Result<JournalNote, PreconditionError> {
        let refused = |why: String| PreconditionError::Refused { path: path.to_owned(), why };
        if !path.exists() {
            return Err(refused(
                "is not there: there is nothing to resume; leave out --resume".to_owned(),
            ));
        }
        // It says what may be lost, so nobody else may have written it.
        let file = safe_file::open_private(path, File::options().read(true));
        let text = file.map_err(io::Error::from).and_then(io::read_to_string);
        let text = text.map_err(|error| {
            refused(format!("{error}; mend that, or leave out --resume to begin anew"))
        })?;
        let note: JournalNote = serde_json::from_str(&text)
            .map_err(|error| refused(format!("{error}; leave out --resume to begin anew")))?;
        if !note.matches(target) {
            return Err(refused(format!(
                "is of another device ({}); leave out --resume to begin anew",
                note.names.join(", ")
            )));
        }
        if note.order != *order {
            return Err(refused(
                "was begun with other settings; give the same ones, or leave out --resume"
                    .to_owned(),
            ));
        }
        Ok(note)
    }

    /// Other disks come and go, and with them which of its names are a disk's alone: all that it
    /// was called must still be its names, and one of them must be its alone.
    fn matches(&self, target: &Target) -> bool {
        let alone = |name: &String| target.names.contains(name);
        let shared = |name: &String| target.shared.iter().any(|(shared, _)| shared == name);
        self.bytes == target.bytes
            && self.names.iter().any(alone)
            && self.names.iter().all(|name| alone(name) || shared(name))
    }

    /// Replaces the note on disk.
    pub(super) fn write(&self, path: &Path) -> Result<(), WriteError> {
        self.replace(path).map_err(|error| {
            WriteError::Other(format!("{}: the note cannot be written: {error}", path.display()))
        })
    }

    fn replace(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            safe_file::make_folder(folder)?;
        }
        // For this user alone, as it is read.
        Ok(safe_file::replace_private(path, &serde_json::to_vec_pretty(self)?)?)
    }
}
