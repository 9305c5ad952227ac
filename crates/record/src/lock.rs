//! One writer a file. SQLite's own locks last for a transaction; this one lasts as long as
//! the file is open for writing, so that two studies do not interleave their runs.
//!
//! The lock is on a file beside the results: closing any descriptor of the database itself
//! would drop the locks that SQLite holds on it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;

/// Ends with the process, however it ends; the file beside is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    _held: File,
}

/// Attempts against holders that remove their file while it is being opened.
const ATTEMPTS: usize = 100;
/// How long to wait for a holder whose process is gone.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

impl Lock {
    /// Takes the lock of `results` or says at once who holds it.
    pub fn take(results: &Path) -> Result<Lock, Error> {
        let path = beside(results);
        let limit = Instant::now() + PATIENCE;
        let mut attempts = 0;
        while attempts < ATTEMPTS {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(|source| refused(results, source))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let holder = holder(&mut file);
                    if is_gone(&holder) && Instant::now() < limit {
                        // What a killed process was about to start has its files until it runs.
                        thread::sleep(PAUSE);
                        continue;
                    }
                    return Err(Error::Locked { path: results.to_owned(), holder });
                }
                Err(TryLockError::Error(source)) => return Err(Error::io(&path, source)),
            }
            // The former holder may have removed the file between our open and our lock.
            if is_still_at(&file, &path) {
                write_holder(&mut file);
                return Ok(Lock { path, _held: file });
            }
            attempts += 1;
        }
        Err(Error::Busy(results.to_owned()))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while still held. If it stays, the next writer takes it over.
        let _ = std::fs::remove_file(&self.path);
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
        std::io::ErrorKind::PermissionDenied => Error::ReadOnly(results.to_owned()),
        // The results file itself may be a new one: it is its folder that is missing.
        std::io::ErrorKind::NotFound => {
            let folder = results.parent().filter(|p| !p.as_os_str().is_empty());
            Error::NoFolder(folder.unwrap_or(results).to_owned())
        }
        _ => Error::io(results, source),
    }
}

fn is_still_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(held), Ok(named)) => held.dev() == named.dev() && held.ino() == named.ino(),
        _ => false,
    }
}

/// For the message only: the lock holds without it, on a full disk for one.
fn write_holder(file: &mut File) {
    let _ = file.set_len(0);
    let _ = write!(file, "process {}", std::process::id());
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.rewind();
    let read = file.take(64).read_to_string(&mut text);
    match read {
        Ok(1..) => text,
        _ => "an unknown process".to_owned(),
    }
}

/// Whether the process that a lock names is no more.
fn is_gone(holder: &str) -> bool {
    let number = holder.strip_prefix("process ").filter(|n| n.chars().all(|c| c.is_ascii_digit()));
    number.is_some_and(|number| !Path::new("/proc").join(number).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_who_the_first_is_and_gets_it_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results.sqlite");
        let first = Lock::take(&results).unwrap();
        let refused = Lock::take(&results).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        drop(first);
        let again = Lock::take(&results).unwrap();
        drop(again);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    }

    #[test]
    fn a_lock_file_that_a_killed_writer_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results.sqlite");
        std::fs::write(beside(&results), "process 1 with a long name").unwrap();
        let _lock = Lock::take(&results).unwrap();
        let text = std::fs::read_to_string(beside(&results)).unwrap();
        assert_eq!(text, format!("process {}", std::process::id()));
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Lock::take(&folder.path().join("nowhere/results.sqlite")).unwrap_err();
        assert!(matches!(&error, Error::NoFolder(path) if path.ends_with("nowhere")), "{error}");
    }
}
