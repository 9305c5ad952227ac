//! Atomic replacement of a file's content.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::FileError;
use crate::open::foreign_owner;
use crate::users::{folder_of, is_open_to_all, is_trusted, user_name};

/// The kernel's limit of links in a row.
const LINKS: usize = 40;
const ENDING: &str = ".new";

/// The target of a write.
enum Destination {
    /// A plain file, possibly missing.
    File(PathBuf),
    /// A terminal, a pipe, `/dev/stdout`: there is no content to replace.
    Stream(PathBuf),
    /// Something that cannot be written as a file, with its kind.
    Other(PathBuf, &'static str),
}

/// Writes a file atomically: after a crash or on a full disk, and for every reader, it has the old
/// content or the new one. It keeps its mode, and its owner and group where permitted. A terminal,
/// a pipe or an open file (`/dev/stdout`) is appended to.
///
/// A symbolic link is followed, unless another user has created it in a world-writable folder;
/// another user's file there is refused too. A device or a folder is not replaced.
///
/// # Errors
/// Another user's link or file; neither a file nor a stream; I/O errors. The old content is then
/// unchanged.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), FileError> {
    replace_with(path, content, None)
}

/// The same for this user alone (mode 0600), whatever the old mode: as
/// [`open_private`](crate::open_private) reads it.
///
/// # Errors
/// Those of [`replace`].
pub fn replace_private(path: &Path, content: &[u8]) -> Result<(), FileError> {
    replace_with(path, content, Some(0o600))
}

fn replace_with(path: &Path, content: &[u8], mode: Option<u32>) -> Result<(), FileError> {
    let to = match destination(path)? {
        Destination::Stream(stream) => {
            // `/dev/stdout` may be a file that others append to (`>> all.log`): its content must
            // stay.
            return OpenOptions::new()
                .append(true)
                .open(&stream)
                .and_then(|mut stream| stream.write_all(content))
                .map_err(|error| FileError::io(path, error));
        }
        Destination::File(to) => to,
        Destination::Other(to, what) => return Err(no_file(&to, what)),
    };
    let before = fs::symlink_metadata(&to).ok();
    let failed = |error| FileError::io(path, error);
    let made = tempfile::Builder::new()
        .prefix(&prefix(&to))
        .suffix(ENDING)
        .permissions(Permissions::from_mode(mode.unwrap_or(0o666)))
        .tempfile_in(folder_of(&to));
    let mut made = match made {
        Ok(made) => made,
        // A writable file in a folder that is not writable.
        Err(error) if before.is_some() && error.kind() == ErrorKind::PermissionDenied => {
            return overwrite(&to, content);
        }
        Err(error) => return Err(failed(error)),
    };
    made.write_all(content).map_err(failed)?;
    if let (Some(before), None) = (before, mode) {
        give(made.as_file(), &before).map_err(failed)?;
        // After the owner, because changing it may clear mode bits.
        let mode = Permissions::from_mode(before.mode() & 0o777);
        made.as_file().set_permissions(mode).map_err(failed)?;
    }
    made.as_file().sync_all().map_err(failed)?;
    made.persist(&to).map_err(|error| failed(error.error))?;
    // Some file systems cannot sync a folder.
    let _ = File::open(folder_of(&to)).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Gives a file the owner and the group of its predecessor. Only root can change the owner; members
/// of the group can change the group.
fn give(file: &File, before: &Metadata) -> std::io::Result<()> {
    let now = file.metadata()?;
    if (now.uid(), now.gid()) == (before.uid(), before.gid()) {
        return Ok(());
    }
    let given = fchown(file, Some(before.uid()), Some(before.gid()))
        .or_else(|error| only_if_refused(error, || fchown(file, None, Some(before.gid()))));
    given.or_else(|error| only_if_refused(error, || Ok(())))
}

fn only_if_refused(
    error: std::io::Error,
    then: impl FnOnce() -> std::io::Result<()>,
) -> std::io::Result<()> {
    match error.kind() {
        ErrorKind::PermissionDenied => then(),
        _ => Err(error),
    }
}

/// Checks a user's name for an output file, as [`replace`] does.
///
/// # Errors
/// Another user's link or file in a world-writable folder; a device, a folder.
pub fn check_output(path: &Path) -> Result<(), FileError> {
    match destination(path)? {
        Destination::Other(to, what) => Err(no_file(&to, what)),
        Destination::File(_) | Destination::Stream(_) => Ok(()),
    }
}

/// Checks a user's name for an output folder.
///
/// # Errors
/// Another user's link or folder in a world-writable folder.
pub fn check_folder(path: &Path) -> Result<(), FileError> {
    destination(path).map(drop)
}

fn no_file(to: &Path, what: &str) -> FileError {
    FileError::refused(to, format!("{what}; name a file"))
}

/// Whether a name is that of a temporary file of [`replace`], left by a killed process.
pub fn is_temporary(name: &OsStr, of: &str) -> bool {
    let name = name.to_string_lossy();
    name.strip_prefix(&format!(".{of}.")).is_some_and(|rest| rest.ends_with(ENDING))
}

/// Checks a companion file, such as the journal of a database, which would be trusted.
///
/// # Errors
/// A link, or an owner who is neither trusted in the folder nor the owner of `main`.
pub fn check_companion(path: &Path, main: &Path) -> Result<(), FileError> {
    let Ok(there) = fs::symlink_metadata(path) else { return Ok(()) };
    let is_main_s = fs::metadata(main).is_ok_and(|main| main.uid() == there.uid());
    if is_trusted(there.uid(), path) || is_main_s {
        return Ok(());
    }
    Err(foreign_owner(path, there.uid()))
}

fn prefix(to: &Path) -> String {
    format!(".{}.", to.file_name().unwrap_or_default().to_string_lossy())
}

/// Follows trusted links.
fn destination(path: &Path) -> Result<Destination, FileError> {
    let mut to = path.to_owned();
    for _ in 0..LINKS {
        let there = match fs::symlink_metadata(&to) {
            Ok(there) => there,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Destination::File(to)),
            Err(error) => return Err(FileError::io(path, error)),
        };
        let owner = there.uid();
        if is_open_to_all(folder_of(&to)) && !is_trusted(owner, &to) {
            return Err(match there.is_symlink() {
                true => FileError::refused(
                    &to,
                    format!(
                        "is a symbolic link of {} in a folder that every user can write to; name \
                         another place",
                        user_name(owner)
                    ),
                ),
                false => foreign_owner(&to, owner),
            });
        }
        // Files opened by a process have no other name that matters.
        if to.starts_with("/proc") {
            return Ok(Destination::Stream(to));
        }
        if there.is_symlink() {
            let target = fs::read_link(&to).map_err(|error| FileError::io(path, error))?;
            to = folder_of(&to).join(target);
            continue;
        }
        let kind = there.file_type();
        if kind.is_file() {
            return Ok(Destination::File(to));
        }
        if kind.is_char_device() || kind.is_fifo() || kind.is_socket() {
            return Ok(Destination::Stream(to));
        }
        let what = if kind.is_dir() { "is a folder" } else { "is a device" };
        return Ok(Destination::Other(to, what));
    }
    Err(FileError::refused(path, "is a link that leads to itself"))
}

fn overwrite(to: &Path, content: &[u8]) -> Result<(), FileError> {
    let failed = |error| FileError::io(to, error);
    let mut file = crate::open::flags(OpenOptions::new().write(true)).open(to).map_err(failed)?;
    file.set_len(0).and_then(|()| file.write_all(content)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;
    use crate::users::own_uid;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> =
            entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        replace(&path, b"one").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o600, 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let open = File::open(&path).unwrap();
        let other = folder.path().join("other name");
        fs::hard_link(&path, &other).unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read(&other).unwrap(), b"one", "another name has its own content");
        assert_eq!(std::io::read_to_string(open).unwrap(), "one", "a reader has it whole");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        replace_private(&path, b"three").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(names(folder.path()), ["other name", "page.html"]);
        assert!(replace(&folder.path().join("none/page"), b"").is_err());
        assert!(is_temporary(OsStr::new(".page.html.aB3x.new"), "page.html"));
        assert!(!is_temporary(OsStr::new("page.html.new"), "page.html"));
    }

    #[test]
    fn follows_only_own_links() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        fs::create_dir(folder.path().join("elsewhere")).unwrap();
        let (path, real) = (folder.path().join("page"), folder.path().join("elsewhere/page"));
        symlink("elsewhere/page", &path).unwrap();
        for text in ["new", "old"] {
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&real).unwrap(), text);
            assert!(path.is_symlink());
        }
        symlink("round", folder.path().join("round")).unwrap();
        assert!(replace(&folder.path().join("round"), b"").is_err());
        if own_uid() != 0 {
            eprintln!("skipped: only root can give a link to another user");
            return;
        }
        std::os::unix::fs::lchown(&path, Some(12_345), None).unwrap();
        let refused = replace(&path, b"x").unwrap_err().to_string();
        assert!(refused.contains("is a symbolic link of user 12345"), "{refused}");
        assert_eq!(fs::read_to_string(&real).unwrap(), "old");
        // Outside world-writable folders links are trusted.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        replace(&path, b"x").unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
        let his = folder.path().join("his");
        fs::write(&his, "his").unwrap();
        chown(&his, Some(12_345), None).unwrap();
        let refused = replace(&his, b"x").unwrap_err().to_string();
        assert!(refused.contains("belongs to user 12345"), "{refused}");
        let main = folder.path().join("main");
        fs::write(&main, "").unwrap();
        assert!(check_companion(&his, &main).is_err());
        chown(&main, Some(12_345), None).unwrap();
        check_companion(&his, &main).unwrap();
        check_companion(&folder.path().join("none"), &main).unwrap();
    }

    #[test]
    fn appends_to_streams() {
        let folder = tempfile::tempdir().unwrap();
        replace(Path::new("/dev/null"), b"x").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        // As `--out >(gzip)` and `/dev/stdout` are: a name of what is open already.
        let mut file = File::create(folder.path().join("open")).unwrap();
        file.write_all(b"before, ").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        let link = folder.path().join("link");
        symlink(format!("/proc/self/fd/{fd}"), &link).unwrap();
        replace(&link, b"x").unwrap();
        assert_eq!(fs::read(folder.path().join("open")).unwrap(), b"before, x");
        assert_eq!(file.metadata().unwrap().nlink(), 1);
    }

    #[test]
    fn replace_keeps_owner_and_group() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        fs::write(&path, "old").unwrap();
        if own_uid() != 0 {
            eprintln!("skipped: only root can give a file to another user");
            return;
        }
        chown(&path, Some(12_345), Some(54_321)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"new").unwrap();
        let there = fs::metadata(&path).unwrap();
        assert_eq!((there.uid(), there.gid(), there.mode() & 0o777), (12_345, 54_321, 0o640));
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn refuses_folders_and_devices() {
        use nix::sys::stat::{Mode, SFlag, makedev, mknod};
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| {
            assert!(check_output(path).is_err());
            replace(path, b"x").unwrap_err().to_string()
        };
        assert!(refused(folder.path()).contains("is a folder"));
        let disk = folder.path().join("disk");
        // A number without a driver, so that nothing is opened.
        match mknod(&disk, SFlag::S_IFBLK, Mode::S_IRUSR, makedev(250, 1_000_000)) {
            Err(error) => eprintln!("skipped: no device can be made: {error}"),
            Ok(()) => {
                assert!(refused(&disk).contains("is a device"));
                assert!(fs::metadata(&disk).unwrap().file_type().is_block_device());
            }
        }
    }
}
