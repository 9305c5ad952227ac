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
    /// The device is gone. Of one without a size Linux says that it has no space left (ENOSPC of
    /// `blkdev_write_iter`), so the kernel's words stand behind.
    #[error("the device was removed; connect it again, and continue with --resume ({0})")]
    Removed(Box<WriteError>),
    /// The device has become smaller, which the kernel reports as no space, too.
    #[error(
        "the device shrank from {before} B to {now} B while it was written; begin again, without \
         --resume ({error})"
    )]
    Shrank { before: u64, now: u64, error: Box<WriteError> },
    #[error("{0}")]
    Other(String),
}

impl WriteError {
    /// What a failed write or command of a device means whose size was `before` bytes and is `now`.
    pub(super) fn of_device(self, before: u64, now: io::Result<u64>) -> WriteError {
        let (WriteError::Io { error, .. } | WriteError::Call { error, .. }) = &self else {
            return self;
        };
        let is_gone = matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO));
        match now {
            _ if is_gone => WriteError::Removed(Box::new(self)),
            Ok(0) => WriteError::Removed(Box::new(self)),
            Ok(now) if now < before => WriteError::Shrank { before, now, error: Box::new(self) },
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: i32) -> WriteError {
        let error = io::Error::from_raw_os_error(code);
        WriteError::Io { sector: 8, length: 4096, error, further: 0 }
    }

    #[test]
    fn a_device_that_is_gone_is_not_full() {
        let words = |code, now| failed(code).of_device(1 << 20, Ok(now)).to_string();
        for gone in [(libc::ENOSPC, 0), (libc::ENXIO, 1 << 20), (libc::ENODEV, 1 << 20)] {
            let words = words(gone.0, gone.1);
            assert!(words.contains("was removed") && words.contains("at sector 8"), "{words}");
        }
        assert!(words(libc::ENOSPC, 4096).contains("from 1048576 B to 4096 B"));
        // A thin volume whose pool is full keeps its size.
        let full = words(libc::ENOSPC, 1 << 20);
        assert!(full.starts_with("writing 4096 B at sector 8"), "{full}");
    }
}
