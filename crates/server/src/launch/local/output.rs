//! A server's folder and what it prints into it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::super::error::LaunchError;

/// Enough to see why a server gave up, little enough for an error message.
const LAST_LINES: usize = 10;
const LAST_BYTES: u64 = 4096;

/// The server's folder; removed with everything in it.
#[derive(Debug)]
pub(super) struct Output {
    folder: TempDir,
    path: PathBuf,
}

fn failed(error: &std::io::Error) -> LaunchError {
    LaunchError::Folder { why: error.to_string() }
}

/// A new folder, its path absolute.
pub(super) fn folder() -> Result<TempDir, LaunchError> {
    std::path::absolute(std::env::temp_dir())
        .and_then(|parent| tempfile::Builder::new().prefix("kvmeter-server-").tempdir_in(parent))
        .map_err(|error| failed(&error))
}

impl Output {
    pub fn new(folder: TempDir) -> Result<Self, LaunchError> {
        let path = folder.path().join("output");
        File::create(&path).map_err(|error| failed(&error))?;
        Ok(Output { folder, path })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Has the command print into the folder: a pipe that nobody empties would stop it.
    pub fn attach(&self, command: &mut Command) -> Result<(), LaunchError> {
        let open = || OpenOptions::new().append(true).open(&self.path);
        let (out, err) =
            open().and_then(|out| Ok((out, open()?))).map_err(|error| failed(&error))?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        Ok(())
    }

    /// The last lines that are not empty.
    pub fn last_words(&self) -> String {
        let mut tail = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(LAST_BYTES)))?;
            file.take(LAST_BYTES).read_to_end(&mut tail)
        });
        if let Err(error) = read {
            return format!("(what it printed cannot be read: {error})");
        }
        let text = String::from_utf8_lossy(&tail);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}
