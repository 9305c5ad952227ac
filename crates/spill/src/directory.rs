//! A folder of a store's files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fs::Fs;

/// The log's, or that of the indexes.
#[derive(Clone)]
pub(crate) struct Directory {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) path: PathBuf,
    /// The number that the store got when it was made, by chance, so that a file of another store is told
    /// from its own. 0: it was made before stores had one.
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

    /// The names of its files are durable when this returns.
    pub(crate) fn sync(&self) -> Result<()> {
        self.fs.sync_dir(&self.path).map_err(|error| Error::io(&self.path, error))
    }
}
