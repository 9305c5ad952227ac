use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// What the functions of this crate answer.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was not done. After every one of them the data is as it was, and the directory
/// can be opened again. (Of a write whose sync failed see [`Table::put`](crate::Table::put).)
#[derive(Debug, Error)]
pub enum Error {
    /// What is in a directory is no store's. Nothing is made beside it.
    #[error("{path}: not a directory of Spill, and not empty")]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// A checkpoint is made in a directory of its own.
    #[error("{path}: not empty; a checkpoint needs a new or an empty directory")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// A checkpoint that was begun and not completed cannot be opened, and no other takes its place.
    #[error("{path}: a checkpoint that was not finished; remove it, and make it again")]
    Unfinished {
        /// The directory.
        path: PathBuf,
    },
    /// There is no store, and [`Options::create`](crate::Options::create) is false or
    /// [`Options::read_only`](crate::Options::read_only) true.
    #[error("{path}: there is no store, and none is to be made")]
    NoStore {
        /// The directory.
        path: PathBuf,
    },
    /// The store was written in a format that this version does not read.
    #[error(
        "{path}: written in format {found}, which this Spill, of format {known}, does not read: open it with the one that wrote it, or load the data anew"
    )]
    Format {
        /// The manifest.
        path: PathBuf,
        /// The format that it says.
        found: u32,
        /// The newest format that this version reads, which is the one that it writes.
        known: u32,
    },
    /// The directory is open already, in this process or in another one. Who reads alone excludes
    /// only those who write.
    #[error("{path}: it is open already, in another process or in this one")]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// What is on the disk is not what was written.
    #[error("{path}: damaged at byte {offset}: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Bytes from its begin to what is wrong; 0 also where no place is known, as in a file that
        /// is missing.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A key to be written is longer than [`MAX_KEY_LEN`](crate::LONGEST_KEY).
    #[error("a key of {len} bytes; keys have at most {limit}")]
    KeyTooLong {
        /// Its bytes.
        len: usize,
        /// The most bytes that a key may have.
        limit: usize,
    },
    /// A value to be written does not fit into a segment with the longest key.
    #[error("a value of {len} bytes; values here have at most {limit}")]
    ValueTooLong {
        /// Its bytes.
        len: usize,
        /// The most bytes that a value may have: [`Options::segment`](crate::Options::segment) less
        /// 1,194.
        limit: usize,
    },
    /// A batch does not fit into a segment.
    #[error("a batch of {len} bytes; batches here have at most {limit}")]
    BatchTooLong {
        /// Bytes of its records: each has 18, its key and its value, up to a multiple of 8.
        len: usize,
        /// The most bytes that they may have: [`Options::segment`](crate::Options::segment) less
        /// 152.
        limit: usize,
    },
    /// A batch has more writes than it may ([`MAX_BATCH_WRITES`](crate::MOST_WRITES)).
    #[error("a batch of {count} writes; batches have at most {limit}")]
    TooManyWrites {
        /// How many it has.
        count: usize,
        /// The most that a batch may have.
        limit: usize,
    },
    /// The name of a table to be made is longer than [`MAX_TABLE_NAME_LEN`](crate::LONGEST_NAME).
    #[error("a table's name of {len} bytes; names have at most {limit}")]
    NameTooLong {
        /// Its bytes.
        len: usize,
        /// The most bytes that a name may have.
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
    /// The device is full, or a quota is used up.
    #[error("no space left while writing {path}")]
    Full {
        /// The file or directory that was being written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system could not do, or would not do, what was asked of it.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An earlier failure leaves it unknown what is on the device, so nothing more is written.
    /// Reads go on; opening the directory again recovers.
    #[error("nothing more is written after an earlier failure: {why}")]
    Halted {
        /// The earlier failure, in words.
        why: String,
    },
    /// The store was opened with [`Options::read_only`](crate::Options::read_only).
    #[error("the store was opened for reading only")]
    ReadOnly,
    /// A table was dropped, was never made, or is one of another store.
    #[error("no table of this store: `{name}` was dropped, never made, or is another store's")]
    NoTable {
        /// Its name.
        name: String,
    },
    /// No table can be made any more: in the life of a store as many were made as may be.
    #[error(
        "a store gives {limit} tables a number, and dropped ones keep theirs: copy what is left to a new one"
    )]
    TooManyTables {
        /// How many may be, those that were dropped included.
        limit: u32,
    },
    /// No segment can be made any more: in the life of a store as many were made as may be.
    #[error(
        "the log of a store has {limit} segments in its life: copy what is in it to a new one, with larger ones"
    )]
    TooManySegments {
        /// How many may be, those that are gone included.
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

    /// The same error once more, for another who waits for the same thing.
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

    /// What every write answers from now on.
    pub(crate) fn as_halted(&self) -> Error {
        match self {
            Error::ReadOnly => Error::ReadOnly,
            Error::Halted { why } => Error::Halted { why: why.clone() },
            other => Error::Halted { why: other.to_string() },
        }
    }

    /// A file that must be there could not be opened.
    pub(crate) fn missing_file(path: &Path, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::NotFound {
            return Error::damaged(path, 0, "the file is missing");
        }
        Error::io(path, source)
    }

    /// A file that was opened, and then could not be read.
    pub(crate) fn truncated(path: &Path, source: io::Error) -> Error {
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return Error::damaged(path, 0, "the file was cut short");
        }
        Error::io(path, source)
    }

    pub(crate) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), offset, what: what.into() }
    }
}
