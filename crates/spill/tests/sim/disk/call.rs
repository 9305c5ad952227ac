//! File system calls.

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
    /// No call: the test asks for a number.
    Pause,
}

impl Kind {
    /// Whether the disk may differ afterwards, or a mapping may have changed since the last call.
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

/// A call, to say where something happened.
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

/// Object of a call.
#[derive(Clone, Copy)]
pub(super) enum CallTarget<'a> {
    Path(&'a Path),
    /// Its name may have changed since it was opened.
    File(u64),
}

impl<'a> From<&'a Path> for CallTarget<'a> {
    fn from(path: &'a Path) -> CallTarget<'a> {
        CallTarget::Path(path)
    }
}
