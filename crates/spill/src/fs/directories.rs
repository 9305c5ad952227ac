//! A directory and its subdirectories, held open. Their files are found even after a rename, and a
//! sync needs no new descriptor.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::retry_on_intr;

use crate::locks::lock;
use crate::schedule::Mutex;

pub(super) struct HeldDirectories {
    /// Path of the root when it was opened; all paths start with it.
    dir: PathBuf,
    root: Arc<OwnedFd>,
    /// Subdirectories that stay open once they were used. Others may be replaced.
    inside: Mutex<HashMap<&'static Path, Option<Arc<OwnedFd>>>>,
}

/// A resolved path: a name in a directory.
pub(super) struct ResolvedPath<'a> {
    directory: Option<Arc<OwnedFd>>,
    pub(super) name: &'a Path,
}

impl<'a> ResolvedPath<'a> {
    /// Resolved by the kernel when it is used.
    pub(super) fn unresolved(path: &'a Path) -> ResolvedPath<'a> {
        ResolvedPath { directory: None, name: path }
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_ref().map_or(CWD, |directory| directory.as_fd())
    }

    /// Whether the target, following links, is of this kind; `None` if nothing is found.
    pub(super) fn is_kind(&self, kind: FileType) -> Option<bool> {
        let there = statat(self.directory(), self.name, AtFlags::empty()).ok()?;
        Some(FileType::from_raw_mode(there.st_mode) == kind)
    }
}

impl HeldDirectories {
    pub(super) fn hold(dir: &Path, inside: &[&'static str]) -> io::Result<HeldDirectories> {
        let root = Arc::new(open(CWD, dir)?);
        let inside = inside.iter().map(|name| (Path::new(*name), None)).collect();
        Ok(HeldDirectories { dir: dir.to_owned(), root, inside: Mutex::new(inside) })
    }

    /// Resolves a path; `None` if it lies outside the directory, as in the methods below.
    pub(super) fn resolve<'a>(&self, path: &'a Path) -> Option<io::Result<ResolvedPath<'a>>> {
        let below = path.strip_prefix(&self.dir).ok()?;
        let in_held = || Some((self.held(below.parent()?)?, Path::new(below.file_name()?)));
        let (directory, name) = in_held().unwrap_or((Ok(Arc::clone(&self.root)), below));
        let name = if name.as_os_str().is_empty() { Path::new(".") } else { name };
        Some(directory.map(|directory| ResolvedPath { directory: Some(directory), name }))
    }

    /// The directory at a path.
    pub(super) fn directory(&self, path: &Path) -> Option<io::Result<Arc<OwnedFd>>> {
        let below = path.strip_prefix(&self.dir).ok()?;
        if below.as_os_str().is_empty() {
            return Some(Ok(Arc::clone(&self.root)));
        }
        Some(self.held(below).unwrap_or_else(|| Ok(Arc::new(open(self.root.as_fd(), below)?))))
    }

    /// `None` if it is not one of the held subdirectories.
    fn held(&self, below: &Path) -> Option<io::Result<Arc<OwnedFd>>> {
        let mut inside = lock(&self.inside);
        let slot = inside.get_mut(below)?;
        if let Some(directory) = slot {
            return Some(Ok(Arc::clone(directory)));
        }
        Some(
            open(self.root.as_fd(), below)
                .map(|directory| Arc::clone(slot.insert(directory.into()))),
        )
    }
}

fn open(directory: BorrowedFd<'_>, name: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(retry_on_intr(|| openat(directory, name, flags, Mode::empty()))?)
}
