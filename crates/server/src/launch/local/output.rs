//! A server's folder and its output there.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::error::LaunchError;

/// Enough to explain a failure, short enough for an error message.
const LAST_LINES: usize = 10;
const LAST_BYTES: u64 = 4096;

/// The server's folder; removed with everything in it.
#[derive(Debug)]
pub(super) struct Output {
    folder: PathBuf,
}

fn failed(error: &io::Error) -> LaunchError {
    LaunchError::Folder { why: error.to_string() }
}

/// The absolute path of a folder with an unpredictable name. It is created later, after its
/// clean-up is in place.
pub(super) fn folder() -> Result<PathBuf, LaunchError> {
    // The standard library seeds each of these from the kernel's random numbers.
    let random = RandomState::new().hash_one(std::process::id());
    let parent = std::path::absolute(std::env::temp_dir()).map_err(|error| failed(&error))?;
    Ok(parent.join(format!("kvmeter-server-{random:016x}")))
}

impl Output {
    /// Makes the folder, for this user alone.
    pub fn make(folder: &Path) -> Result<Self, LaunchError> {
        DirBuilder::new().mode(0o700).create(folder).map_err(|error| failed(&error))?;
        Ok(Output { folder: folder.to_owned() })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self) -> PathBuf {
        self.folder.join("output")
    }

    /// Redirects the command's output into the folder: a full pipe would block it.
    pub fn attach(&self, command: &mut Command) -> Result<(), LaunchError> {
        let open = || OpenOptions::new().create(true).append(true).open(self.path());
        let (out, err) =
            open().and_then(|out| Ok((out, open()?))).map_err(|error| failed(&error))?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        Ok(())
    }

    /// The first bytes of its output during the start.
    pub fn first_output(&self) -> String {
        let mut head = Vec::new();
        // Without it there is nothing to go by, and `last_output` reports why.
        let _ = File::open(self.path()).and_then(|file| file.take(65_536).read_to_end(&mut head));
        String::from_utf8_lossy(&head).into_owned()
    }

    /// The last lines that are not empty.
    pub fn last_output(&self) -> String {
        let mut tail = Vec::new();
        let read = File::open(self.path()).and_then(|mut file| {
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(LAST_BYTES)))?;
            file.take(LAST_BYTES).read_to_end(&mut tail)
        });
        if let Err(error) = read {
            return format!("(its output cannot be read: {error})");
        }
        let text = String::from_utf8_lossy(&tail);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // The guard has usually removed it already.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
