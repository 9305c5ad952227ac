use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

/// An error of a results file, with what to do about it.
#[derive(Debug, Error)]
pub enum RecordError {
    #[error("there is no results file {}", .0.display())]
    Missing(PathBuf),
    #[error("there is no folder {}; create it first", .0.display())]
    NoFolder(PathBuf),
    #[error("{} exists already; name another file", .0.display())]
    Exists(PathBuf),
    #[error("{} is not a file; name the results file itself", .0.display())]
    NotAFile(PathBuf),
    #[error("{} is empty: it holds no run; delete it", .0.display())]
    Empty(PathBuf),
    #[error("{} is not a results file of kvmeter (it is not a SQLite database); name another file", .0.display())]
    NotResults(PathBuf),
    #[error("{} is a SQLite database of another application, not a results file of kvmeter; it was left as it is", .0.display())]
    Foreign(PathBuf),
    #[error(
        "{} has schema version {found}, this kvmeter knows versions up to {known}: upgrade kvmeter to read it",
        path.display()
    )]
    NewerSchema { path: PathBuf, found: i64, known: i64 },
    #[error(
        "{} is damaged or was cut short ({detail}); copy it again from where it came from, or save what is left with `sqlite3 {} .recover`",
        path.display(), path.display()
    )]
    Damaged { path: PathBuf, detail: String },
    #[error(
        "{} has {found:?} for a {what}, which this kvmeter does not know: a newer one wrote it, or \
         it was changed by hand",
        path.display()
    )]
    UnknownName { path: PathBuf, what: &'static str, found: String },
    #[error("another kvmeter ({holder}) is writing to {}; wait until it ends, or name another file", path.display())]
    Locked { path: PathBuf, holder: String },
    #[error(transparent)]
    UnsafeFile(safe_file::FileError),
    #[error("another program is using {}; close it and try again", .0.display())]
    Busy(PathBuf),
    #[error("no space is left on the disk of {}; all runs stored before are safe", .0.display())]
    Full(PathBuf),
    #[error(
        "the disk of {} lacks the {} KiB that are reserved for the results of a run; free some \
         space, or name a file on another disk with --out",
        path.display(), bytes.div_ceil(1024)
    )]
    NoRoom { path: PathBuf, bytes: u64 },
    #[error("{} cannot be written; check its permissions and those of its folder", .0.display())]
    ReadOnly(PathBuf),
    #[error(
        "{} cannot be opened; check its permissions and those of its folder",
        .0.display()
    )]
    Unreadable(PathBuf),
    #[error(
        "the last writer of {} was killed while it wrote a run; open the file once where it is \
         writable, with its `-journal` beside it, to roll back the incomplete run",
        .0.display()
    )]
    Interrupted(PathBuf),
    #[error("{} has execution {id} already", path.display())]
    ExecutionExists { path: PathBuf, id: String },
    #[error(
        "{} and {} both hold the execution {id} of `{study}`: its runs would count twice. Leave \
         one of the files out, or select other executions of it with `?execution=...`",
        first.display(), second.display()
    )]
    ExecutionTwice { first: PathBuf, second: PathBuf, id: String, study: String },
    #[error("{} has no execution {id}; begin it before its runs are stored", path.display())]
    UnknownExecution { path: PathBuf, id: String },
    #[error("{} has run {ordinal} of execution {execution} already (or its id {id})", path.display())]
    RunExists { path: PathBuf, execution: String, ordinal: u32, id: String },
    #[error("run {id} cannot be stored: {what}")]
    InvalidRecord { id: String, what: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(
        "{}: its disk failed ({detail}), of which the kernel's log says more; the runs that were \
         stored before stay in the file",
        path.display()
    )]
    DiskFailed { path: PathBuf, detail: String },
    #[error("{}: {source}", path.display())]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error(transparent)]
    Filter(#[from] FilterError),
}

/// An invalid selection (`FILE?key=value&...`).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FilterError {
    #[error("`{0}` is not a condition; write key=value, several joined by `&`")]
    NotACondition(String),
    #[error("no run has a setting `{key}`; {hint}")]
    UnknownKey { key: String, hint: String },
    #[error("no run has {wanted}; {exists}")]
    NoMatch { wanted: String, exists: String },
    #[error("no run has been stored yet, so none has {wanted}")]
    NoRuns { wanted: String },
}

impl RecordError {
    /// Whether another file, or another request, is the way out. A disk that fails is none.
    pub fn is_request(&self) -> bool {
        !matches!(self, RecordError::DiskFailed { .. })
    }

    /// Maps a failure of SQLite to what the user can do about it.
    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> RecordError {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => RecordError::NotResults(path),
            Some(ErrorCode::DatabaseCorrupt) => {
                RecordError::Damaged { path, detail: source.to_string() }
            }
            Some(ErrorCode::TooBig) => RecordError::Damaged {
                path,
                detail: "a value in it is longer than any that kvmeter writes".to_owned(),
            },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => RecordError::Busy(path),
            Some(ErrorCode::DiskFull) => RecordError::Full(path),
            Some(ErrorCode::SystemIoFailure) => {
                RecordError::DiskFailed { path, detail: source.to_string() }
            }
            Some(ErrorCode::ReadOnly) if readonly_for_rollback(&source) => {
                RecordError::Interrupted(path)
            }
            Some(ErrorCode::ReadOnly) => RecordError::ReadOnly(path),
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                RecordError::Unreadable(path)
            }
            _ if is_schema_mismatch(&source) => {
                RecordError::Damaged { path, detail: source.to_string() }
            }
            _ => RecordError::Sqlite { path, source },
        }
    }

    pub(crate) fn io(path: &Path, source: std::io::Error) -> RecordError {
        let path = path.to_owned();
        match source.kind() {
            std::io::ErrorKind::NotFound => RecordError::Missing(path),
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                RecordError::Full(path)
            }
            std::io::ErrorKind::ReadOnlyFilesystem => RecordError::ReadOnly(path),
            std::io::ErrorKind::PermissionDenied => RecordError::Unreadable(path),
            _ if is_disk_failure(&source) => {
                RecordError::DiskFailed { path, detail: source.to_string() }
            }
            _ => RecordError::Io { path, source },
        }
    }
}

impl From<safe_file::FileError> for RecordError {
    fn from(error: safe_file::FileError) -> RecordError {
        match error {
            safe_file::FileError::Io { path, source } => RecordError::io(&path, source),
            refused => RecordError::UnsafeFile(refused),
        }
    }
}

/// Whether the disk failed, and not the path or what was requested of it.
fn is_disk_failure(error: &std::io::Error) -> bool {
    use nix::libc::{EFBIG, EIO, ENODEV, ENXIO, EREMOTEIO, ESTALE, ETIMEDOUT};
    let codes = [EIO, ENXIO, ENODEV, EREMOTEIO, ESTALE, ETIMEDOUT, EFBIG];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Whether a journal has to be rolled back first, which needs write access.
fn readonly_for_rollback(error: &rusqlite::Error) -> bool {
    error.sqlite_error().map(|e| e.extended_code) == Some(rusqlite::ffi::SQLITE_READONLY_ROLLBACK)
}

/// Whether a column or table does not match the schema.
fn is_schema_mismatch(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_fails_is_no_mistake_in_the_request() {
        let path = Path::new("r.sqlite");
        let os = |code| RecordError::io(path, std::io::Error::from_raw_os_error(code));
        let sqlite = |code| {
            let error = rusqlite::ffi::Error::new(code);
            RecordError::sqlite(path, rusqlite::Error::SqliteFailure(error, None))
        };
        for error in [
            os(nix::libc::EIO),
            os(nix::libc::ENODEV),
            sqlite(rusqlite::ffi::SQLITE_IOERR_WRITE),
            sqlite(rusqlite::ffi::SQLITE_IOERR_FSYNC),
        ] {
            assert!(
                !error.is_request() && error.to_string().contains("its disk failed"),
                "{error}"
            );
        }
        for error in [os(nix::libc::ENOSPC), os(nix::libc::ENOTDIR), sqlite(13)] {
            assert!(error.is_request(), "{error}");
        }
    }
}
