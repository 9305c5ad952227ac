//! Calls that fail once.

use std::io;

use rustix::io::Errno;

use super::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// EIO; a part of a write may have arrived.
    Broken,
    /// ENOSPC.
    Full,
    /// EINTR.
    Interrupted,
    /// A partial transfer.
    Short,
    /// A sync returns EIO, and unsynced data never becomes durable. `forget`: it does not even read
    /// as written.
    LostSync { forget: bool },
}

impl Fault {
    /// Whether a real call of this kind can fail like that.
    pub fn can_hit(self, kind: Kind) -> bool {
        match self {
            Fault::Broken => !matches!(kind, Kind::Pause | Kind::Sync),
            Fault::Full => matches!(
                kind,
                Kind::CreateDir
                    | Kind::OpenNew
                    | Kind::Rename
                    | Kind::HardLink
                    | Kind::Allocate
                    | Kind::SetLen
                    | Kind::Write
            ),
            Fault::Interrupted => matches!(kind, Kind::Read | Kind::Write | Kind::Allocate),
            Fault::Short => matches!(kind, Kind::Read | Kind::Write),
            Fault::LostSync { .. } => kind == Kind::Sync,
        }
    }

    /// The engine must continue as if nothing had happened.
    pub fn is_invisible(self) -> bool {
        matches!(self, Fault::Interrupted | Fault::Short)
    }

    pub fn error(self) -> io::Error {
        match self {
            Fault::Broken | Fault::LostSync { .. } => Errno::IO.into(),
            Fault::Full => Errno::NOSPC.into(),
            Fault::Interrupted | Fault::Short => Errno::INTR.into(),
        }
    }
}
