//! One study at a time on a machine: two would measure each other.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::StudyError;

/// Where the lock lies instead, with the journal of the knobs.
const FOLDER: &str = "KVMETER_STATE_DIR";
/// Folders that every user of a machine has in common, the best first.
const COMMON: [&str; 3] = ["/run/lock", "/var/lock", "/tmp"];
const NAME: &str = "kvmeter-run.lock";
/// How long to wait where the process that took it is gone: a program that it was about to start
/// has its files too until it runs, and after a kill that may take a moment.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// Held while a study runs; it ends with the process, however that ends.
#[derive(Debug)]
pub struct MachineLock {
    _held: File,
}

impl MachineLock {
    /// Takes the lock of this machine at once or not at all.
    ///
    /// # Errors
    /// Another study runs, with its process; no place for the lock.
    pub fn take() -> Result<MachineLock, StudyError> {
        let own = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty());
        match own {
            Some(folder) => MachineLock::take_in(Path::new(&folder)),
            None => {
                let common = COMMON.iter().map(Path::new).find(|folder| folder.is_dir());
                MachineLock::take_in(common.unwrap_or(Path::new("/tmp")))
            }
        }
    }

    fn take_in(folder: &Path) -> Result<MachineLock, StudyError> {
        let path = folder.join(NAME);
        let failed = |error: std::io::Error| {
            StudyError::Request(format!(
                "{}: cannot be locked: {error}; name a folder that can be written to in {FOLDER}",
                path.display()
            ))
        };
        let mut file = open(folder, &path).map_err(failed)?;
        let limit = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            if holder(&path).is_some_and(|(_, lives)| lives) || Instant::now() > limit {
                return Err(busy(&path));
            }
            thread::sleep(PAUSE);
        }
        // Another user's file may only be read: then the number in it is not ours, and nothing
        // else is lost.
        let number = std::process::id().to_string();
        let _ = file.set_len(0).and_then(|()| file.write_all(number.as_bytes()));
        Ok(MachineLock { _held: file })
    }
}

/// The file, for writing if that is allowed. Another user's file in a common folder may not be
/// opened with the wish to make it.
fn open(folder: &Path, path: &PathBuf) -> std::io::Result<File> {
    let there = OpenOptions::new().read(true).write(true).open(path);
    match there {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return File::open(path),
        other => return other,
    }
    fs::create_dir_all(folder)?;
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    // For whoever comes next; that this fails does not matter to the lock.
    let _ = file.set_permissions(fs::Permissions::from_mode(0o666));
    Ok(file)
}

/// The process that the file names, and whether it lives.
fn holder(path: &Path) -> Option<(String, bool)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let number: String = text.chars().take_while(char::is_ascii_digit).collect();
    let lives = Path::new("/proc").join(&number).exists();
    (!number.is_empty()).then_some((number, lives))
}

fn busy(path: &Path) -> StudyError {
    let who = match holder(path) {
        Some((number, true)) => format!(" (process {number})"),
        _ => String::new(),
    };
    StudyError::Request(format!(
        "another study runs on this machine{who}, and two would measure each other; wait until it \
         has ended ({} is locked)",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_refused_with_the_process_that_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("not there yet");
        let first = MachineLock::take_in(&place).unwrap();
        let refused = MachineLock::take_in(&place).unwrap_err();
        assert!(refused.is_request());
        let number = format!("process {}", std::process::id());
        assert!(refused.to_string().contains(&number), "{refused}");
        drop(first);
        MachineLock::take_in(&place).unwrap();
    }

    #[test]
    fn what_a_dead_one_s_child_still_holds_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        // Held, as by what a killed process had just forked: the number in it is of no process.
        fs::write(&path, "4194304000").unwrap();
        let held = File::open(&path).unwrap();
        held.try_lock().unwrap();
        let free = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            held.unlock().unwrap();
        });
        MachineLock::take_in(folder.path()).unwrap();
        free.join().unwrap();
    }

    #[test]
    fn what_a_killed_one_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAME), "4194304000").unwrap();
        MachineLock::take_in(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join(NAME)).unwrap();
        assert_eq!(text, std::process::id().to_string());
    }
}
