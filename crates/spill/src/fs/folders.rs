//! A folder and those in it, kept open: their files are found in them whatever names they have by
//! now, and syncing them takes no descriptor that might not be had.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::retry_on_intr;

use crate::inner::lock;
use crate::schedule::Mutex;

pub(super) struct Folders {
    /// The path of the first when it was opened; all paths begin with it.
    dir: PathBuf,
    first: Arc<OwnedFd>,
    /// Those in it that are kept open, since they were first used. Others may be replaced.
    inside: Mutex<HashMap<&'static Path, Option<Arc<OwnedFd>>>>,
}

/// Where a path leads: a name in a folder.
pub(super) struct Place<'a> {
    folder: Option<Arc<OwnedFd>>,
    pub(super) name: &'a Path,
}

impl<'a> Place<'a> {
    /// Found when it is used.
    pub(super) fn by_path(path: &'a Path) -> Place<'a> {
        Place { folder: None, name: path }
    }

    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_ref().map_or(CWD, |folder| folder.as_fd())
    }

    /// Whether that is there, wherever a link leads. None: nothing is there that is known of.
    pub(super) fn is_of(&self, kind: FileType) -> Option<bool> {
        let there = statat(self.folder(), self.name, AtFlags::empty()).ok()?;
        Some(FileType::from_raw_mode(there.st_mode) == kind)
    }
}

impl Folders {
    pub(super) fn hold(dir: &Path, inside: &[&'static str]) -> io::Result<Folders> {
        let first = Arc::new(open(CWD, dir)?);
        let inside = inside.iter().map(|name| (Path::new(*name), None)).collect();
        Ok(Folders { dir: dir.to_owned(), first, inside: Mutex::new(inside) })
    }

    /// Where a path leads. None: out of the folder, as for all of these.
    pub(super) fn place<'a>(&self, path: &'a Path) -> Option<io::Result<Place<'a>>> {
        let below = path.strip_prefix(&self.dir).ok()?;
        let in_kept = || Some((self.kept(below.parent()?)?, Path::new(below.file_name()?)));
        let (folder, name) = in_kept().unwrap_or((Ok(Arc::clone(&self.first)), below));
        let name = if name.as_os_str().is_empty() { Path::new(".") } else { name };
        Some(folder.map(|folder| Place { folder: Some(folder), name }))
    }

    /// The folder that a path leads to.
    pub(super) fn folder(&self, path: &Path) -> Option<io::Result<Arc<OwnedFd>>> {
        let below = path.strip_prefix(&self.dir).ok()?;
        if below.as_os_str().is_empty() {
            return Some(Ok(Arc::clone(&self.first)));
        }
        Some(self.kept(below).unwrap_or_else(|| Ok(Arc::new(open(self.first.as_fd(), below)?))))
    }

    /// None: it is none of those.
    fn kept(&self, below: &Path) -> Option<io::Result<Arc<OwnedFd>>> {
        let mut inside = lock(&self.inside);
        let place = inside.get_mut(below)?;
        if let Some(folder) = place {
            return Some(Ok(Arc::clone(folder)));
        }
        Some(open(self.first.as_fd(), below).map(|folder| Arc::clone(place.insert(folder.into()))))
    }
}

fn open(folder: BorrowedFd<'_>, name: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(retry_on_intr(|| openat(folder, name, flags, Mode::empty()))?)
}
