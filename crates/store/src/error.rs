use std::path::PathBuf;

use thiserror::Error;

/// What can go wrong with a store. `Request` variants are the user's to mend (exit code 2).
#[derive(Debug, Error)]
pub enum StoreError {
    /// The URL or one of its options; the message names the option and the nearest known one.
    #[error("{0}")]
    Request(String),
    /// The directory cannot be used as it is: something else's, in use, not writable, no space.
    #[error("{path}: {reason}; {remedy}")]
    Directory { path: PathBuf, reason: String, remedy: String },
    /// The disk is full.
    #[error("no space left: {0}")]
    Full(String),
    /// The store refused or failed an operation.
    #[error("{0}")]
    Failed(String),
}
