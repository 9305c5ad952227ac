//! A copy of the data as loaded, next to the data: restoring it saves another load.
//!
//! ```text
//! PATH/prepared/N/KVMETER.json   what the copy is; written last, so a copy without it is none
//! PATH/prepared/N/data/          the store's own files, of a store that was closed
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::{Directory, available_bytes, disk_bytes, shown, write_marker};
use crate::StoreError;
use crate::marker::DatasetMarker;

/// Space that must stay free next to a copy, as a multiple of its size: merging stores need it.
const SPARE: u64 = 2;

impl Directory {
    const PREPARED: &'static str = "prepared";

    /// Copies the data, which must have a name and belong to a closed store; `false` where there is
    /// no space for a copy. Blocks are shared where the file system can.
    ///
    /// # Errors
    /// Data without a name; errors of the file system.
    pub fn save_prepared(&mut self) -> Result<bool, StoreError> {
        if self.marker.dataset.is_none() {
            let path = shown(&self.path);
            return Err(StoreError::Failed(format!("{path}: data without a name is not copied")));
        }
        if self.find_prepared(&self.marker)?.is_some() {
            return Ok(true);
        }
        let bytes = self.disk_bytes()?;
        if available_bytes(&self.path)? < bytes.saturating_mul(1 + SPARE) {
            return Ok(false);
        }
        let root = self.path.join(Self::PREPARED);
        // The first name that is free.
        let copy = (0_u32..)
            .map(|n| root.join(n.to_string()))
            .find(|copy| DatasetMarker::read(copy).is_ok_and(|marker| marker.is_none()))
            .unwrap_or_else(|| root.join("0"));
        let failed = |error: io::Error| StoreError::from_io(&shown(&copy), &error);
        remove(&copy).map_err(failed)?;
        copy_tree(&self.data_path(), &copy.join(Self::DATA)).map_err(failed)?;
        write_marker(&self.marker, &copy)?;
        sync(&root).map_err(failed)?;
        Ok(true)
    }

    /// Restores the copy of this dataset in the form that the URL requires, and names the data
    /// after it; `false` where there is none. The store must not be open.
    ///
    /// # Errors
    /// An error of the file system; the data has no name then.
    pub fn restore_prepared(&mut self, dataset: &str, records: u64) -> Result<bool, StoreError> {
        let expected =
            DatasetMarker { dataset: Some(dataset.to_owned()), records, ..self.requested.clone() };
        let Some((copy, marker)) = self.find_prepared(&expected)? else { return Ok(false) };
        // The name is removed first: a crash half-way leaves data that does not count as complete.
        self.clear()?;
        let data = self.data_path();
        let failed = |error: io::Error| StoreError::from_io(&shown(&data), &error);
        remove(&data).map_err(failed)?;
        copy_tree(&copy.join(Self::DATA), &data).map_err(failed)?;
        sync(&self.path).map_err(failed)?;
        self.replace_marker(marker)?;
        Ok(true)
    }

    /// Deletes all copies.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn drop_prepared(&mut self) -> Result<(), StoreError> {
        let root = self.path.join(Self::PREPARED);
        remove(&root).map_err(|error| StoreError::from_io(&shown(&root), &error))
    }

    /// The size of all copies on disk, in bytes.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn prepared_bytes(&self) -> Result<u64, StoreError> {
        disk_bytes(&self.path.join(Self::PREPARED))
    }

    /// The copy of the same store, shaping options, dataset and number of records.
    fn find_prepared(
        &self,
        expected: &DatasetMarker,
    ) -> Result<Option<(PathBuf, DatasetMarker)>, StoreError> {
        let root = self.path.join(Self::PREPARED);
        let entries = match fs::read_dir(&root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::from_io(&shown(&root), &error)),
        };
        for entry in entries.flatten() {
            // An unreadable copy is ignored.
            let Ok(Some(marker)) = DatasetMarker::read(&entry.path()) else { continue };
            let same = |marker: &DatasetMarker| {
                let DatasetMarker { scheme, options, dataset, records, .. } = marker;
                (scheme.clone(), options.clone(), dataset.clone(), *records)
            };
            if same(&marker) == same(expected) {
                return Ok(Some((entry.path(), marker)));
            }
        }
        Ok(None)
    }
}

/// Every file of a folder and of those in it, each on the disk before this returns.
fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
            sync(&target)?;
        }
    }
    sync(to)
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreUrl;

    fn claimed(path: &Path, options: &str) -> Directory {
        let url: StoreUrl = format!("spill:{}{options}", path.display()).parse().unwrap();
        Directory::claim(&url, 0).unwrap()
    }

    fn loaded(path: &Path, name: &str, bytes: &[u8]) -> Directory {
        let mut directory = claimed(path, "");
        directory.clear().unwrap();
        fs::create_dir(directory.data_path().join("log")).unwrap();
        fs::write(directory.data_path().join("log/0"), bytes).unwrap();
        directory.set_dataset(name, 10, "Spill 1").unwrap();
        directory
    }

    #[test]
    fn restores_changed_data() {
        let home = tempfile::tempdir().unwrap();
        let mut directory = loaded(home.path(), "ten", b"as loaded");
        assert!(!directory.restore_prepared("ten", 10).unwrap(), "there is no copy yet");
        assert!(directory.save_prepared().unwrap());
        assert!(directory.save_prepared().unwrap(), "once is enough");
        assert!(directory.prepared_bytes().unwrap() > 0);
        directory.unset_dataset().unwrap();
        fs::write(directory.data_path().join("log/0"), "changed").unwrap();
        fs::write(directory.data_path().join("more"), "more").unwrap();
        assert!(directory.save_prepared().is_err(), "data without a name");

        drop(directory);
        let mut directory = claimed(home.path(), "");
        assert!(directory.restore_prepared("ten", 10).unwrap());
        assert!(directory.holds("ten"));
        assert_eq!(directory.marker().store_version, "Spill 1");
        assert_eq!(fs::read(directory.data_path().join("log/0")).unwrap(), b"as loaded");
        assert!(!directory.data_path().join("more").exists());
        // Twice: the copy itself is untouched.
        fs::write(directory.data_path().join("log/0"), "again").unwrap();
        assert!(directory.restore_prepared("ten", 10).unwrap());
        assert_eq!(fs::read(directory.data_path().join("log/0")).unwrap(), b"as loaded");
    }

    #[test]
    fn restores_only_matching_data() {
        let home = tempfile::tempdir().unwrap();
        let mut directory = loaded(home.path(), "ten", b"x");
        assert!(directory.save_prepared().unwrap());
        assert!(!directory.restore_prepared("nine", 10).unwrap());
        assert!(!directory.restore_prepared("ten", 11).unwrap());
        assert!(directory.holds("ten"), "nothing was touched");
        drop(directory);
        // An option that shapes the data.
        assert!(!claimed(home.path(), "?tables=2").restore_prepared("ten", 10).unwrap());
        // One that does not.
        assert!(claimed(home.path(), "?verify=off").restore_prepared("ten", 10).unwrap());
        // A second dataset next to the first.
        let mut directory = loaded(home.path(), "twenty", b"y");
        assert!(directory.save_prepared().unwrap());
        assert!(directory.restore_prepared("ten", 10).unwrap());
        assert!(directory.restore_prepared("twenty", 10).unwrap());
        directory.drop_prepared().unwrap();
        assert!(!directory.restore_prepared("ten", 10).unwrap());
        assert_eq!(directory.prepared_bytes().unwrap(), 0);
    }

    #[test]
    fn ignores_an_interrupted_copy() {
        let home = tempfile::tempdir().unwrap();
        let mut directory = loaded(home.path(), "ten", b"x");
        assert!(directory.save_prepared().unwrap());
        fs::remove_file(home.path().join("prepared/0").join(DatasetMarker::FILE)).unwrap();
        assert!(!directory.restore_prepared("ten", 10).unwrap());
        assert!(directory.save_prepared().unwrap(), "made anew");
        assert!(directory.restore_prepared("ten", 10).unwrap());
    }
}
