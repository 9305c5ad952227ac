//! One writer a file. SQLite's own locks last for a transaction; this one lasts as long as
//! the file is open for writing, so that two studies do not interleave their runs.
//!
//! The lock is on a file of its own: closing any descriptor of the database would drop the locks
//! that SQLite holds on it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use safe_file::{FileError, LockError, LockOptions, LockScope};

use crate::error::RecordError;

/// Released when the process ends, however it ends; the lock file is removed on drop.
#[derive(Debug)]
pub(crate) struct ResultsLock {
    _lock: safe_file::Lock,
}

const LOCK_OPTIONS: LockOptions = LockOptions {
    scope: LockScope::OneUser,
    timeout: Duration::from_secs(5),
    leaves_nothing: true,
};

impl ResultsLock {
    /// Takes the lock of `results`, or fails with its holder.
    pub fn take(results: &Path) -> Result<ResultsLock, RecordError> {
        match safe_file::Lock::take(&lock_path(results), &LOCK_OPTIONS) {
            Ok(lock) => Ok(ResultsLock { _lock: lock }),
            Err(LockError::Held { holder, .. }) => {
                Err(RecordError::Locked { path: results.to_owned(), holder: holder.to_string() })
            }
            Err(LockError::File(FileError::Io { source, .. })) => Err(refused(results, source)),
            Err(LockError::File(error)) => Err(error.into()),
        }
    }
}

fn lock_path(results: &Path) -> PathBuf {
    // Two names of one file must share one lock.
    let mut name = results.canonicalize().unwrap_or_else(|_| results.to_owned()).into_os_string();
    name.push("-lock");
    PathBuf::from(name)
}

fn refused(results: &Path, source: std::io::Error) -> RecordError {
    match source.kind() {
        ErrorKind::PermissionDenied => RecordError::ReadOnly(results.to_owned()),
        // The results file itself may be a new one: it is its folder that is missing.
        ErrorKind::NotFound => {
            let folder = results.parent().filter(|p| !p.as_os_str().is_empty());
            RecordError::NoFolder(folder.unwrap_or(results).to_owned())
        }
        _ => RecordError::io(results, source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_with_the_name_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results.sqlite");
        let first = ResultsLock::take(&results).unwrap();
        let refused = ResultsLock::take(&results).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        drop(first);
        let again = ResultsLock::take(&results).unwrap();
        drop(again);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn takes_over_the_lock_file_of_a_killed_writer() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results.sqlite");
        std::fs::write(lock_path(&results), "process 1 with a long name").unwrap();
        let _lock = ResultsLock::take(&results).unwrap();
        let text = std::fs::read_to_string(lock_path(&results)).unwrap();
        assert!(text.starts_with(&format!("process {} of ", std::process::id())), "{text}");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = ResultsLock::take(&folder.path().join("nowhere/results.sqlite")).unwrap_err();
        assert!(
            matches!(&error, RecordError::NoFolder(path) if path.ends_with("nowhere")),
            "{error}"
        );
    }

    #[test]
    fn refuses_a_symbolic_link_in_place_of_the_lock_file() {
        let folder = tempfile::tempdir().unwrap();
        let (results, victim) = (folder.path().join("r.sqlite"), folder.path().join("victim"));
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, lock_path(&results)).unwrap();
        let error = ResultsLock::take(&results).unwrap_err();
        assert!(matches!(error, RecordError::UnsafeFile(_)), "{error}");
        assert!(error.to_string().contains("is a symbolic link of user "), "{error}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }
}
