//! A preloaded library for a server that is about to start, and the memory that they share.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tap::preload::{FILE_NAME, VARIABLE};
use tap::reader::{Reader, ReaderError, Snapshot};
use tempfile::TempDir;
use thiserror::Error;

/// The library itself, built with this crate.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libkvmeter_tap.so"));

const PREFIX: &str = "kvmeter-tap-";

/// Why a server cannot be watched from inside.
#[derive(Debug, Error)]
pub enum TapError {
    #[error("{}: {source}; name a folder that can be written and run from with TMPDIR", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("the memory that the server shares: {0}")]
    Memory(#[from] ReaderError),
}

/// Files for one start of one server; they go with this value.
#[derive(Debug)]
pub struct Tap {
    library: PathBuf,
    reader: Reader,
    _folder: TempDir,
}

impl Tap {
    /// Writes the library to a folder of its own. What earlier processes that were killed have
    /// left there is removed.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn prepare() -> Result<Tap, TapError> {
        let parent = std::env::temp_dir();
        sweep(&parent);
        let failed = |source| TapError::Folder { path: parent.clone(), source };
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let folder =
            tempfile::Builder::new().prefix(&prefix).tempdir_in(&parent).map_err(failed)?;
        let library = folder.path().join(FILE_NAME);
        fs::write(&library, LIBRARY).map_err(failed)?;
        let reader = Reader::create(&folder.path().join("shared"))?;
        // A server that changes its user has loaded the library and mapped the memory before.
        Ok(Tap { library, reader, _folder: folder })
    }

    /// What the server must be started with.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |path: &Path| OsString::from(path).to_string_lossy().into_owned();
        vec![
            ("LD_PRELOAD".to_owned(), text(&self.library)),
            (VARIABLE.to_owned(), text(self.reader.path())),
        ]
    }

    /// What the server has counted so far, without disturbing it.
    pub fn snapshot(&self) -> Snapshot {
        self.reader.snapshot()
    }
}

/// Removes the folders of processes that are gone.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        let Some(owner) = owner.and_then(|owner| owner.parse::<u32>().ok()) else { continue };
        if !Path::new(&format!("/proc/{owner}")).exists() {
            // Another process may be faster; then it is gone all the same.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_dead_left_is_removed_and_what_lives_stays() {
        let parent = tempfile::tempdir().unwrap();
        let dead = parent.path().join("kvmeter-tap-4000000000-x");
        let living = parent.path().join(format!("kvmeter-tap-{}-x", std::process::id()));
        let other = parent.path().join("kvmeter-tap-x");
        for folder in [&dead, &living, &other] {
            fs::create_dir(folder).unwrap();
        }
        sweep(parent.path());
        assert_eq!((dead.exists(), living.exists(), other.exists()), (false, true, true));
    }
}
