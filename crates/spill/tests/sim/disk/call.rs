//! The calls of the file system.

use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    CreateDir,
    List,
    OpenNew,
    OpenWrite,
    OpenRead,
    OpenPastCache,
    Rename,
    Remove,
    HardLink,
    SyncDir,
    Lock,
    Len,
    SetLen,
    Allocate,
    Read,
    Write,
    Sync,
    Map,
    Bring,
    /// No call: the test itself asks for a number.
    Pause,
}

impl Kind {
    /// Whether something may be different on the disk afterwards, or may have changed in a
    /// mapping since the last one.
    pub fn changes(self) -> bool {
        !matches!(
            self,
            Kind::List
                | Kind::OpenWrite
                | Kind::OpenRead
                | Kind::OpenPastCache
                | Kind::Len
                | Kind::Read
                | Kind::Bring
        )
    }
}

/// One call, to say where something happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub number: u64,
    pub kind: Kind,
    pub path: PathBuf,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}, {:?} {}", self.number, self.kind, self.path.display())
    }
}

/// What a call is for.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Path(&'a Path),
    /// Its name may have changed since it was opened.
    File(u64),
}

impl<'a> From<&'a Path> for Place<'a> {
    fn from(path: &'a Path) -> Place<'a> {
        Place::Path(path)
    }
}
