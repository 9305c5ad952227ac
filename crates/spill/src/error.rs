use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed. After any error the data is unchanged and the directory can be opened
/// again. (For a write whose sync failed see [`Table::put`](crate::Table::put).)
#[derive(Debug, Error)]
pub enum Error {
    /// The directory holds something that is not a store. Nothing was added to it.
    #[error("{path}: not a Spill directory, and not empty")]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// A checkpoint needs a directory of its own.
    #[error("{path}: not empty; a checkpoint needs a new or an empty directory")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// An incomplete checkpoint can neither be opened nor replaced.
    #[error("{path}: an incomplete checkpoint; remove it and create it again")]
    Unfinished {
        /// The directory.
        path: PathBuf,
    },
    /// There is no store, and [`Options::create`](crate::Options::create) is false or
    /// [`Options::read_only`](crate::Options::read_only) is true.
    #[error("{path}: no store here, and the options do not allow creating one")]
    NoStore {
        /// The directory.
        path: PathBuf,
    },
    /// The store was written in a format that this version does not read.
    #[error(
        "{path}: format {found} is not readable by this version of Spill, which writes format {known}: open it with the version that wrote it, or load the data again"
    )]
    Format {
        /// The manifest.
        path: PathBuf,
        /// The format found in the manifest.
        found: u32,
        /// The newest format that this version reads, which it also writes.
        known: u32,
    },
    /// The directory is already open, in this process or another. A read-only opener excludes only
    /// writers.
    #[error("{path}: already open, in this process or another")]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The data on disk is not what was written.
    #[error("{path}: damaged at byte {offset}: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset of the damage in bytes; 0 also where none is known, as for a missing file.
        offset: u64,
        /// What is damaged.
        what: String,
    },
    /// A key is longer than [`MAX_KEY_LEN`](crate::MAX_KEY_LEN).
    #[error("a key of {len} bytes exceeds the limit of {limit}")]
    KeyTooLong {
        /// Length of the key in bytes.
        len: usize,
        /// The maximum.
        limit: usize,
    },
    /// A value does not fit into a segment together with the longest key.
    #[error("a value of {len} bytes exceeds the limit of {limit}")]
    ValueTooLong {
        /// Length of the value in bytes.
        len: usize,
        /// The maximum: [`Options::segment`](crate::Options::segment) minus 1,194.
        limit: usize,
    },
    /// A batch does not fit into a segment.
    #[error("a batch of {len} bytes exceeds the limit of {limit}")]
    BatchTooLong {
        /// Bytes of its records: 18 plus key and value each, rounded up to a multiple of 8.
        len: usize,
        /// The maximum: [`Options::segment`](crate::Options::segment) minus 152.
        limit: usize,
    },
    /// A batch has more than [`MAX_BATCH_WRITES`](crate::MAX_BATCH_WRITES) writes.
    #[error("a batch of {count} writes exceeds the limit of {limit}")]
    TooManyWrites {
        /// Number of writes.
        count: usize,
        /// The maximum.
        limit: usize,
    },
    /// The name of a new table is longer than [`MAX_TABLE_NAME_LEN`](crate::MAX_TABLE_NAME_LEN).
    #[error("a table name of {len} bytes exceeds the limit of {limit}")]
    NameTooLong {
        /// Length of the name in bytes.
        len: usize,
        /// The maximum.
        limit: usize,
    },
    /// An option is out of its range.
    #[error("option {name}: {what}")]
    Option {
        /// The field of [`Options`](crate::Options).
        name: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The device is full or a quota is exhausted.
    #[error("no space left while writing {path}")]
    Full {
        /// The file or directory that was being written.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// After an earlier failure the state on the device is unknown, so nothing more is written.
    /// Reads still work; opening the directory again recovers.
    #[error("writes are halted after an earlier failure: {why}")]
    Halted {
        /// The earlier failure.
        why: String,
    },
    /// The store was opened with [`Options::read_only`](crate::Options::read_only).
    #[error("the store was opened read-only")]
    ReadOnly,
    /// The table was dropped, was never created, or belongs to another store.
    #[error(
        "no table `{name}` in this store: it was dropped, never created, or belongs to another store"
    )]
    NoTable {
        /// Name of the table.
        name: String,
    },
    /// The store has used up its table numbers.
    #[error(
        "all {limit} table numbers of the store are used, also by dropped tables: copy the data to \
         a new store"
    )]
    TooManyTables {
        /// The number of tables a store can create, including dropped ones.
        limit: u32,
    },
    /// The store has used up its segment numbers.
    #[error(
        "all {limit} segment numbers of the store are used: copy the data to a new store with \
         larger segments"
    )]
    TooManySegments {
        /// The number of segments a store can create, including deleted ones.
        limit: u32,
    },
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

    /// A copy of the error for another waiter.
    pub(crate) fn duplicate(&self) -> Error {
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
            other => other.as_halted(),
        }
    }

    /// The error that every later write returns.
    pub(crate) fn as_halted(&self) -> Error {
        match self {
            Error::ReadOnly => Error::ReadOnly,
            Error::Halted { why } => Error::Halted { why: why.clone() },
            other => Error::Halted { why: other.to_string() },
        }
    }

    /// A required file could not be opened.
    pub(crate) fn missing_file(path: &Path, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::NotFound {
            return Error::damaged(path, 0, "the file is missing");
        }
        Error::io(path, source)
    }

    /// An open file could not be read.
    pub(crate) fn truncated(path: &Path, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return Error::damaged(path, 0, "the file is truncated");
        }
        Error::io(path, source)
    }

    pub(crate) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), offset, what: what.into() }
    }
}
