//! A store's directory: inspected before anything is written, claimed, cleared.
//!
//! ```text
//! PATH/KVMETER.json   whose it is and what is in it
//! PATH/KVMETER.lock   locked by the process that uses it
//! PATH/data/          the store's own files
//! PATH/prepared/      copies of data as it was loaded
//! ```

mod prepared;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::Bytes;
use rustix::fs::{Access, Advice, access, fadvise, statvfs};
use safe_file::{FileError, Lock, LockError, LockOptions, LockScope, is_temporary};

use crate::marker::DatasetMarker;
use crate::{StoreError, StoreUrl};

/// A directory that is in use is refused at once.
const LOCK_OPTIONS: LockOptions =
    LockOptions { scope: LockScope::OneUser, timeout: Duration::ZERO, leaves_nothing: false };

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryState {
    /// Nothing; the directory can be created.
    Absent,
    /// A directory with nothing in it.
    Empty,
    /// A directory that kvmeter made.
    Ours(DatasetMarker),
    /// Something else: some of the names in it, or none where it is not a directory.
    Foreign { sample: Vec<String> },
}

/// A directory that is locked for this process until the value is dropped.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    marker: DatasetMarker,
    /// The marker that the URL requires: scheme and shaping options.
    requested: DatasetMarker,
    /// Released when the file is closed, however the process ends.
    _lock: Lock,
}

impl Directory {
    /// The name of the folder that holds the store's own files.
    pub const DATA: &'static str = "data";
    const LOCK: &'static str = "KVMETER.lock";

    /// Inspects the path and changes nothing.
    ///
    /// Only a marker makes a directory kvmeter's: store files without one are
    /// [`DirectoryState::Foreign`]. A marker that cannot be read is an error.
    pub fn inspect(path: &Path) -> Result<DirectoryState, StoreError> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => {
                return match error.kind() {
                    io::ErrorKind::NotFound => Ok(DirectoryState::Absent),
                    io::ErrorKind::NotADirectory => {
                        Ok(DirectoryState::Foreign { sample: Vec::new() })
                    }
                    _ => Err(refuse(path, error, "name a directory that can be read")),
                };
            }
        };
        let marker = DatasetMarker::read(path).map_err(|error| {
            let reason = format!("its {} cannot be read: {error}", DatasetMarker::FILE);
            refuse(path, reason, "name another directory, or delete this one")
        })?;
        if let Some(marker) = marker {
            return Ok(DirectoryState::Ours(marker));
        }
        let mut sample = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| refuse(path, error, "name another directory"))?;
            let name = name.file_name().to_string_lossy().into_owned();
            // Left behind by an interrupted claim.
            if name != Self::LOCK && !is_temporary(name.as_ref(), DatasetMarker::FILE) {
                sample.push(name);
            }
        }
        sample.sort();
        sample.truncate(3);
        Ok(if sample.is_empty() {
            DirectoryState::Empty
        } else {
            DirectoryState::Foreign { sample }
        })
    }

    /// Locks the URL's directory for this process and creates it if necessary.
    ///
    /// `needed` is the expected size of the data in bytes; space that the directory's data takes
    /// already counts as available. Refused, before anything is written, when the directory holds
    /// files that kvmeter did not make, is a file, cannot be written, lacks the space or is in use.
    pub fn claim(url: &StoreUrl, needed: u64) -> Result<Self, StoreError> {
        let path = url.path.as_path();
        let requested = requested_marker(url)?;
        let lock = match admit(path, needed)? {
            Some(lock) => lock,
            None => {
                fs::create_dir_all(path).map_err(|error| {
                    refuse(path, error, "name a directory that you may write to")
                })?;
                take_lock(path)?
            }
        };
        remove_temporary_markers(path);
        // Another process may have changed the marker before the lock was ours.
        let marker = match Self::inspect(path)? {
            DirectoryState::Ours(marker) => marker,
            _ => {
                write_marker(&requested, path)?;
                requested.clone()
            }
        };
        let data = path.join(Self::DATA);
        fs::create_dir_all(&data).map_err(|error| StoreError::from_io(&shown(&data), &error))?;
        Ok(Self { path: path.to_owned(), marker, requested, _lock: lock })
    }

    /// Refuses what [`Directory::claim`] would refuse, and changes nothing.
    pub fn check(url: &StoreUrl, needed: u64) -> Result<(), StoreError> {
        requested_marker(url)?;
        admit(&url.path, needed).map(drop)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the store's own files lie.
    pub fn data_path(&self) -> PathBuf {
        self.path.join(Self::DATA)
    }

    /// The dataset in the directory.
    pub fn marker(&self) -> &DatasetMarker {
        &self.marker
    }

    /// Why the data cannot be used for the claimed URL: another store wrote it, or the same one
    /// with another value of an option that shapes the data. `None` where it can, or where there is
    /// none. The remedy is [`Directory::clear`].
    pub fn mismatch(&self) -> Option<String> {
        let DatasetMarker { scheme, options, .. } = &self.marker;
        if *scheme != self.requested.scheme {
            return Some(format!("holds data of `{scheme}`, not of `{}`", self.requested.scheme));
        }
        let (name, requested) = self
            .requested
            .options
            .iter()
            .find(|requested| !options.contains(requested))
            .cloned()?;
        let present =
            options.iter().find(|(present, _)| *present == name).map(|(_, value)| value.as_str());
        let present = present.unwrap_or("another value");
        Some(format!("holds data written with `{name}={present}`, not `{name}={requested}`"))
    }

    /// Whether the directory holds this dataset, complete and in the form that the URL requires.
    pub fn holds(&self, dataset: &str) -> bool {
        self.mismatch().is_none() && self.marker.dataset.as_deref() == Some(dataset)
    }

    /// Marks the data as changing: it has no name until [`Directory::set_dataset`] gives it one, so
    /// a crash between the two is detected.
    pub fn unset_dataset(&mut self) -> Result<(), StoreError> {
        if self.marker.dataset.is_none() {
            return Ok(());
        }
        let marker = DatasetMarker { dataset: None, records: 0, ..self.marker.clone() };
        self.replace_marker(marker)
    }

    /// Names the dataset. `version` is the open store's [`version`](crate::Store::version).
    pub fn set_dataset(
        &mut self,
        dataset: &str,
        records: u64,
        version: &str,
    ) -> Result<(), StoreError> {
        self.replace_marker(DatasetMarker {
            dataset: Some(dataset.to_owned()),
            records,
            store_version: version.to_owned(),
            ..self.marker.clone()
        })
    }

    /// Deletes the store's files, which must not be open; the directory is then empty and belongs
    /// to the claimed store and options. Nothing outside the `data` folder is deleted.
    pub fn clear(&mut self) -> Result<(), StoreError> {
        // The name is removed first: a crash half-way leaves data that does not count as complete.
        self.replace_marker(self.requested.clone())?;
        let data = self.data_path();
        let cleared = match fs::remove_dir_all(&data) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => fs::create_dir_all(&data),
        };
        cleared.map_err(|error| StoreError::from_io(&shown(&data), &error))
    }

    /// Deletes a directory of kvmeter's and its content. The marker goes last, so that a kill
    /// half-way leaves a directory that still counts as kvmeter's, or an empty one.
    pub fn delete(path: &Path) -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if [DatasetMarker::FILE, Self::LOCK].iter().any(|own| entry.file_name() == *own) {
                continue;
            }
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        // Only the marker and the lock are left.
        fs::remove_dir_all(path)
    }

    /// The size of the store's files on disk, in bytes: allocated blocks, so that holes of sparse
    /// files do not count.
    pub fn disk_bytes(&self) -> Result<u64, StoreError> {
        disk_bytes(&self.data_path())
    }

    /// The free space of the file system for unprivileged users, in bytes.
    pub fn available_bytes(&self) -> Result<u64, StoreError> {
        available_bytes(&self.path)
    }

    /// Drops the store's files, which must not be open, from the page cache, so that the next reads
    /// go to the device. Pages that another program has mapped stay.
    pub fn drop_page_cache(&self) -> Result<(), StoreError> {
        for file in files_below(&self.data_path())? {
            let failed = |error: io::Error| StoreError::from_io(&shown(&file), &error);
            let open = File::open(&file).map_err(failed)?;
            // Dirty pages cannot be dropped.
            open.sync_all().map_err(failed)?;
            fadvise(&open, 0, None, Advice::DontNeed).map_err(|error| failed(io_of(error)))?;
        }
        Ok(())
    }

    fn replace_marker(&mut self, marker: DatasetMarker) -> Result<(), StoreError> {
        write_marker(&marker, &self.path)?;
        self.marker = marker;
        Ok(())
    }
}

/// The marker of a directory that is created for this URL.
fn requested_marker(url: &StoreUrl) -> Result<DatasetMarker, StoreError> {
    let description = url.describe()?;
    if !description.on_disk {
        return Err(StoreError::Request(format!("`{}` has no directory", url.scheme)));
    }
    url.check()?;
    let shaping = description.options.iter().filter(|option| option.shapes_data);
    let options = shaping.map(|option| {
        let given = url.options.iter().find(|(name, _)| name == option.name);
        let value = given.map_or(option.default, |(_, value)| value.as_str());
        (option.name.to_owned(), value.to_owned())
    });
    Ok(DatasetMarker {
        format: DatasetMarker::FORMAT,
        scheme: url.scheme.clone(),
        store_version: String::new(),
        options: options.collect(),
        dataset: None,
        records: 0,
    })
}

/// Refuses a directory that cannot be used; returns the lock of one that is kvmeter's already.
fn admit(path: &Path, needed: u64) -> Result<Option<Lock>, StoreError> {
    let state = Directory::inspect(path)?;
    if let DirectoryState::Foreign { sample } = &state {
        let reason = if sample.is_empty() {
            "is not a directory".to_owned()
        } else {
            format!("holds something that kvmeter did not make ({}, ...)", sample.join(", "))
        };
        return Err(refuse(path, reason, "name an empty directory or one that does not exist"));
    }
    safe_file::check_folder(path).map_err(|error| {
        refuse(path, format!("cannot be used: {error}"), "name a directory of your own")
    })?;
    if path.is_symlink() && !path.exists() {
        let reason = "is a dangling link";
        return Err(refuse(
            path,
            reason,
            "create the directory that it names, or name another one",
        ));
    }
    let standing = nearest_existing(path);
    if let Err(error) = access(standing, Access::WRITE_OK | Access::EXEC_OK) {
        let what = match standing == path {
            true => String::new(),
            false => format!("is in {}, which ", standing.display()),
        };
        let reason = format!("{what}cannot be written: {}", io_of(error));
        return Err(refuse(path, reason, "name a directory that you may write to"));
    }
    let lock = match &state {
        DirectoryState::Ours(_) => Some(take_lock(path)?),
        _ => None,
    };
    let there = disk_bytes(&path.join(Directory::DATA))?;
    let available = available_bytes(standing)?;
    if needed > available.saturating_add(there) {
        let reason = format!(
            "{} are needed and {} are available",
            rounded(needed),
            rounded(available.saturating_add(there))
        );
        return Err(refuse(path, reason, "free some space, or load fewer or smaller records"));
    }
    Ok(lock)
}

fn take_lock(path: &Path) -> Result<Lock, StoreError> {
    Lock::take(&path.join(Directory::LOCK), &LOCK_OPTIONS).map_err(|error| match error {
        LockError::Held { holder, .. } => refuse(
            path,
            format!("is in use by another kvmeter ({holder})"),
            "wait until that one has ended, or name another directory",
        ),
        LockError::File(FileError::Io { source, .. }) => {
            let reason = format!("cannot be locked: {source}");
            refuse(path, reason, "name a directory on a local file system that you may write to")
        }
        LockError::File(error) => {
            refuse(path, format!("cannot be locked: {error}"), "name another directory")
        }
    })
}

/// Unfinished markers of a killed process; only the holder of the lock writes markers.
fn remove_temporary_markers(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if is_temporary(&entry.file_name(), DatasetMarker::FILE) {
            // A remaining one does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn write_marker(marker: &DatasetMarker, path: &Path) -> Result<(), StoreError> {
    marker
        .write(path)
        .map_err(|error| StoreError::from_io(&shown(&path.join(DatasetMarker::FILE)), &error))
}

/// The path itself, or the nearest directory above it that exists.
fn nearest_existing(path: &Path) -> &Path {
    let here = |path: &&Path| !path.as_os_str().is_empty() && path.exists();
    path.ancestors().find(here).unwrap_or(Path::new("."))
}

/// Walks a tree that may be changing: files that vanish meanwhile are not counted.
fn disk_bytes(path: &Path) -> Result<u64, StoreError> {
    let mut total = 0;
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let walk = || -> io::Result<u64> {
            let mut bytes = 0;
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                    Ok(metadata) => bytes += metadata.blocks() * 512,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(bytes)
        };
        match { walk }() {
            Ok(bytes) => total += bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::from_io(&shown(path), &error)),
        }
    }
    Ok(total)
}

/// Every file in a folder and those below it.
fn files_below(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let (mut files, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        let failed = |error: io::Error| StoreError::from_io(&shown(&folder), &error);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    Ok(files)
}

fn available_bytes(path: &Path) -> Result<u64, StoreError> {
    let space = statvfs(path).map_err(|error| StoreError::from_io(&shown(path), &io_of(error)))?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

/// Whether a file system has too little space for a write. For stores that do not report the reason
/// of a failed write.
// Unused in a build without them.
#[allow(dead_code)]
pub(crate) fn is_full(path: &Path) -> bool {
    const TOO_LITTLE: u64 = 1 << 20;
    available_bytes(path).is_ok_and(|bytes| bytes < TOO_LITTLE)
}

fn refuse(path: &Path, reason: impl ToString, remedy: &str) -> StoreError {
    let remedy = remedy.to_owned();
    StoreError::Directory { path: path.to_owned(), reason: reason.to_string(), remedy }
}

fn io_of(error: rustix::io::Errno) -> io::Error {
    io::Error::from(error)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Rounded down to three or four digits for messages.
fn rounded(bytes: u64) -> Bytes {
    let shift = [40, 30, 20, 10].into_iter().find(|shift| bytes >> shift >= 10).unwrap_or(0);
    Bytes(bytes >> shift << shift)
}

#[cfg(test)]
mod tests;
