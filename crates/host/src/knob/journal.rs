//! The journal: writes of knobs, on disk before they are made.
//!
//! A line of JSON for each write: the boot, the target, the old and the new value. The lines of a
//! knob are synced (file and folder) before its first write. `running.journal` belongs to a process
//! that puts its knobs back when it ends; `kept.journal` to knobs that stay turned until `kvmeter
//! knob restore`. Registers and `/sys` are reset by a boot, so a journal of an earlier boot is
//! stale: it is set aside and never replayed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use safe_file::{FileError, Lock, LockError, LockOptions, LockScope};

use super::error::KnobError;
use super::journal_entry::JournalEntry;
use super::restore::{RestoreOutcome, restore};
use super::write::{KnobWrite, RestoreAction};
use crate::root::Root;

/// The environment variable that names another folder for the journal.
const FOLDER: &str = "KVMETER_STATE_DIR";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const RUNNING: &str = "running.journal";
const KEPT: &str = "kept.journal";
/// Only one process turns knobs. The supervisor shares the lock, and holds it after a kill until it
/// has put the knobs back.
const LOCK: &str = "lock";
const LOCK_OPTIONS: LockOptions = LockOptions {
    scope: LockScope::OneUser,
    timeout: Duration::from_secs(10),
    leaves_nothing: false,
};
/// How every line begins.
const BEGINNING: &str = "{\"boot_id\":";

/// The folder of the journal: `KVMETER_STATE_DIR`, or `/var/lib/kvmeter` for root, or
/// `$XDG_STATE_HOME/kvmeter`. Never a shared folder, in which others could plant a journal.
///
/// # Errors
/// No variable names a folder.
pub fn state_folder() -> Result<PathBuf, KnobError> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = named(FOLDER) {
        return Ok(PathBuf::from(folder));
    }
    if nix::unistd::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/kvmeter"));
    }
    let state = named("XDG_STATE_HOME").map(PathBuf::from);
    let home = || named("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Ok(state.or_else(home).ok_or(KnobError::NoFolder)?.join("kvmeter"))
}

/// The journal of a machine, locked: only one process turns knobs.
pub struct Journal {
    pub(super) root: Root,
    pub(super) folder: PathBuf,
    pub(super) lock: Lock,
    pub(super) supervisor: Option<Command>,
    boot_id: String,
    file: Option<File>,
    recovered: Vec<RestoreOutcome>,
}

impl Journal {
    /// Locks the journal in a folder, which is created if needed, and puts back what a killed process
    /// had turned ([`Journal::recovered`]).
    pub fn open(root: &Root, folder: &Path) -> Result<Journal, KnobError> {
        let boot_id = boot_id(root)?;
        safe_file::make_private_folder(folder).map_err(not_own)?;
        let lock = Lock::take(&folder.join(LOCK), &LOCK_OPTIONS).map_err(|error| match error {
            LockError::Held { path, holder } => {
                KnobError::Busy { who: holder.to_string(), lock: path.display().to_string() }
            }
            LockError::File(error) => not_own(error),
        })?;
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

    /// The journal of another process, with the lock that this one inherited.
    pub(super) fn inherited(root: &Root, folder: &Path, lock: Lock) -> Result<Journal, KnobError> {
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

    /// Puts back what a killed process had turned, unless another process holds the journal. For the
    /// start of a command that turns no knobs itself.
    pub fn recover(root: &Root, folder: &Path) -> Result<Vec<RestoreOutcome>, KnobError> {
        if !folder.join(RUNNING).exists() {
            return Ok(Vec::new());
        }
        match Journal::open(root, folder) {
            Ok(mut journal) => Ok(std::mem::take(&mut journal.recovered)),
            Err(KnobError::Busy { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Starts a supervisor with `command`, which must end in [`super::supervisor::run`]. Without one, a
    /// killed process leaves its knobs turned until the next start.
    #[must_use]
    pub fn supervised_by(mut self, command: Command) -> Journal {
        self.supervisor = Some(command);
        self
    }

    /// What was put back of earlier processes.
    pub fn recovered(&self) -> &[RestoreOutcome] {
        &self.recovered
    }

    /// Puts back the knobs that were left turned. `None` if there are none.
    pub fn restore_kept(&mut self) -> Result<Option<RestoreOutcome>, KnobError> {
        self.put_back(KEPT)
    }

    /// Journals writes and syncs them.
    pub(super) fn note(
        &mut self,
        knob: &str,
        level: &str,
        writes: &[KnobWrite],
    ) -> Result<(), KnobError> {
        let mut text = String::new();
        for write in writes.iter().filter(|write| is_noted(write)) {
            if !write.place.belongs_to_knob() {
                let why = "no knob writes there, so it would not be restored".to_owned();
                return Err(KnobError::Journal { path: write.place.to_string(), why });
            }
            let entry = JournalEntry {
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
                let mut options = OpenOptions::new();
                self.file =
                    Some(safe_file::open_private(&path, options.append(true).create_new(true))?);
            }
            if let Some(file) = &mut self.file {
                append(file, text.as_bytes())?;
            }
            Ok(File::open(&self.folder)?.sync_all()?)
        };
        note().map_err(|error: JournalFailure| error.at(&path))
    }

    /// Puts back everything that this process turned.
    pub(super) fn put_back_running(&mut self) -> Result<Option<RestoreOutcome>, KnobError> {
        self.file = None;
        self.put_back(RUNNING)
    }

    /// Leaves this process's knobs turned: appends its lines to those that are kept already.
    pub(super) fn keep(&mut self) -> Result<(), KnobError> {
        self.file = None;
        let (running, kept) = (self.folder.join(RUNNING), self.folder.join(KEPT));
        let Some(text) = read(&running)? else { return Ok(()) };
        let keep = || {
            let mut options = OpenOptions::new();
            let mut file =
                safe_file::open_private(&kept, options.read(true).append(true).create(true))?;
            append(&mut file, &text)?;
            File::open(&self.folder)?.sync_all()?;
            // After a kill here the lines are in both files; putting them back twice does no harm.
            fs::remove_file(&running)?;
            Ok(File::open(&self.folder)?.sync_all()?)
        };
        keep().map_err(|error: JournalFailure| error.at(&kept))
    }

    fn put_back(&self, name: &str) -> Result<Option<RestoreOutcome>, KnobError> {
        let path = self.folder.join(name);
        let Some(JournalLines { entries, unread }) = lines(&path)? else { return Ok(None) };
        let mut restored = restore(&self.root, &entries, &path)?;
        if unread.is_empty() {
            remove(&path)?;
            return Ok(Some(restored));
        }
        let notes = self.set_aside(name, &unread)?;
        if let RestoreOutcome::Done { unread, .. } = &mut restored {
            *unread = notes;
        }
        Ok(Some(restored))
    }

    /// Keeps a journal with unreadable lines for inspection, by a rename, which works on a full disk.
    fn set_aside(&self, name: &str, unread: &[UnreadableLine]) -> Result<Vec<String>, KnobError> {
        let path = self.folder.join(name);
        let another = |number: u32| self.folder.join(format!("unread-{number}-{name}"));
        let aside = (1..u32::MAX).map(another).find(|aside| aside.symlink_metadata().is_err());
        let aside = aside.unwrap_or_else(|| another(0));
        fs::rename(&path, &aside).map_err(|error| failed(&path, &error))?;
        let describe = |unread: &UnreadableLine| {
            let UnreadableLine { line, why } = unread;
            format!(
                "line {line} of {name} {why} and was skipped: the knob that it turned stays turned \
                 until the next boot ({} has the line)",
                aside.display()
            )
        };
        Ok(unread.iter().map(describe).collect())
    }

    /// Renames a journal of an earlier boot.
    fn set_aside_if_stale(&self, name: &str) -> Result<Option<RestoreOutcome>, KnobError> {
        let path = self.folder.join(name);
        let Some(JournalLines { entries, .. }) = lines(&path)? else { return Ok(None) };
        let Some(entry) = entries.iter().find(|entry| entry.boot_id != self.boot_id) else {
            return Ok(None);
        };
        let boot: String = entry.boot_id.chars().filter(char::is_ascii_alphanumeric).collect();
        let aside = path.with_file_name(format!("stale-{boot}-{name}"));
        fs::rename(&path, &aside).map_err(|error| failed(&path, &error))?;
        Ok(Some(RestoreOutcome::Stale { entries: entries.len(), aside }))
    }
}

/// The journal entries of knobs that stay turned until they are restored.
pub(super) fn kept(folder: &Path) -> Result<Vec<JournalEntry>, KnobError> {
    Ok(lines(&folder.join(KEPT))?.map(|lines| lines.entries).unwrap_or_default())
}

/// Settings of the process end with it, and actions have no old value.
fn is_noted(write: &KnobWrite) -> bool {
    let is_group = write.place.within == super::target::TargetPart::Group;
    match write.after {
        RestoreAction::Restored | RestoreAction::Kept => !write.place.is_own(),
        RestoreAction::Released => is_group,
        RestoreAction::Lasting => false,
    }
}

fn line(entry: &JournalEntry) -> Result<String, KnobError> {
    let text = serde_json::to_string(entry).map_err(|error| KnobError::Journal {
        path: entry.place.to_string(),
        why: format!("it cannot be written to the journal: {error}"),
    })?;
    Ok(text + "\n")
}

/// A parsed journal.
struct JournalLines {
    entries: Vec<JournalEntry>,
    unread: Vec<UnreadableLine>,
}

/// A line that is not exactly one write of a knob.
struct UnreadableLine {
    line: usize,
    why: String,
}

/// The lines of a journal; `None` if there is no such file. A truncated last line is of a write
/// that was never made.
fn lines(path: &Path) -> Result<Option<JournalLines>, KnobError> {
    let Some(bytes) = read(path)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = JournalLines { entries: Vec::new(), unread: Vec::new() };
    let parsed = |text: &str| serde_json::from_str::<JournalEntry>(text);
    for (text, line) in whole.lines().zip(1..) {
        let mut no = |why: String| lines.unread.push(UnreadableLine { line, why });
        let entry = parsed(text).or_else(|error| {
            no(format!("cannot be read ({error})"));
            // A whole line may follow a truncated one.
            let starts = text.match_indices(BEGINNING).map(|(at, _)| at);
            starts.filter_map(|at| parsed(&text[at..]).ok()).next().ok_or(())
        });
        match entry {
            Ok(entry) if entry.place.belongs_to_knob() => lines.entries.push(entry),
            Ok(entry) => no(format!("names {}, where no knob writes,", entry.place)),
            Err(()) => {}
        }
    }
    Ok(Some(lines))
}

/// Reads a journal, which must be owned by this user.
fn read(path: &Path) -> Result<Option<Vec<u8>>, KnobError> {
    let mut file = match safe_file::open_private(path, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(not_own(error)),
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| failed(path, &error))?;
    Ok(Some(bytes))
}

/// Appends whole lines and syncs them; on a failure truncates the file again, so that the next line
/// does not continue a partial one.
fn append(file: &mut File, text: &[u8]) -> Result<(), JournalFailure> {
    let before = file.metadata()?.len();
    let appended = end_partial_line(file, before).and_then(|()| {
        file.write_all(text)?;
        file.sync_all()
    });
    appended.map_err(|error| {
        let _ = file.set_len(before).and_then(|()| file.sync_all());
        error.into()
    })
}

/// Ends a partial line that an earlier process left.
fn end_partial_line(file: &mut File, length: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let mut last = [b'\n'];
    if length > 0 {
        // A file without read access was created by this process and has whole lines.
        let _ = file.read_at(&mut last, length - 1);
    }
    if last == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
}

/// A failed write of the journal.
enum JournalFailure {
    Io(io::Error),
    File(FileError),
}

impl JournalFailure {
    fn at(self, path: &Path) -> KnobError {
        match self {
            JournalFailure::Io(error) => failed(path, &error),
            JournalFailure::File(error) => not_own(error),
        }
    }
}

impl From<io::Error> for JournalFailure {
    fn from(error: io::Error) -> JournalFailure {
        JournalFailure::Io(error)
    }
}

impl From<FileError> for JournalFailure {
    fn from(error: FileError) -> JournalFailure {
        JournalFailure::File(error)
    }
}

fn not_own(error: FileError) -> KnobError {
    match error {
        FileError::Io { path, source } => failed(&path, &source),
        refused => KnobError::ForeignJournal(refused.to_string()),
    }
}

fn remove(path: &Path) -> Result<(), KnobError> {
    fs::remove_file(path).map_err(|error| failed(path, &error))?;
    // No sync: after a power failure the journal would be stale.
    Ok(())
}

fn boot_id(root: &Root) -> Result<String, KnobError> {
    root.value(BOOT).map_err(|error| KnobError::Journal {
        path: BOOT.to_owned(),
        why: format!("a journal needs the ID of its boot: {error}"),
    })
}

fn failed(path: &Path, error: &io::Error) -> KnobError {
    KnobError::Journal { path: path.display().to_string(), why: error.to_string() }
}
