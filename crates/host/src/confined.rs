//! A folder whose paths cannot leave it, neither by `..` nor by links.
//!
//! Recorded machines are made to be sent around. Their paths are resolved as if the folder were the
//! root of the file system: an absolute link begins at the folder, and `..` ends there. libpathrs
//! does it with `openat2(2)`, and step by step on kernels before 5.6 and where a filter of system
//! calls refuses that. Only files and folders are opened, so that a planted pipe or device neither
//! blocks nor takes effect.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::symlinkat;
use pathrs::{Root, error::ErrorKind};

/// Limit on retries of a lookup: the kernel gives up at a `..` (`EAGAIN`) when something is renamed
/// or mounted anywhere on the machine meanwhile.
const MAX_LOOKUPS: usize = 1000;

/// The folder, held open, so that a later change of its path has no effect.
#[derive(Debug)]
pub(crate) struct ConfinedDir {
    dir: Result<Root, Errno>,
}

impl ConfinedDir {
    /// Opens the folder; if that fails, every later call returns the error.
    pub fn new(dir: &Path) -> ConfinedDir {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        ConfinedDir { dir: nix::fcntl::open(dir, flags, Mode::empty()).map(Root::from_fd) }
    }

    /// The error of opening the folder, if there was one.
    pub fn check(&self) -> io::Result<()> {
        self.dir.as_ref().map(drop).map_err(|error| (*error).into())
    }

    /// Resolves a path (`O_PATH`), following links.
    fn find(&self, path: &str) -> io::Result<OwnedFd> {
        self.look_up(path, |root, path| root.resolve(path))
    }

    /// Resolves a path, but a final link to the link itself.
    fn find_link(&self, path: &str) -> io::Result<OwnedFd> {
        self.look_up(path, |root, path| root.resolve_nofollow(path))
    }

    fn look_up(
        &self,
        path: &str,
        resolve: impl Fn(&Root, &str) -> Result<pathrs::Handle, pathrs::error::Error>,
    ) -> io::Result<OwnedFd> {
        let dir = self.dir.as_ref().map_err(|error| io::Error::from(*error))?;
        let path = if path.is_empty() { "/" } else { path };
        let mut handle = resolve(dir, path);
        for _ in 1..MAX_LOOKUPS {
            if !handle.as_ref().is_err_and(|error| error.can_retry()) {
                break;
            }
            handle = resolve(dir, path);
        }
        handle.map(OwnedFd::from).map_err(|error| match error.kind() {
            ErrorKind::OsError(Some(number)) => io::Error::from_raw_os_error(number),
            _ => io::Error::other(error.to_string()),
        })
    }

    fn find_folder(&self, path: &str) -> io::Result<OwnedFd> {
        let handle = self.find(path)?;
        match fs::metadata(descriptor_path(&handle))?.is_dir() {
            true => Ok(handle),
            false => Err(Errno::ENOTDIR.into()),
        }
    }

    pub fn exists(&self, path: &str) -> bool {
        self.find(path).is_ok()
    }

    pub fn is_dir(&self, path: &str) -> bool {
        self.find_folder(path).is_ok()
    }

    pub fn link(&self, path: &str) -> io::Result<PathBuf> {
        let link = self.find_link(path)?;
        Ok(readlinkat(link, "").map(PathBuf::from)?)
    }

    /// The names in a folder and whether each is a plain file.
    pub fn list(&self, path: &str) -> io::Result<Vec<(String, bool)>> {
        let dir = self.find_folder(path)?;
        let entries = fs::read_dir(descriptor_path(&dir))?.filter_map(Result::ok);
        let entry = |entry: fs::DirEntry| {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            (entry.file_name().to_string_lossy().into_owned(), is_file)
        };
        Ok(entries.map(entry).collect())
    }

    /// Opens a file that exists.
    pub fn open(&self, path: &str, options: &mut OpenOptions) -> io::Result<File> {
        let (place, metadata) = self.file(path)?;
        // Reopened by its descriptor, so that nothing is resolved again.
        let file = options.custom_flags(libc_flags()).open(descriptor_path(&place))?;
        debug_assert!(file.metadata().is_ok_and(|there| there.ino() == metadata.ino()));
        Ok(file)
    }

    /// Opens an existing file to write to it. A file with a second hard link is refused, as it may lie
    /// outside of the folder, too.
    pub fn open_to_write(&self, path: &str, options: &mut OpenOptions) -> io::Result<File> {
        let (_, metadata) = self.file(path)?;
        if metadata.nlink() > 1 {
            return Err(io::Error::other("it has a second name (a hard link)"));
        }
        self.open(path, options.write(true))
    }

    fn file(&self, path: &str) -> io::Result<(OwnedFd, Metadata)> {
        let place = self.find(path)?;
        let metadata = fs::metadata(descriptor_path(&place))?;
        match metadata.is_file() {
            true => Ok((place, metadata)),
            false if metadata.is_dir() => Err(Errno::EISDIR.into()),
            false => Err(io::Error::other("it is not a regular file")),
        }
    }

    /// Whether this user may write to it (`access(2)`).
    pub fn may_write(&self, path: &str) -> io::Result<()> {
        let place = self.find(path)?;
        Ok(nix::unistd::access(&descriptor_path(&place), nix::unistd::AccessFlags::W_OK)?)
    }

    /// Makes a folder and those above it; returns how many were made.
    pub fn make_folders(&self, path: &str) -> io::Result<u64> {
        let mut count = 0;
        if self.is_dir(path) {
            return Ok(count);
        }
        let mut above = String::from("/");
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let here = format!("{above}{name}/");
            if !self.is_dir(&here) {
                self.make_folder(here.trim_end_matches('/'))?;
                count += 1;
            }
            above = here;
        }
        Ok(count)
    }

    /// Makes one folder.
    pub fn make_folder(&self, path: &str) -> io::Result<()> {
        let (above, name) = split_last(path)?;
        let above = self.find_folder(above)?;
        Ok(mkdirat(above, name, Mode::from_bits_truncate(0o777))?)
    }

    /// Removes a folder and what is in it.
    pub fn remove_folder(&self, path: &str) -> io::Result<()> {
        let (above, name) = split_last(path)?;
        let above = self.find_folder(above)?;
        fs::remove_dir_all(descriptor_path(&above).join(name))
    }

    /// Makes a file, or opens the one that is there; its content stays.
    pub fn make_file(&self, path: &str) -> io::Result<File> {
        match self.open_to_write(path, &mut OpenOptions::new()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            there => return there,
        }
        let (above, name) = split_last(path)?;
        let above = self.find_folder(above)?;
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        Ok(openat(above, name, flags, Mode::from_bits_truncate(0o666))?.into())
    }

    /// Creates or replaces a file with this content.
    pub fn write_file(&self, path: &str, content: &[u8]) -> io::Result<()> {
        let mut file = self.make_file(path)?;
        file.set_len(0)?;
        file.write_all(content)
    }

    /// Makes a symbolic link; its target is confined when it is followed.
    pub fn make_link(&self, path: &str, target: &str) -> io::Result<()> {
        let (above, name) = split_last(path)?;
        let above = self.find_folder(above)?;
        Ok(symlinkat(target, above.as_fd(), name)?)
    }

    /// Whether something exists, even a dangling link.
    pub fn is_taken(&self, path: &str) -> bool {
        self.find_link(path).is_ok()
    }
}

/// A path's parent and last name; the name must be a valid file name.
fn split_last(path: &str) -> io::Result<(&str, &str)> {
    let path = path.trim_end_matches('/');
    match path.rsplit_once('/').unwrap_or(("", path)) {
        (_, "" | "." | "..") => Err(Errno::EINVAL.into()),
        parts => Ok(parts),
    }
}

/// The path by which a descriptor can be reopened.
fn descriptor_path(descriptor: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}

/// Opening neither blocks nor takes a controlling terminal.
fn libc_flags() -> i32 {
    (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits()
}
