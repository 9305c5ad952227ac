use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub type Result<T> = std::result::Result<T, Error>;

/// Why something was not done. After every one of them the data is as it was, and the directory
/// can be opened again.
#[derive(Debug, Error)]
pub enum Error {
    #[error("{path}: not a directory of Spill, and not empty")]
    Foreign { path: PathBuf },
    #[error("{path}: a checkpoint that was not finished; make it again, or remove it")]
    Unfinished { path: PathBuf },
    #[error("{path}: there is no store, and none is to be made")]
    NoStore { path: PathBuf },
    #[error(
        "{path}: written in format {found}, which this Spill, of format {known}, does not read: open it with the one that wrote it, or load the data anew"
    )]
    Format { path: PathBuf, found: u32, known: u32 },
    #[error("{path}: it is open already, in another process or in this one")]
    Locked { path: PathBuf },
    /// What is on the disk is not what was written.
    #[error("{path}: damaged at byte {offset}: {what}")]
    Damaged { path: PathBuf, offset: u64, what: String },
    #[error("a key of {len} bytes; keys have at most {limit}")]
    KeyTooLong { len: usize, limit: usize },
    #[error("a value of {len} bytes; values here have at most {limit}")]
    ValueTooLong { len: usize, limit: usize },
    #[error("a batch of {len} bytes; batches here have at most {limit}")]
    BatchTooLong { len: usize, limit: usize },
    #[error("a table's name of {len} bytes; names have at most {limit}")]
    NameTooLong { len: usize, limit: usize },
    #[error("option {name}: {what}")]
    Option { name: &'static str, what: String },
    #[error("no space left while writing {path}")]
    Full { path: PathBuf, source: io::Error },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// An earlier failure leaves it unknown what is on the device, so nothing more is written.
    /// Reads go on; opening the directory again recovers.
    #[error("nothing more is written after an earlier failure: {why}")]
    Halted { why: String },
    #[error("the store was opened for reading only")]
    ReadOnly,
    #[error("this store has no table `{name}`")]
    NoTable { name: String },
    #[error(
        "a store gives {limit} tables a number, and dropped ones keep theirs: copy what is left to a new one"
    )]
    TooManyTables { limit: u32 },
    #[error(
        "the log of a store has {limit} segments in its life: copy what is in it to a new one, with larger ones"
    )]
    TooManySegments { limit: u32 },
}

impl Error {
    pub(crate) fn io(path: &Path, source: io::Error) -> Error {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::Full { path, source }
            }
            _ => Error::Io { path, source },
        }
    }

    /// The same error once more, for another who waits for the same thing.
    pub(crate) fn again(&self) -> Error {
        let same = |source: &io::Error| match source.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(source.kind(), source.to_string()),
        };
        match self {
            Error::Full { path, source } => {
                Error::Full { path: path.clone(), source: same(source) }
            }
            Error::Io { path, source } => Error::Io { path: path.clone(), source: same(source) },
            Error::Damaged { path, offset, what } => {
                Error::Damaged { path: path.clone(), offset: *offset, what: what.clone() }
            }
            other => other.lasting(),
        }
    }

    /// What every write answers from now on.
    pub(crate) fn lasting(&self) -> Error {
        match self {
            Error::ReadOnly => Error::ReadOnly,
            Error::Halted { why } => Error::Halted { why: why.clone() },
            other => Error::Halted { why: other.to_string() },
        }
    }

    /// A file that must be there could not be opened.
    pub(crate) fn missing(path: &Path, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::NotFound {
            return Error::damaged(path, 0, "the file is missing");
        }
        Error::io(path, source)
    }

    /// A file that was opened, and then could not be read.
    pub(crate) fn cut_short(path: &Path, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return Error::damaged(path, 0, "the file was cut short");
        }
        Error::io(path, source)
    }

    pub(crate) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), offset, what: what.into() }
    }
}
