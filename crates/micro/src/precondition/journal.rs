//! The progress of a job on disk, so that another process can resume it.

use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{PreconditionError, WriteError};
use super::request::PreconditionRequest;
use super::target::Target;

/// The record of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JournalNote {
    pub(super) names: Vec<String>,
    pub(super) bytes: u64,
    pub(super) order: PreconditionRequest,
    /// Tokens of the content whose loss was allowed.
    #[serde(default)]
    pub(super) overwritten: Vec<String>,
    pub(super) purged: bool,
    /// Bytes of the sequential writes that are complete without a gap.
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

    /// Adds the present content, whose loss is allowed, too.
    pub(super) fn also_overwrites(&mut self, target: &Target) {
        for found in &target.content {
            if !self.overwritten.contains(&found.token) {
                self.overwritten.push(found.token.clone());
            }
        }
    }

    /// Whether a new record may replace the file: it must be this user's, or a plain file in a folder
    /// in which no other user can create one.
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
                let why = format!("the progress of a job cannot be written there: {error}");
                Err(PreconditionError::Refused { path: path.to_owned(), why })
            }
        }
    }

    /// Reads the record of this job.
    ///
    /// # Errors
    /// There is none, it cannot be read, or it is of another device or other settings.
    pub(super) fn read(
        path: &Path,
        target: &Target,
        order: &PreconditionRequest,
    ) -> Result<JournalNote, PreconditionError> {
        let refused = |why: String| PreconditionError::Refused { path: path.to_owned(), why };
        if !path.exists() {
            return Err(refused(
                "does not exist: there is nothing to resume; leave out --resume".to_owned(),
            ));
        }
        // It lists content whose loss is allowed, so no other user may have written it.
        let file = safe_file::open_private(path, File::options().read(true));
        let text = file.map_err(io::Error::from).and_then(io::read_to_string);
        let text = text.map_err(|error| {
            refused(format!("{error}; fix that, or leave out --resume to start again"))
        })?;
        let note: JournalNote = serde_json::from_str(&text)
            .map_err(|error| refused(format!("{error}; leave out --resume to start again")))?;
        if !note.matches(target) {
            return Err(refused(format!(
                "is of another device ({}); leave out --resume to start again",
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

    /// Which names of a disk are unique depends on the other disks present: all recorded names must
    /// still be names of the target, and one of them must be unique.
    fn matches(&self, target: &Target) -> bool {
        let alone = |name: &String| target.names.contains(name);
        let shared = |name: &String| target.shared.iter().any(|(shared, _)| shared == name);
        self.bytes == target.bytes
            && self.names.iter().any(alone)
            && self.names.iter().all(|name| alone(name) || shared(name))
    }

    /// Replaces the record on disk.
    pub(super) fn write(&self, path: &Path) -> Result<(), WriteError> {
        self.replace(path).map_err(|error| {
            WriteError::Other(format!(
                "{}: the progress cannot be written: {error}",
                path.display()
            ))
        })
    }

    fn replace(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            safe_file::make_folder(folder)?;
        }
        // Readable by this user alone.
        Ok(safe_file::replace_private(path, &serde_json::to_vec_pretty(self)?)?)
    }
}
