//! What was turned, on disk before it is turned.
//!
//! A line of JSON for each write: the boot, the place, the old and the new value. The lines of a
//! knob are on the disk (file and folder) before its first write. `running.journal` belongs to a
//! process that puts its knobs back when it ends; `kept.journal` to knobs that stay turned until
//! `kvmeter knob restore`. Registers and `/sys` are new after a boot, so a journal of an earlier
//! one is stale: it is set aside and never replayed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::error::KnobError;
use super::lock;
use super::place::Place;
use super::restore::{Restored, restore};
use super::write::{After, Write};
use crate::root::Root;

/// The environment variable that names another folder for the journal.
const FOLDER: &str = "KVMETER_STATE_DIR";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const RUNNING: &str = "running.journal";
const KEPT: &str = "kept.journal";

/// A write as it is noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub boot_id: String,
    pub knob: String,
    pub level: String,
    pub place: Place,
    /// `None`: the place comes to be, and goes.
    pub old: Option<String>,
    pub new: String,
}

/// Where the journal is: `KVMETER_STATE_DIR`, or `/var/lib/kvmeter` for root, or
/// `$XDG_STATE_HOME/kvmeter`.
pub fn state_folder() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = named(FOLDER) {
        return PathBuf::from(folder);
    }
    if nix::unistd::geteuid().is_root() {
        return PathBuf::from("/var/lib/kvmeter");
    }
    let state = named("XDG_STATE_HOME").map(PathBuf::from);
    let home = || named("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    state.or_else(home).unwrap_or_else(std::env::temp_dir).join("kvmeter")
}

/// The journal of a machine, locked: only one process turns knobs.
pub struct Journal {
    pub(super) root: Root,
    pub(super) folder: PathBuf,
    pub(super) lock: File,
    pub(super) supervisor: Option<Command>,
    boot_id: String,
    file: Option<File>,
    recovered: Vec<Restored>,
}

impl Journal {
    /// Locks the journal in a folder, which is made if it is not there, and puts back what a
    /// process that was killed had turned ([`Journal::recovered`]).
    pub fn open(root: &Root, folder: &Path) -> Result<Journal, KnobError> {
        let boot_id = boot_id(root)?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| failed(folder, &error))?;
        let lock = lock::take(folder)?;
        let mut journal = Journal {
            root: root.clone(),
            folder: folder.to_owned(),
            lock,
            supervisor: None,
            boot_id,
            file: None,
            recovered: Vec::new(),
        };
        for name in [RUNNING, KEPT] {
            if let Some(set_aside) = journal.set_aside_if_stale(name)? {
                journal.recovered.push(set_aside);
            }
        }
        if let Some(restored) = journal.put_back(RUNNING)? {
            journal.recovered.push(restored);
        }
        Ok(journal)
    }

    /// The journal of another process, whose lock came with a descriptor.
    pub(super) fn inherited(root: &Root, folder: &Path, lock: File) -> Result<Journal, KnobError> {
        Ok(Journal {
            root: root.clone(),
            folder: folder.to_owned(),
            lock,
            supervisor: None,
            boot_id: boot_id(root)?,
            file: None,
            recovered: Vec::new(),
        })
    }

    /// Puts back what a killed process had turned, if there is any and no living process is at
    /// it. For the start of a command that turns nothing itself.
    pub fn recover(root: &Root, folder: &Path) -> Result<Vec<Restored>, KnobError> {
        if !folder.join(RUNNING).exists() {
            return Ok(Vec::new());
        }
        match Journal::open(root, folder) {
            Ok(mut journal) => Ok(std::mem::take(&mut journal.recovered)),
            Err(KnobError::Busy { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Has a process watch over what is turned: `command` must end in [`super::supervisor::run`].
    /// Without one, a killed process leaves its knobs turned until the next start.
    #[must_use]
    pub fn supervised_by(mut self, command: Command) -> Journal {
        self.supervisor = Some(command);
        self
    }

    /// What was found of processes before this one.
    pub fn recovered(&self) -> &[Restored] {
        &self.recovered
    }

    /// Puts back the knobs that were to stay turned. `None` if there are none.
    pub fn restore_kept(&mut self) -> Result<Option<Restored>, KnobError> {
        self.put_back(KEPT)
    }

    /// Notes writes and waits until they are on the disk.
    pub(super) fn note(
        &mut self,
        knob: &str,
        level: &str,
        writes: &[Write],
    ) -> Result<(), KnobError> {
        let mut text = String::new();
        for write in writes.iter().filter(|write| is_noted(write)) {
            let entry = Entry {
                boot_id: self.boot_id.clone(),
                knob: knob.to_owned(),
                level: level.to_owned(),
                place: write.place.clone(),
                old: write.old.clone(),
                new: write.new.clone(),
            };
            text += &line(&entry)?;
        }
        if text.is_empty() {
            return Ok(());
        }
        let path = self.folder.join(RUNNING);
        let mut note = || {
            if self.file.is_none() {
                self.file = Some(OpenOptions::new().append(true).create_new(true).open(&path)?);
            }
            if let Some(file) = &mut self.file {
                file.write_all(text.as_bytes())?;
                file.sync_all()?;
            }
            File::open(&self.folder)?.sync_all()
        };
        note().map_err(|error: io::Error| failed(&path, &error))
    }

    /// Puts back everything that this process turned.
    pub(super) fn put_back_running(&mut self) -> Result<Option<Restored>, KnobError> {
        self.file = None;
        self.put_back(RUNNING)
    }

    /// Makes what this process turned stay: its lines go behind those that are kept already.
    pub(super) fn keep(&mut self) -> Result<(), KnobError> {
        self.file = None;
        let (running, kept) = (self.folder.join(RUNNING), self.folder.join(KEPT));
        let keep = || {
            let text = fs::read(&running)?;
            let mut file = OpenOptions::new().append(true).create(true).open(&kept)?;
            file.write_all(&text)?;
            file.sync_all()?;
            File::open(&self.folder)?.sync_all()?;
            // Killed here, the lines stand in both files: putting them back twice is the same.
            fs::remove_file(&running)?;
            File::open(&self.folder)?.sync_all()
        };
        match keep() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(|error| failed(&kept, &error)),
        }
    }

    fn put_back(&self, name: &str) -> Result<Option<Restored>, KnobError> {
        let path = self.folder.join(name);
        let Some(entries) = entries(&path)? else { return Ok(None) };
        let restored = restore(&self.root, &entries, &path)?;
        remove(&path)?;
        Ok(Some(restored))
    }

    /// Gives a journal of an earlier boot another name.
    fn set_aside_if_stale(&self, name: &str) -> Result<Option<Restored>, KnobError> {
        let path = self.folder.join(name);
        let Some(entries) = entries(&path)? else { return Ok(None) };
        let Some(entry) = entries.iter().find(|entry| entry.boot_id != self.boot_id) else {
            return Ok(None);
        };
        let boot: String = entry.boot_id.chars().filter(char::is_ascii_alphanumeric).collect();
        let aside = path.with_file_name(format!("stale-{boot}-{name}"));
        fs::rename(&path, &aside).map_err(|error| failed(&path, &error))?;
        Ok(Some(Restored::Stale { entries: entries.len(), aside }))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread has just forked has the file, too,
        // until it runs its program.
        let _ = self.lock.unlock();
    }
}

/// The knobs that stay turned until they are restored, and where that is noted.
pub(super) fn kept(folder: &Path) -> Result<Vec<Entry>, KnobError> {
    Ok(entries(&folder.join(KEPT))?.unwrap_or_default())
}

/// Own places end with the process; actions have no old value.
fn is_noted(write: &Write) -> bool {
    let is_group = write.place.within == super::place::Within::Group;
    match write.after {
        After::Restored | After::Kept => !write.place.is_own(),
        After::Released => is_group,
        After::Lasting => false,
    }
}

fn line(entry: &Entry) -> Result<String, KnobError> {
    let text = serde_json::to_string(entry).map_err(|error| KnobError::Journal {
        path: entry.place.to_string(),
        why: format!("it cannot be noted: {error}"),
    })?;
    Ok(text + "\n")
}

/// The lines of a journal; `None` if there is no such file. A last line that was cut off is of a
/// write that was never done.
fn entries(path: &Path) -> Result<Option<Vec<Entry>>, KnobError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, &error)),
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let entry = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| KnobError::Journal {
            path: path.display().to_string(),
            why: format!("line {} is no line of a journal ({error})", at + 1),
        })
    };
    whole.lines().enumerate().map(entry).collect::<Result<_, _>>().map(Some)
}

fn remove(path: &Path) -> Result<(), KnobError> {
    fs::remove_file(path).map_err(|error| failed(path, &error))?;
    // That it is gone need not survive a power cut: after that it would be stale.
    Ok(())
}

fn boot_id(root: &Root) -> Result<String, KnobError> {
    root.value(BOOT).map_err(|error| KnobError::Journal {
        path: BOOT.to_owned(),
        why: format!("a journal needs the boot that it is of: {error}"),
    })
}

fn failed(path: &Path, error: &io::Error) -> KnobError {
    KnobError::Journal { path: path.display().to_string(), why: error.to_string() }
}
