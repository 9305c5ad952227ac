//! A directory of a store's files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::Fs;

/// The directory of the log or of the index files.
#[derive(Clone)]
pub(crate) struct Directory {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) path: PathBuf,
    /// Random store number, chosen at creation, that tells its files from another store's. 0:
    /// created before stores had numbers.
    pub(crate) store: u64,
}

impl Directory {
    pub(crate) fn new(fs: &Arc<dyn Fs>, path: PathBuf, store: u64) -> Directory {
        Directory { fs: Arc::clone(fs), path, store }
    }

    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn names(&self) -> Result<Vec<String>> {
        self.fs.list(&self.path).map_err(|error| Error::io(&self.path, error))
    }

    /// Makes the names of its files durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.fs.sync_dir(&self.path).map_err(|error| Error::io(&self.path, error))
    }
}
