//! Where `/proc` is read from: the running machine, or a recorded tree.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::figure::Unavailable;

/// Where the machine is read from: `/`, or a folder that holds a `proc/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    dir: PathBuf,
}

/// Why a file of `/proc` could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadError {
    Missing(String),
    Denied(String),
    Other(String),
}

impl From<ReadError> for Unavailable {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Missing(path) => {
                Unavailable::new(format!("{path} does not exist"), "mount /proc")
            }
            ReadError::Denied(path) => Unavailable::new(
                format!("{path} may not be read by this user"),
                "run kvmeter as the server's user or as root (CAP_SYS_PTRACE)",
            ),
            ReadError::Other(why) => Unavailable::new(why, "look at the machine's /proc"),
        }
    }
}

impl Root {
    /// The running machine.
    pub fn live() -> Self {
        Root { dir: PathBuf::from("/") }
    }

    /// A recorded machine.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Root { dir: dir.into() }
    }

    /// Whether this is the running machine; only then do system calls speak of the same one.
    pub fn is_live(&self) -> bool {
        self.dir == Path::new("/")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.join(path.trim_start_matches('/'))
    }

    fn error(path: &str, error: &std::io::Error) -> ReadError {
        // ESRCH: the process ended while its file was open.
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => ReadError::Missing(path.to_owned()),
            ErrorKind::PermissionDenied => ReadError::Denied(path.to_owned()),
            _ if error.raw_os_error() == Some(libc::ESRCH) => ReadError::Missing(path.to_owned()),
            _ => ReadError::Other(format!("{path}: {error}")),
        }
    }

    /// A file's text; names of processes are not always UTF-8.
    pub(super) fn text(&self, path: &str) -> Result<String, ReadError> {
        fs::read(self.path(path))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|error| Self::error(path, &error))
    }

    /// Where a symbolic link points.
    pub(super) fn link(&self, path: &str) -> Result<String, ReadError> {
        fs::read_link(self.path(path))
            .map(|target| target.to_string_lossy().into_owned())
            .map_err(|error| Self::error(path, &error))
    }

    /// The names of a folder that are numbers, in order: pids, threads, descriptors.
    pub(super) fn numbers(&self, path: &str) -> Result<Vec<u32>, ReadError> {
        let entries = fs::read_dir(self.path(path)).map_err(|error| Self::error(path, &error))?;
        let mut numbers: Vec<u32> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}
