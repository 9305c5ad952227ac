use std::path::PathBuf;

use thiserror::Error;

/// Errors of a store. `Request` and `Directory` are errors of the user (exit code 2).
#[derive(Debug, Error)]
pub enum StoreError {
    /// The URL or one of its options; the message names the option and the nearest known one.
    #[error("{0}")]
    Request(String),
    /// The directory cannot be used as it is: something else's, in use, not writable, no space.
    #[error("{}: {reason}; {remedy}", path.display())]
    Directory { path: PathBuf, reason: String, remedy: String },
    /// The disk, or the space that the store was given, is full.
    #[error("no space left: {0}")]
    Full(String),
    /// Background work had not ended when the limit of [`Store::settle`](crate::Store::settle) was
    /// reached. The store is usable; the next phase pays for the rest of that work.
    #[error("{0}")]
    Unsettled(String),
    /// A plug-in did what its interface rules out, so nothing of it can be trusted.
    #[error("{0}")]
    Broken(String),
    /// No answer came in time.
    #[error("{0}")]
    Unanswered(String),
    /// The servers cannot be reached any more.
    #[error("{0}")]
    Lost(String),
    /// The store refused or failed an operation.
    #[error("{0}")]
    Failed(String),
}

impl StoreError {
    /// Distinguishes a full disk from all other I/O errors.
    pub(crate) fn from_io(action: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        let text = format!("{action}: {error}");
        match error.kind() {
            StorageFull | QuotaExceeded => Self::Full(text),
            _ => Self::Failed(text),
        }
    }
}
