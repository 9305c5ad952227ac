//! Machines of `fixtures/`, unpacked into a folder of their own.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod kernel;
pub mod readings;

use std::fs;
use std::path::{Path, PathBuf};

use host::Root;
use tempfile::TempDir;

/// A machine that tests may change.
pub struct Recorded {
    dir: TempDir,
    pub root: Root,
}

impl Recorded {
    /// A machine of which nothing can be read.
    pub fn empty() -> Recorded {
        // Hundreds of small files: in memory where that is possible.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let root = Root::at(dir.path());
        Recorded { dir, root }
    }

    /// The machine of `fixtures/NAME.tree`.
    pub fn named(name: &str) -> Recorded {
        Recorded::empty().and(name)
    }

    /// With what `fixtures/NAME.tree` adds.
    pub fn and(self, name: &str) -> Recorded {
        self.add(name);
        self
    }

    /// What another tree has of the same machine.
    pub fn add(&self, name: &str) {
        // Tests of other crates use them, too.
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/tests/fixtures");
        let text = fs::read_to_string(folder.join(format!("{name}.tree"))).unwrap();
        host::recorded::unpack(&text, name, self.dir.path()).unwrap();
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    /// Writes one file, and the folders above it.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    /// Replaces a text that must be in a file.
    pub fn change(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(path)).unwrap();
        assert!(text.contains(from), "{path} has no `{from}`");
        fs::write(self.path(path), text.replace(from, to)).unwrap();
    }
}
