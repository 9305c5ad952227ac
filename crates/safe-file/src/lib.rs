//! Files at names that others can guess: locks, journals, state, pages, exports.
//!
//! In a folder that several users write to, somebody may have put something at such a name
//! before: a symbolic link, a second name of another file, a pipe. Here a name is opened without
//! following a link, what was opened is looked at by its descriptor, and nothing is truncated,
//! written or given other permissions before that ([`open_or_create`], [`own`]). A [`Lock`] stands
//! on it, and names whoever holds it. What a user named to be written is replaced in one step
//! ([`replace`]).
//!
//! Trusted are this user, root, and the owner of the folder, who can do anything in it anyway:
//! the rule of `fs.protected_regular` and `fs.protected_symlinks`.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod lock;
mod open;
mod private_state;
mod replace;
mod users;

pub use lock::{Lock, LockError, LockHolder, LockOptions, LockScope};
pub use open::open_or_create;
pub use private_state::{make_folder, own, own_folder};
pub use replace::{
    check_companion, check_folder, check_output, is_left_over, replace, replace_own,
};
pub use users::user_name;

use std::io;
use std::path::{Path, PathBuf};

/// Why a file is not touched.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// What is there is not what this process may use. The text says whose it is and what helps.
    #[error("{} {why}", path.display())]
    Refused { path: PathBuf, why: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl FileError {
    fn refused(path: &Path, why: impl Into<String>) -> FileError {
        FileError::Refused { path: path.to_owned(), why: why.into() }
    }

    fn io(path: &Path, source: impl Into<io::Error>) -> FileError {
        FileError::Io { path: path.to_owned(), source: source.into() }
    }

    /// The operating system's answer; a refusal counts as one of permissions.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            FileError::Refused { .. } => io::ErrorKind::PermissionDenied,
            FileError::Io { source, .. } => source.kind(),
        }
    }
}

/// For functions that answer the operating system's errors.
impl From<FileError> for io::Error {
    fn from(error: FileError) -> io::Error {
        match error {
            FileError::Io { source, .. } => source,
            refused => io::Error::new(refused.kind(), refused),
        }
    }
}
