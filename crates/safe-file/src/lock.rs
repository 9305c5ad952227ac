//! A lock that ends with its process (`flock(2)`), on a file that says who has it.

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

/// Who meets at a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockScope {
    /// Processes of one user: a stranger's file is refused, and while he has its lock he is named.
    Own,
    /// All users of a machine. Another's file can be locked without a right to write to it, and
    /// is not written to; the kernel says who has it.
    Common,
}

/// How a lock is taken.
#[derive(Debug, Clone, Copy)]
pub struct LockOptions {
    pub sharing: LockScope,
    /// How long to wait where the process that took it is gone: what it was about to start has its
    /// files too until it runs, and its supervisor may have something to do.
    pub timeout: Duration,
    /// Whether the file goes when the lock is given back.
    pub leaves_nothing: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else has it.
    #[error("{} is locked by {holder}", path.display())]
    Held { path: PathBuf, holder: LockHolder },
    #[error(transparent)]
    File(#[from] FileError),
}

/// Held until it is dropped or the process ends, however that ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// What to remove.
    path: Option<PathBuf>,
}

impl Lock {
    /// Takes the lock of a file, which is made if it is not there.
    ///
    /// # Errors
    /// Who holds it; what is there instead of a file of ours.
    pub fn take(path: &Path, terms: &LockOptions) -> Result<Lock, LockError> {
        let (rule, mode) = match terms.sharing {
            LockScope::Own => (OwnershipRule::Trusted, 0o644),
            LockScope::Common => (OwnershipRule::Anybody, 0o644),
        };
        let failed = |error| FileError::io(path, error);
        let limit = Instant::now() + terms.timeout;
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
                    sign(&mut file);
                    let path = terms.leaves_nothing.then(|| path.to_owned());
                    return Ok(Lock { file, path });
                }
                Ok(()) if removed < ATTEMPTS => removed += 1,
                Ok(()) => {
                    let why = "is made and removed by another program again and again";
                    return Err(FileError::refused(path, why).into());
                }
                Err(TryLockError::Error(error)) => return Err(failed(error).into()),
                Err(TryLockError::WouldBlock) => {
                    let holder = LockHolder::of(&mut file);
                    if holder.lives() || Instant::now() >= limit {
                        let holder = holder.or_whoever_has(&file);
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

    /// Another descriptor of it, for a process that shall share the lock.
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
        // Closing is not enough: a child that another thread has just forked has the file, too,
        // until it runs its program.
        let _ = self.file.unlock();
    }
}

/// Whoever holds the lock of a file that this user may not take: that is what keeps him out then,
/// and removing the file, which a refusal advises, would let both write.
fn held_by_another(path: &Path) -> Option<LockError> {
    let mut file = open_to_look(path)?;
    // A shared one, which does not keep others out who only look.
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let holder = LockHolder::of(&mut file).or_whoever_has(&file);
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

/// For the message only: the lock holds without it, on a full disk for one. Another user's file is
/// left as it is.
fn sign(file: &mut File) {
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
