//! Opening files that another user may have created.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::FileError;
use crate::users::{is_trusted, own_uid, user_name};

/// Attempts against concurrent creation and removal of the file.
const ATTEMPTS: usize = 100;

/// Which owners of a file are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnershipRule {
    /// This user's, root's or that of the folder's owner, and only theirs to write.
    Trusted,
    /// Any owner; files that are not trusted are opened for reading only.
    Any,
}

/// Opens a file for reading and writing, or makes it with this mode (less the umask). It must be a
/// plain file with one name, of this user, of root or of the folder's owner, and not
/// world-writable. Its content and mode are kept.
///
/// # Errors
/// A link, a second name, another kind of file, another user's file; the message names the owner.
/// I/O errors.
pub fn open_or_create(path: &Path, mode: u32) -> Result<File, FileError> {
    open(path, mode, OwnershipRule::Trusted)
}

pub(crate) fn open(path: &Path, mode: u32, rule: OwnershipRule) -> Result<File, FileError> {
    for _ in 0..ATTEMPTS {
        let read_only = match flags(OpenOptions::new().read(true).write(true)).open(path) {
            Ok(file) => return checked(file, path, rule),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => error,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let made = flags(OpenOptions::new().read(true).write(true).create_new(true))
                    .mode(mode)
                    .open(path);
                match made {
                    Ok(file) => return made_here(file, path, mode, rule),
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                    Err(error) => return Err(FileError::io(path, error)),
                }
            }
            Err(error) => return Err(not_opened(path, error)),
        };
        if rule == OwnershipRule::Trusted {
            let owner = fs::symlink_metadata(path).map(|there| there.uid());
            return Err(match owner {
                Ok(owner) => not_writable(path, owner),
                Err(_) => FileError::io(path, read_only),
            });
        }
        match flags(OpenOptions::new().read(true)).open(path) {
            Ok(file) => return checked(file, path, rule),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(not_opened(path, error)),
        }
    }
    Err(FileError::refused(path, "is created and removed repeatedly by another program"))
}

/// Follows no link, does not block, and closes on exec.
pub(crate) fn flags(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    options.custom_flags(flags.bits())
}

/// A file for all users must be readable, whatever the umask.
fn made_here(file: File, path: &Path, mode: u32, rule: OwnershipRule) -> Result<File, FileError> {
    if rule == OwnershipRule::Any {
        file.set_permissions(Permissions::from_mode(mode))
            .map_err(|error| FileError::io(path, error))?;
    }
    Ok(file)
}

fn checked(file: File, path: &Path, rule: OwnershipRule) -> Result<File, FileError> {
    let metadata = file.metadata().map_err(|error| FileError::io(path, error))?;
    plain(&metadata, path)?;
    if rule == OwnershipRule::Any {
        return Ok(file);
    }
    if !is_trusted(metadata.uid(), path) {
        return Err(foreign_owner(path, metadata.uid()));
    }
    if metadata.mode() & 0o002 != 0 {
        let why =
            "can be written by every user of this machine: forbid that (chmod o-w) or remove it";
        return Err(FileError::refused(path, why));
    }
    Ok(file)
}

/// A plain file with one name.
pub(crate) fn plain(metadata: &Metadata, path: &Path) -> Result<(), FileError> {
    let owner = user_name(metadata.uid());
    if !metadata.is_file() {
        let why = format!(
            "is not a regular file (its owner is {owner}); remove it or name another place"
        );
        return Err(FileError::refused(path, why));
    }
    if metadata.nlink() > 1 {
        let why = format!(
            "is a second name (hard link) of another file of {owner}, which would change with \
             it; remove it or name another place"
        );
        return Err(FileError::refused(path, why));
    }
    Ok(())
}

pub(crate) fn foreign_owner(path: &Path, uid: u32) -> FileError {
    let owner = user_name(uid);
    let why = format!("belongs to {owner}; have it removed or name another place");
    FileError::refused(path, why)
}

/// A file without write permission for this user.
fn not_writable(path: &Path, owner: u32) -> FileError {
    if !is_trusted(owner, path) {
        return foreign_owner(path, owner);
    }
    let (owner, me) = (user_name(owner), user_name(own_uid()));
    let why = format!(
        "belongs to {owner} and may not be written by {me}; have it removed or name another place"
    );
    FileError::refused(path, why)
}

/// Opens any user's plain file to inspect its lock.
pub(crate) fn open_to_look(path: &Path) -> Option<File> {
    let file = flags(OpenOptions::new().read(true)).open(path).ok()?;
    file.metadata().is_ok_and(|there| there.is_file()).then_some(file)
}

/// Explains errors that mean "this is no plain file".
pub(crate) fn not_opened(path: &Path, error: std::io::Error) -> FileError {
    let errno = error.raw_os_error().map(Errno::from_raw);
    let there = fs::symlink_metadata(path).ok();
    let owner = || there.as_ref().map_or_else(String::new, |there| user_name(there.uid()));
    match errno {
        Some(Errno::ELOOP) => FileError::refused(
            path,
            format!("is a symbolic link of {}, which is not followed; remove it", owner()),
        ),
        Some(Errno::ENXIO | Errno::EISDIR) => FileError::refused(
            path,
            format!(
                "is not a regular file (its owner is {}); remove it or name another place",
                owner()
            ),
        ),
        // Not even readable, which the lock needs.
        Some(Errno::EACCES) if there.as_ref().is_some_and(|there| there.is_file()) => {
            FileError::refused(
                path,
                format!("belongs to {}, and may not be read; have it removed", owner()),
            )
        }
        _ => FileError::io(path, error),
    }
}
