//! Safe access to files at predictable names: locks, journals, state, pages, exports.
//!
//! In a folder that several users write to, another user may have created a symbolic link, a hard
//! link or a pipe at such a name. Files are opened without following links, checked by their
//! descriptor, and only then truncated, written or given permissions ([`open_or_create`],
//! [`open_private`]). A [`Lock`] is such a file, and names its holder. Output files are replaced
//! atomically ([`replace`]).
//!
//! Trusted are this user, root, and the owner of the folder, who can do anything in it anyway:
//! the rule of `fs.protected_regular` and `fs.protected_symlinks`.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod checksum;
mod lock;
mod open;
mod private_state;
mod read;
mod replace;
mod users;

pub use checksum::sha256;
pub use lock::{Lock, LockError, LockHolder, LockOptions, LockScope};
pub use open::open_or_create;
pub use private_state::{make_folder, make_private_folder, open_private};
pub use read::{read_bytes, read_text};
pub use replace::{
    check_companion, check_folder, check_output, is_temporary, replace, replace_private,
};
pub use users::user_name;

use std::io;
use std::path::{Path, PathBuf};

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The existing file is not safe to use. The text names its owner and a remedy.
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

    /// The reason without the path.
    pub fn why(&self) -> String {
        match self {
            FileError::Refused { why, .. } => why.clone(),
            FileError::Io { source, .. } => source.to_string(),
        }
    }

    /// The kind of the error; a refusal counts as one of permissions.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            FileError::Refused { .. } => io::ErrorKind::PermissionDenied,
            FileError::Io { source, .. } => source.kind(),
        }
    }
}

/// For functions that return I/O errors.
impl From<FileError> for io::Error {
    fn from(error: FileError) -> io::Error {
        match error {
            FileError::Io { source, .. } => source,
            refused => io::Error::new(refused.kind(), refused),
        }
    }
}
