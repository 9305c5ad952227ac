use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// The unit of addresses in messages, whatever the device's own.
pub(super) const SECTOR: u64 = 512;

/// Errors of preconditioning.
#[derive(Debug, Error)]
pub enum PreconditionError {
    /// The target must not be overwritten, or not in this way; nothing was written.
    #[error("{}: {why}", path.display())]
    Refused { path: PathBuf, why: String },
    /// The device failed. Nothing is retried.
    #[error("{}: {error}", path.display())]
    Failed { path: PathBuf, error: WriteError },
}

impl PreconditionError {
    /// Whether the user can mend it by another setting.
    pub fn is_request(&self) -> bool {
        matches!(self, PreconditionError::Refused { .. })
    }
}

/// A failed write or command.
#[derive(Debug, Error)]
pub enum WriteError {
    #[error(
        "writing {length} B at sector {sector} (512 B each, byte {}) failed: {error}; {further} \
         other writes in flight failed too",
        sector * SECTOR
    )]
    Io { sector: u64, length: u32, error: io::Error, further: usize },
    #[error("{what}: {error}")]
    Call { what: &'static str, error: io::Error },
    #[error("{0}")]
    Other(String),
}
