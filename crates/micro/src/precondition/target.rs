//! The device or file to be overwritten, and whether it may be.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::consent::Consent;
use super::content::{self, FoundContent};
use super::device::{DeviceSystem, LoopBacking, names_of_file};
use super::error::PreconditionError;
use super::held_device::{self, HeldDevice, bypass_page_cache, descriptor_path, open_path};

/// A block device or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    Device,
    File,
}

/// A device or file that may be overwritten as far as the kernel knows. While this lives, no other
/// program can mount or claim it.
#[derive(Debug)]
pub struct Target {
    pub path: PathBuf,
    pub kind: TargetKind,
    pub bytes: u64,
    /// Writes must be multiples of this.
    pub logical_block: u64,
    pub can_discard: bool,
    /// Names by which it can be confirmed: serial number and model, or path and name of a file, also
    /// of one behind a loop device. No other disk has one of them.
    pub names: Vec<String>,
    /// Its present content.
    pub content: Vec<FoundContent>,
    /// Names that another disk has, too, and that disk.
    pub(super) shared: Vec<(String, String)>,
    /// Why the other namespaces of its NVMe controller must not be erased with it, if so.
    pub(super) others_in_use: Option<String>,
    pub(super) open: OpenTarget,
}

/// The open device or file.
#[derive(Debug)]
pub(super) enum OpenTarget {
    Device(HeldDevice),
    File(File),
    /// A file that does not exist yet.
    New,
}

impl Target {
    /// Inspects a path without writing. `size` is for a file that does not exist yet.
    ///
    /// # Errors
    /// It is no device or file, is mounted, has partitions, is used by another device, as swap or by a
    /// program with an exclusive claim, is read-only, is too small, or cannot be read.
    pub fn inspect(
        system: &DeviceSystem,
        path: &Path,
        size: Option<u64>,
    ) -> Result<Target, PreconditionError> {
        let refused = |why: String| PreconditionError::Refused { path: path.to_owned(), why };
        let place = match (open_path(path), size) {
            (Ok(place), _) => place,
            (Err(error), Some(size)) if error.kind() == io::ErrorKind::NotFound => {
                // Through a dangling link the file would be created elsewhere.
                if path.symlink_metadata().is_ok() {
                    return Err(refused("is a dangling link; name the file itself".to_owned()));
                }
                return Ok(Target::file(path, size, Vec::new(), OpenTarget::New));
            }
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {
                return Err(refused(
                    "does not exist; to make a file, give its size: --size".to_owned(),
                ));
            }
            (Err(error), _) => return Err(refused(error.to_string())),
        };
        let metadata = place.metadata().map_err(|error| refused(error.to_string()))?;
        let kind = metadata.file_type();
        if kind.is_block_device() {
            if size.is_some() {
                return Err(refused("--size is for files; leave it out".to_owned()));
            }
            return device(system, path, &place).map_err(refused);
        }
        if !kind.is_file() {
            return Err(refused("is neither a block device nor a file".to_owned()));
        }
        let real = path.canonicalize().map_err(|error| refused(error.to_string()))?;
        let backing = LoopBacking {
            path: real.display().to_string(),
            file: Some((metadata.dev(), metadata.ino())),
            number: None,
        };
        if let Some(holder) = system.loop_on(&backing) {
            return Err(refused(format!("is used by {holder}; name that, or detach it first")));
        }
        let file = OpenOptions::new().read(true).write(true).open(descriptor_path(&place));
        let file = file.map_err(|error| refused(error.to_string()))?;
        held_device::lock(&file).map_err(refused)?;
        let content =
            content::inspect(&file, metadata.len()).map_err(|error| unread(path, &error))?;
        let bytes = size.unwrap_or(metadata.len());
        Ok(Target::file(path, bytes, content, OpenTarget::File(file)))
    }

    fn file(path: &Path, bytes: u64, content: Vec<FoundContent>, open: OpenTarget) -> Target {
        Target {
            path: path.to_owned(),
            kind: TargetKind::File,
            bytes,
            logical_block: 4096,
            can_discard: true,
            names: names_of_file(path),
            content,
            shared: Vec::new(),
            others_in_use: None,
            open,
        }
    }

    /// All names of it, also those that another disk has, in an order that depends on it alone.
    pub fn all_names(&self) -> Vec<&str> {
        let shared = self.shared.iter().map(|(name, _)| name.as_str());
        let mut names: Vec<&str> = self.names.iter().map(String::as_str).chain(shared).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Refuses a name that is not the target's, and the loss of content that was not named.
    ///
    /// # Errors
    /// No name or another one was given, or the loss of some content was not allowed; the message has
    /// the tokens that would do.
    pub fn confirm(&self, consent: &Consent) -> Result<(), PreconditionError> {
        self.confirm_except(consent, |_| false)
    }

    /// Like [`Target::confirm`], but content that this program made needs no consent.
    pub(super) fn confirm_except(
        &self,
        consent: &Consent,
        is_own: impl Fn(&FoundContent) -> bool,
    ) -> Result<(), PreconditionError> {
        let given = &consent.names;
        let is_named = given.iter().any(|given| self.names.iter().any(|name| name == given.trim()));
        let allowed = |content: &&FoundContent| {
            consent.overwrite.iter().any(|word| word.trim() == content.token)
        };
        let missing = self.content.iter().filter(|content| !allowed(content) && !is_own(content));
        let missing: Vec<&FoundContent> = missing.collect();
        let descriptions: Vec<&str> =
            missing.iter().map(|content| content.description.as_str()).collect();
        let words: Vec<&str> = missing.iter().map(|content| content.token.as_str()).collect();
        let (descriptions, words) = (descriptions.join("; "), words.join(","));
        let why = match (is_named, missing.is_empty()) {
            (true, true) => return Ok(()),
            (true, false) => {
                format!("holds {descriptions}; if that may be lost, name it: --overwrite {words}")
            }
            (false, nothing) => {
                let known: Vec<String> =
                    self.names.iter().map(|name| format!("`{name}`")).collect();
                let known = known.join(", ");
                let how = format!("confirm it with --confirm and one of {known}");
                let why = self.why_not_confirmed(given);
                match nothing {
                    true => format!("{why}; {how}"),
                    false => format!(
                        "{why}; it holds {descriptions}; if that may be lost, {how}, and \
                         --overwrite {words}"
                    ),
                }
            }
        };
        Err(PreconditionError::Refused { path: self.path.clone(), why })
    }

    /// Why none of the given names confirms the target.
    fn why_not_confirmed(&self, given: &[String]) -> String {
        let shared = self.shared.iter().find(|(name, _)| given.iter().any(|g| g.trim() == name));
        match (given.first(), shared) {
            (_, Some((name, other))) => {
                format!("loses all its content, and {other} is also called `{name}`")
            }
            (None, None) => "loses all its content".to_owned(),
            (Some(other), None) => format!("is not `{other}`"),
        }
    }

    /// Opens the target for direct writes; creates a file that does not exist yet.
    pub(super) fn writable(&self) -> io::Result<File> {
        let file = match &self.open {
            OpenTarget::Device(held) => return held.direct(),
            // An open file description of its own, as reads go on through the page cache.
            OpenTarget::File(file) => bypass_page_cache(
                OpenOptions::new().read(true).write(true).open(descriptor_path(file))?,
            )?,
            OpenTarget::New => OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .custom_flags(libc::O_DIRECT | libc::O_NOFOLLOW)
                .open(&self.path)?,
        };
        if file.metadata()?.len() != self.bytes {
            file.set_len(self.bytes)?;
        }
        Ok(file)
    }

    /// Checks that the target is still the inspected one, with the same content.
    ///
    /// # Errors
    /// Another program has written to it, or it cannot be read.
    pub fn check_unchanged(&self) -> Result<(), PreconditionError> {
        let refused = |why: String| PreconditionError::Refused { path: self.path.clone(), why };
        let (file, bytes) = match &self.open {
            OpenTarget::Device(held) => {
                held.check().map_err(refused)?;
                (held.pin(), self.bytes)
            }
            OpenTarget::File(file) => (file, u64::MAX),
            OpenTarget::New => return Ok(()),
        };
        let now = content::inspect(file, bytes).map_err(|error| unread(&self.path, &error))?;
        match now == self.content {
            true => Ok(()),
            false => Err(refused(
                "another program wrote to it since it was checked; nothing was written".to_owned(),
            )),
        }
    }

    /// The device, for commands other than writes.
    pub(super) fn device(&self) -> Option<&File> {
        match &self.open {
            OpenTarget::Device(claimed) => Some(claimed.pin()),
            OpenTarget::File(_) | OpenTarget::New => None,
        }
    }
}

fn unread(path: &Path, error: &io::Error) -> PreconditionError {
    let why = format!("cannot be read, so its content is unknown: {error}");
    PreconditionError::Refused { path: path.to_owned(), why }
}

fn device(system: &DeviceSystem, path: &Path, place: &File) -> Result<Target, String> {
    let number = place.metadata().map_err(|error| error.to_string())?.rdev();
    let number = format!("{}:{}", libc::major(number), libc::minor(number));
    let block = system.block(&number)?;
    if block.bytes == 0 {
        return Err("has no size: no medium is in it".to_owned());
    }
    let held = HeldDevice::new(place)?;
    // The device may have changed between the check of the kernel's files and the claim.
    let again = system.block(&number)?;
    if (&again.name, again.bytes) != (&block.name, block.bytes) {
        return Err("changed while it was checked; try again".to_owned());
    }
    let content = content::inspect(held.pin(), block.bytes)
        .map_err(|error| format!("cannot be read, so its content is unknown: {error}"))?;
    Ok(Target {
        path: path.to_owned(),
        kind: TargetKind::Device,
        bytes: block.bytes,
        logical_block: block.logical_block,
        can_discard: block.can_discard,
        content,
        others_in_use: others_in_use(system, &block.name),
        names: block.names,
        shared: block.shared,
        open: OpenTarget::Device(held),
    })
}

/// Why the other namespaces of an NVMe controller must not be erased, if so.
fn others_in_use(system: &DeviceSystem, name: &str) -> Option<String> {
    system.others_in_use(name).or_else(|| {
        system.other_namespaces(name).into_iter().find_map(|(other, bytes)| {
            let looked =
                File::open(format!("/dev/{other}")).and_then(|file| content::inspect(&file, bytes));
            match looked {
                Ok(first) => {
                    let first = first.first()?;
                    Some(format!("{other} holds {}; empty that first", first.description))
                }
                Err(error) => Some(format!("the content of {other} is unknown: {error}")),
            }
        })
    })
}
