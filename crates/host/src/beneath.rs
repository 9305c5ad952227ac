//! A folder out of which no path leads: neither `..` nor a link, whoever made them.
//!
//! Recorded machines are made to be sent around. The kernel resolves their paths as if the
//! folder were the root of the file system (`openat2(2)` with `RESOLVE_IN_ROOT`): an absolute link
//! begins at the folder, and `..` ends there. Only files and folders are opened, so that a pipe or
//! a device that somebody put there is neither waited for nor touched.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2, readlinkat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::symlinkat;

/// How often a path is looked up anew. The kernel gives up at a `..` (`EAGAIN`) whenever something
/// is renamed or mounted anywhere on the machine meanwhile, and leaves it to the caller to retry.
const LOOKUPS: usize = 1000;

/// The folder, held open: what its name leads to later does not matter.
#[derive(Debug)]
pub(crate) struct Beneath {
    dir: Result<OwnedFd, Unusable>,
}

/// Why nothing in a folder can be reached.
#[derive(Debug, Clone, Copy)]
enum Unusable {
    Folder(Errno),
    /// The kernel does not have the call, or a filter of system calls refuses it.
    Call(Errno),
}

impl From<Unusable> for io::Error {
    fn from(unusable: Unusable) -> io::Error {
        match unusable {
            Unusable::Folder(error) => error.into(),
            Unusable::Call(error) => io::Error::new(
                io::ErrorKind::Unsupported,
                format!(
                    "a recorded machine needs openat2(2), which Linux has since 5.6 and a \
                     container's filter of system calls (seccomp) has to allow: {}",
                    error.desc()
                ),
            ),
        }
    }
}

impl Beneath {
    /// A folder that is not there, or cannot be used, answers that to every question.
    pub fn new(dir: &Path) -> Beneath {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let dir = nix::fcntl::open(dir, flags, Mode::empty()).map_err(Unusable::Folder);
        // Tried once on the folder itself: later, EPERM could be about a file.
        let dir = dir.and_then(|dir| match look_up(&dir, ".", OpenHow::new().flags(flags)) {
            Err(error) => Err(Unusable::Call(error)),
            Ok(_) => Ok(dir),
        });
        Beneath { dir }
    }

    /// A folder on a machine where `openat2(2)` answers this.
    #[cfg(test)]
    pub fn without_the_call(error: Errno) -> Beneath {
        Beneath { dir: Err(Unusable::Call(error)) }
    }

    /// Why nothing in it can be reached, if so.
    pub fn check(&self) -> io::Result<()> {
        self.dir.as_ref().map(drop).map_err(|unusable| (*unusable).into())
    }

    /// What a path names, not opened for anything yet. Links are followed, except a last one where
    /// `flags` say so.
    fn find(&self, path: &str, flags: OFlag) -> io::Result<OwnedFd> {
        self.resolve(path, OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC | flags))
    }

    fn resolve(&self, path: &str, how: OpenHow) -> io::Result<OwnedFd> {
        let dir = self.dir.as_ref().map_err(|unusable| io::Error::from(*unusable))?;
        let path = match path.trim_start_matches('/') {
            "" => ".",
            path => path,
        };
        Ok(look_up(dir, path, how)?)
    }

    pub fn exists(&self, path: &str) -> bool {
        self.find(path, OFlag::empty()).is_ok()
    }

    pub fn is_dir(&self, path: &str) -> bool {
        self.find(path, OFlag::O_DIRECTORY).is_ok()
    }

    pub fn link(&self, path: &str) -> io::Result<PathBuf> {
        let link = self.find(path, OFlag::O_NOFOLLOW)?;
        Ok(readlinkat(link, "").map(PathBuf::from)?)
    }

    /// The names in a folder and whether each is a plain file.
    pub fn list(&self, path: &str) -> io::Result<Vec<(String, bool)>> {
        let dir = self.find(path, OFlag::O_DIRECTORY)?;
        let entries = fs::read_dir(again(&dir))?.filter_map(Result::ok);
        let entry = |entry: fs::DirEntry| {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            (entry.file_name().to_string_lossy().into_owned(), is_file)
        };
        Ok(entries.map(entry).collect())
    }

    /// Opens a file that exists.
    pub fn open(&self, path: &str, options: &mut OpenOptions) -> io::Result<File> {
        let (place, metadata) = self.file(path)?;
        // The same file by its descriptor: nothing is resolved again.
        let file = options.custom_flags(libc_flags()).open(again(&place))?;
        debug_assert!(file.metadata().is_ok_and(|there| there.ino() == metadata.ino()));
        Ok(file)
    }

    /// Opens a file that exists to write to it. One that has a second name could be anybody's.
    pub fn open_to_write(&self, path: &str, options: &mut OpenOptions) -> io::Result<File> {
        let (_, metadata) = self.file(path)?;
        if metadata.nlink() > 1 {
            return Err(io::Error::other("it has a second name (a hard link)"));
        }
        self.open(path, options.write(true))
    }

    fn file(&self, path: &str) -> io::Result<(OwnedFd, Metadata)> {
        let place = self.find(path, OFlag::empty())?;
        let metadata = fs::metadata(again(&place))?;
        match metadata.is_file() {
            true => Ok((place, metadata)),
            false if metadata.is_dir() => Err(Errno::EISDIR.into()),
            false => Err(io::Error::other("it is no plain file")),
        }
    }

    /// Whether this user may write to it (`access(2)`).
    pub fn may_write(&self, path: &str) -> io::Result<()> {
        let place = self.find(path, OFlag::empty())?;
        Ok(nix::unistd::access(&again(&place), nix::unistd::AccessFlags::W_OK)?)
    }

    /// Makes a folder and those above it, and says how many it made.
    pub fn make_folders(&self, path: &str) -> io::Result<u64> {
        let mut made = 0;
        if self.is_dir(path) {
            return Ok(made);
        }
        let mut above = String::from("/");
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let here = format!("{above}{name}/");
            if !self.is_dir(&here) {
                self.make_folder(here.trim_end_matches('/'))?;
                made += 1;
            }
            above = here;
        }
        Ok(made)
    }

    /// Makes one folder.
    pub fn make_folder(&self, path: &str) -> io::Result<()> {
        let (above, name) = parted(path)?;
        let above = self.find(above, OFlag::O_DIRECTORY)?;
        Ok(mkdirat(above, name, Mode::from_bits_truncate(0o777))?)
    }

    /// Removes a folder and what is in it.
    pub fn remove_folder(&self, path: &str) -> io::Result<()> {
        let (above, name) = parted(path)?;
        let above = self.find(above, OFlag::O_DIRECTORY)?;
        fs::remove_dir_all(again(&above).join(name))
    }

    /// Makes a file, or opens the one that is there; its content stays.
    pub fn make_file(&self, path: &str) -> io::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let how = OpenHow::new().flags(flags).mode(Mode::from_bits_truncate(0o666));
        let file = File::from(self.resolve(path, how)?);
        let metadata = file.metadata()?;
        match metadata.is_file() && metadata.nlink() == 1 {
            true => Ok(file),
            false => Err(io::Error::other("it is no plain file of one name")),
        }
    }

    /// Makes a file with this content, in place of what it held.
    pub fn put(&self, path: &str, content: &[u8]) -> io::Result<()> {
        let mut file = self.make_file(path)?;
        file.set_len(0)?;
        file.write_all(content)
    }

    /// Makes a symbolic link; where it leads is a matter of following it.
    pub fn make_link(&self, path: &str, target: &str) -> io::Result<()> {
        let (above, name) = parted(path)?;
        let above = self.find(above, OFlag::O_DIRECTORY)?;
        Ok(symlinkat(target, above.as_fd(), name)?)
    }

    /// Whether something is there, be it a link that leads nowhere.
    pub fn is_taken(&self, path: &str) -> bool {
        self.find(path, OFlag::O_NOFOLLOW).is_ok()
    }
}

fn look_up(dir: &OwnedFd, path: &str, how: OpenHow) -> Result<OwnedFd, Errno> {
    let how = how.resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let mut found = openat2(dir, path, how);
    for _ in 1..LOOKUPS {
        if !matches!(found, Err(Errno::EAGAIN)) {
            break;
        }
        found = openat2(dir, path, how);
    }
    found
}

/// A path's last name and what is before it. The name is one that can be made.
fn parted(path: &str) -> io::Result<(&str, &str)> {
    let path = path.trim_end_matches('/');
    match path.rsplit_once('/').unwrap_or(("", path)) {
        (_, "" | "." | "..") => Err(Errno::EINVAL.into()),
        parts => Ok(parts),
    }
}

/// A way to what a descriptor is of.
fn again(descriptor: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}

/// Opening never waits and never makes a terminal this process's own.
fn libc_flags() -> i32 {
    (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits()
}
