//! A lock that ends with its process (`flock(2)`), on a file that names its holder.

mod holder;

use std::fs::{self, File, TryLockError};
use std::io::{Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::FileError;
use crate::open::{OwnershipRule, open, open_to_look};
use crate::users::{own_uid, user_name};

pub use holder::LockHolder;

const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// The users that share a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockScope {
    /// Processes of one user: another user's file is refused, and the holder of its lock is named.
    OneUser,
    /// All users of a machine. Another user's file can be locked without write permission, and is
    /// not written; the kernel names the holder.
    AllUsers,
}

/// How a lock is taken.
#[derive(Debug, Clone, Copy)]
pub struct LockOptions {
    pub scope: LockScope,
    /// How long to wait where the process that took it has ended: its children inherit the file
    /// until they execute their program, and its supervisor may still hold it.
    pub timeout: Duration,
    /// Whether the file is removed when the lock is released.
    pub leaves_nothing: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("{} is locked by {holder}", path.display())]
    Held { path: PathBuf, holder: LockHolder },
    #[error(transparent)]
    File(#[from] FileError),
}

/// Held until it is dropped or the process ends, however that ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// The file to remove.
    path: Option<PathBuf>,
}

impl Lock {
    /// Takes the lock of a file, creating the file if necessary.
    ///
    /// # Errors
    /// The holder of the lock; an unsafe file.
    pub fn take(path: &Path, options: &LockOptions) -> Result<Lock, LockError> {
        let (rule, mode) = match options.scope {
            LockScope::OneUser => (OwnershipRule::Trusted, 0o644),
            LockScope::AllUsers => (OwnershipRule::Any, 0o644),
        };
        let failed = |error| FileError::io(path, error);
        let limit = Instant::now() + options.timeout;
        // Against holders that remove their file while it is being opened.
        let mut removed = 0;
        loop {
            let mut file = match open(path, mode, rule) {
                Ok(file) => file,
                Err(refusal) => return Err(held_by_another(path).unwrap_or(refusal.into())),
            };
            match file.try_lock() {
                // The former holder may have removed the file between our open and our lock.
                Ok(()) if is_still_at(&file, path) => {
                    write_signature(&mut file);
                    let path = options.leaves_nothing.then(|| path.to_owned());
                    return Ok(Lock { file, path });
                }
                Ok(()) if removed < ATTEMPTS => removed += 1,
                Ok(()) => {
                    let why = "is created and removed repeatedly by another program";
                    return Err(FileError::refused(path, why).into());
                }
                Err(TryLockError::Error(error)) => return Err(failed(error).into()),
                Err(TryLockError::WouldBlock) => {
                    let holder = LockHolder::of(&mut file);
                    if holder.lives() || Instant::now() >= limit {
                        let holder = holder.or_current_holder(&file);
                        return Err(LockError::Held { path: path.to_owned(), holder });
                    }
                }
            }
            thread::sleep(PAUSE);
        }
    }

    /// A lock that another process took and shares with this one by its descriptor.
    pub fn inherited(file: File) -> Lock {
        Lock { file, path: None }
    }

    /// Another descriptor, for a process that shares the lock.
    pub fn share(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Removed while still held. If it stays, the next one takes it over.
            let _ = fs::remove_file(path);
        }
        // Closing is not enough: a child that another thread has just forked has the file too until
        // it executes its program.
        let _ = self.file.unlock();
    }
}

/// The holder of a lock that this user may not take. It must be named instead of a refusal, whose
/// advice to remove the file would let both write.
fn held_by_another(path: &Path) -> Option<LockError> {
    let mut file = open_to_look(path)?;
    // A shared lock, which does not block other readers.
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let holder = LockHolder::of(&mut file).or_current_holder(&file);
            Some(LockError::Held { path: path.to_owned(), holder })
        }
        _ => None,
    }
}

fn is_still_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(named)) => held.dev() == named.dev() && held.ino() == named.ino(),
        _ => false,
    }
}

/// Only for messages: the lock works without it, for instance on a full disk. Another user's file
/// is not written.
fn write_signature(file: &mut File) {
    if !file.metadata().is_ok_and(|metadata| metadata.uid() == own_uid()) {
        return;
    }
    let now = holder::shown(jiff::Timestamp::now());
    let text = format!("process {} of {} since {now}\n", std::process::id(), user_name(own_uid()));
    let _ = file.rewind();
    let _ = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
}

#[cfg(test)]
mod tests;
