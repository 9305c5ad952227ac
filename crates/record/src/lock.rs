//! One writer a file. SQLite's own locks last for a transaction; this one lasts as long as
//! the file is open for writing, so that two studies do not interleave their runs.
//!
//! The lock is on a file beside the results: closing any descriptor of the database itself
//! would drop the locks that SQLite holds on it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use safe_file::{FileError, LockError, LockOptions, LockScope};

use crate::error::Error;

/// Ends with the process, however it ends; the file beside is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct ResultsLock {
    _held: safe_file::Lock,
}

const TERMS: LockOptions = LockOptions {
    scope: LockScope::OneUser,
    timeout: Duration::from_secs(5),
    leaves_nothing: true,
};

impl ResultsLock {
    /// Takes the lock of `results` or says at once who holds it.
    pub fn take(results: &Path) -> Result<ResultsLock, Error> {
        match safe_file::Lock::take(&beside(results), &TERMS) {
            Ok(held) => Ok(ResultsLock { _held: held }),
            Err(LockError::Held { holder, .. }) => {
                Err(Error::Locked { path: results.to_owned(), holder: holder.to_string() })
            }
            Err(LockError::File(FileError::Io { source, .. })) => Err(refused(results, source)),
            Err(LockError::File(stranger)) => Err(stranger.into()),
        }
    }
}

fn beside(results: &Path) -> PathBuf {
    // Two names of one file have to meet at one lock.
    let mut name = results.canonicalize().unwrap_or_else(|_| results.to_owned()).into_os_string();
    name.push("-lock");
    PathBuf::from(name)
}

fn refused(results: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        ErrorKind::PermissionDenied => Error::ReadOnly(results.to_owned()),
        // The results file itself may be a new one: it is its folder that is missing.
        ErrorKind::NotFound => {
            let folder = results.parent().filter(|p| !p.as_os_str().is_empty());
            Error::NoFolder(folder.unwrap_or(results).to_owned())
        }
        _ => Error::io(results, source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_who_the_first_is_and_gets_it_afterwards() {
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
    fn a_lock_file_that_a_killed_writer_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results.sqlite");
        std::fs::write(beside(&results), "process 1 with a long name").unwrap();
        let _lock = ResultsLock::take(&results).unwrap();
        let text = std::fs::read_to_string(beside(&results)).unwrap();
        assert!(text.starts_with(&format!("process {} of ", std::process::id())), "{text}");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = ResultsLock::take(&folder.path().join("nowhere/results.sqlite")).unwrap_err();
        assert!(matches!(&error, Error::NoFolder(path) if path.ends_with("nowhere")), "{error}");
    }

    #[test]
    fn nothing_is_written_through_what_somebody_put_at_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let (results, victim) = (folder.path().join("r.sqlite"), folder.path().join("victim"));
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, beside(&results)).unwrap();
        let error = ResultsLock::take(&results).unwrap_err();
        assert!(matches!(error, Error::Stranger(_)), "{error}");
        assert!(error.to_string().contains("is a symbolic link of user "), "{error}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }
}
