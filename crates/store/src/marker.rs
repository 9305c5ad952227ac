//! The file that names the owner of a directory and its dataset.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What `KVMETER.json` records about the data next to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetMarker {
    /// The version of this file's own format: [`DatasetMarker::FORMAT`].
    pub format: u32,
    /// The store's scheme, `rocksdb`.
    pub scheme: String,
    /// The version of the store that wrote the data, empty before anything was written.
    pub store_version: String,
    /// The options on which the data's form depends, with their defaults.
    pub options: Vec<(String, String)>,
    /// The identity of the dataset; `None` before the load and while the data changes.
    pub dataset: Option<String>,
    /// The number of records of the dataset.
    pub records: u64,
}

impl DatasetMarker {
    /// The version of the format that this build writes and reads.
    pub const FORMAT: u32 = 1;
    /// The name of the file.
    pub const FILE: &'static str = "KVMETER.json";

    /// Reads the marker of a directory; `None` where there is none.
    pub(crate) fn read(directory: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(directory.join(Self::FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let marker: Self = serde_json::from_slice(&text)?;
        if marker.format == Self::FORMAT {
            return Ok(Some(marker));
        }
        let format = marker.format;
        Err(io::Error::other(format!("format {format} is not known, only {}", Self::FORMAT)))
    }

    /// Writes the marker atomically: a crash leaves the old one or the new one.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(safe_file::replace(&directory.join(Self::FILE), &text)?)
    }
}
