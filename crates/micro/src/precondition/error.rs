use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// The unit of addresses in messages, whatever the device's own.
pub(super) const SECTOR: u64 = 512;

/// Why a device was not brought to a known state.
#[derive(Debug, Error)]
pub enum PreconditionError {
    /// It is not to be overwritten, or not in this way; nothing was written.
    #[error("{}: {why}", path.display())]
    Refused { path: PathBuf, why: String },
    /// The device failed. Nothing is tried twice.
    #[error("{}: {error}", path.display())]
    Failed { path: PathBuf, error: WriteError },
}

impl PreconditionError {
    /// Whether the request was wrong, and not the device.
    pub fn is_request(&self) -> bool {
        matches!(self, PreconditionError::Refused { .. })
    }
}

/// What a device answered to what it was told.
#[derive(Debug, Error)]
pub enum WriteError {
    #[error(
        "writing {length} B at sector {sector} (512 B each, byte {}) failed: {error}; {further} \
         further writes that were under way failed, too",
        sector * SECTOR
    )]
    Io { sector: u64, length: u32, error: io::Error, further: usize },
    #[error("{what}: {error}")]
    Call { what: &'static str, error: io::Error },
    #[error("{0}")]
    Other(String),
}
