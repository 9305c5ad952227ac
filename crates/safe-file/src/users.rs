//! User names, and the trusted owners of files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{Uid, User, geteuid};

/// `user alice`, or `user 1234` for an unknown number.
pub fn user_name(uid: u32) -> String {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    format!("user {}", user.map_or_else(|| uid.to_string(), |user| user.name))
}

pub(crate) fn own_uid() -> u32 {
    geteuid().as_raw()
}

/// The folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether this process may trust a file of this owner in this folder.
pub(crate) fn is_trusted(uid: u32, path: &Path) -> bool {
    uid == own_uid()
        || uid == 0
        || fs::metadata(folder_of(path)).is_ok_and(|folder| folder.uid() == uid)
}

/// Whether every user can create files in the folder.
pub(crate) fn is_open_to_all(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|folder| folder.mode() & 0o002 != 0)
}
