//! What would be overwritten, and whether it may be.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::device::System;
use super::error::PreconditionError;

/// A block device or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Device,
    File,
}

/// A device or file that may be overwritten as far as the kernel knows.
#[derive(Debug, Clone)]
pub struct Target {
    pub path: PathBuf,
    pub kind: Kind,
    pub bytes: u64,
    /// What writes are multiples of.
    pub logical_block: u64,
    pub can_discard: bool,
    /// By any of these it can be confirmed: serial number and model, or path and name of a file
    /// and of what lies behind a loop device.
    pub names: Vec<String>,
    /// Why no other namespace of the same NVMe controller may be erased with it, if so.
    pub(super) others_in_use: Option<String>,
}

impl Target {
    /// Looks at a path and writes nothing. `size` makes a file of that size if it is not there.
    ///
    /// # Errors
    /// It is no device or file, is mounted, has partitions, is used by another device, as swap or
    /// by a program that wants it alone, is read-only, or is too small.
    pub fn inspect(
        system: &System,
        path: &Path,
        size: Option<u64>,
    ) -> Result<Target, PreconditionError> {
        let refused = |why: String| PreconditionError::Refused { path: path.to_owned(), why };
        let metadata = match (path.metadata(), size) {
            (Err(error), Some(size)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Target {
                    path: path.to_owned(),
                    kind: Kind::File,
                    bytes: size,
                    logical_block: 4096,
                    can_discard: true,
                    names: names_of_file(path),
                    others_in_use: None,
                });
            }
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {
                return Err(refused(
                    "is not there; for a file say how large it shall be: --size".to_owned(),
                ));
            }
            (Err(error), _) => return Err(refused(error.to_string())),
            (Ok(metadata), _) => metadata,
        };
        let kind = metadata.file_type();
        if kind.is_block_device() {
            if size.is_some() {
                return Err(refused("--size is for files; leave it out".to_owned()));
            }
            return device(system, path, metadata.rdev()).map_err(refused);
        }
        if !kind.is_file() {
            return Err(refused("is neither a block device nor a file".to_owned()));
        }
        let real = path.canonicalize().map_err(|error| refused(error.to_string()))?;
        if let Some(holder) = system.loop_on(&real.display().to_string()) {
            return Err(refused(format!("is used by {holder}; name that, or detach it first")));
        }
        OpenOptions::new().write(true).open(path).map_err(|error| refused(error.to_string()))?;
        let bytes = size.unwrap_or(metadata.len());
        Ok(Target {
            path: path.to_owned(),
            kind: Kind::File,
            bytes,
            logical_block: 4096,
            can_discard: true,
            names: names_of_file(path),
            others_in_use: None,
        })
    }

    /// Refuses a name that is none of the target's.
    ///
    /// # Errors
    /// No name was given, or another one; the message tells which would do.
    pub fn confirm(&self, given: &[String]) -> Result<(), PreconditionError> {
        let known = |given: &String| self.names.iter().any(|name| name == given.trim());
        if given.iter().any(known) {
            return Ok(());
        }
        let known: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
        let why = match given.first() {
            None => "loses all that is on it".to_owned(),
            Some(other) => format!("is not `{other}`"),
        };
        let why = format!("{why}; confirm it with --confirm and one of {}", known.join(", "));
        Err(PreconditionError::Refused { path: self.path.clone(), why })
    }

    /// Opens it past the page cache, and a device for this process alone.
    pub(super) fn open(&self) -> io::Result<File> {
        let alone = if self.kind == Kind::Device { libc::O_EXCL } else { 0 };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(self.kind == Kind::File)
            .truncate(false)
            .custom_flags(libc::O_DIRECT | alone)
            .open(&self.path)?;
        if self.kind == Kind::File && file.metadata()?.len() != self.bytes {
            file.set_len(self.bytes)?;
        }
        Ok(file)
    }
}

fn names_of_file(path: &Path) -> Vec<String> {
    let mut names = vec![path.display().to_string()];
    names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
    names.dedup();
    names
}

fn device(system: &System, path: &Path, number: u64) -> Result<Target, String> {
    let number = format!("{}:{}", libc::major(number), libc::minor(number));
    let block = system.block(&number)?;
    // The kernel refuses a second one who wants it alone: file systems, arrays and mappings do.
    let file =
        OpenOptions::new().write(true).custom_flags(libc::O_EXCL).open(path).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::EBUSY) => {
                    "is in use: a file system of another namespace, an array or a program has it"
                        .to_owned()
                }
                _ => error.to_string(),
            }
        })?;
    debug_assert!(file.as_raw_fd() >= 0);
    let others_in_use = system.others_in_use(&block.name);
    let mut names: Vec<String> = block.serial.into_iter().chain(block.model).collect();
    if let Some(backing) = &block.backing {
        names.extend(names_of_file(Path::new(backing)));
    }
    if names.is_empty() {
        // A device without a serial number, as virtual ones are.
        names.push(block.name);
    }
    names.dedup();
    if block.bytes == 0 {
        return Err("has no size: no medium is in it".to_owned());
    }
    Ok(Target {
        path: path.to_owned(),
        kind: Kind::Device,
        bytes: block.bytes,
        logical_block: block.logical_block,
        can_discard: block.can_discard,
        names,
        others_in_use,
    })
}
