//! The only access to `/proc`, `/sys` and `/etc`: the machine's own, or a recorded machine.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use nix::errno::Errno;
use thiserror::Error;

use crate::confined::ConfinedDir;
use crate::recording_notes::RecordingNotes;

/// Errors of reading the machine. Paths are those of the machine, without the
/// folder of a recorded machine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RootError {
    #[error("{path} does not exist")]
    Missing { path: String },
    #[error("{path} may not be accessed by this user")]
    Denied { path: String },
    #[error("{path} could not be accessed: {why}")]
    Io { path: String, why: String },
    #[error("{path} is empty")]
    Empty { path: String },
    #[error("{path} holds `{text}`, which is not {expected}")]
    Malformed { path: String, text: String, expected: &'static str },
}

impl RootError {
    fn io(path: &str, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => RootError::Missing { path },
            io::ErrorKind::PermissionDenied => RootError::Denied { path },
            // The process ended while its file was open.
            _ if error.raw_os_error() == Some(Errno::ESRCH as i32) => RootError::Missing { path },
            _ => RootError::Io { path, why: error.to_string() },
        }
    }

    /// For a file whose content is not what the kernel documents.
    pub fn malformed(path: &str, text: &str, expected: &'static str) -> Self {
        // A whole file would make the message unreadable.
        let text = text.lines().next().unwrap_or_default().chars().take(60).collect();
        RootError::Malformed { path: path.to_owned(), text, expected }
    }
}

/// Longest file of a recorded machine that is read as a whole; no real file reaches it.
const CONTENT: u64 = 64 << 20;

/// Where the machine is read from: `/`, or the folder of a recorded machine, which no access
/// through this leaves.
#[derive(Debug, Clone)]
pub struct Root {
    dir: PathBuf,
    /// `None` on the running machine.
    recorded: Option<Arc<ConfinedDir>>,
    /// Devices of the running machine that substitute those of a recorded one.
    substitutes: BTreeMap<String, PathBuf>,
    /// The recording of reads through this and its clones, if enabled.
    notes: Option<Arc<RecordingNotes>>,
    /// The CPU's model, if the user answers for registers that are not documented for it.
    trusted_model: Option<String>,
}

/// Roots are equal if they are of the same machine.
impl PartialEq for Root {
    fn eq(&self, other: &Root) -> bool {
        self.dir == other.dir
    }
}

impl Eq for Root {}

impl Default for Root {
    fn default() -> Self {
        Root::live()
    }
}

impl Root {
    /// The running machine.
    pub fn live() -> Self {
        Root::at("/")
    }

    /// A recorded machine: a folder that holds `proc/`, `sys/` and `etc/`.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        let recorded = (dir != Path::new("/")).then(|| Arc::new(ConfinedDir::new(&dir)));
        let substitutes = BTreeMap::new();
        Root { dir, recorded, substitutes, notes: None, trusted_model: None }
    }

    /// The same machine with everything that is read through it recorded.
    pub fn with_notes(self) -> (Self, Arc<RecordingNotes>) {
        let notes = Arc::new(RecordingNotes::default());
        (Root { notes: Some(Arc::clone(&notes)), ..self }, notes)
    }

    /// The same recorded machine with a device of the running one at `path`.
    #[must_use]
    pub fn with_device(mut self, path: &str, device: impl Into<PathBuf>) -> Self {
        self.substitutes.insert(path.to_owned(), device.into());
        self
    }

    pub(crate) fn trusting(self, model: String) -> Self {
        Root { trusted_model: Some(model), ..self }
    }

    /// The CPU's model, if the user answers for registers that are not documented for it.
    pub fn trusted_model(&self) -> Option<&str> {
        self.trusted_model.as_deref()
    }

    /// Checks that the folder of a recorded machine exists; else every single file would be reported
    /// as missing.
    pub fn check(&self) -> Result<(), RootError> {
        let folder = self.recorded.as_ref().map_or(Ok(()), |folder| folder.check());
        folder.map_err(|error| RootError::io(&self.dir.display().to_string(), &error))
    }

    fn note(&self, note: impl FnOnce(&RecordingNotes)) {
        if let Some(notes) = &self.notes {
            note(notes);
        }
    }

    /// Whether this is the running machine. Only then do system calls answer for the
    /// same machine as the files.
    pub fn is_live(&self) -> bool {
        self.recorded.is_none()
    }

    /// The path of a device that is not read as a file: never in the folder of a recorded machine,
    /// where its name could be a link to any device.
    pub fn device(&self, path: &str) -> Result<PathBuf, RootError> {
        match (self.substitutes.get(path), self.is_live()) {
            (Some(device), _) => Ok(device.clone()),
            (None, true) => Ok(PathBuf::from(path)),
            (None, false) => Err(RootError::Missing { path: path.to_owned() }),
        }
    }

    pub fn exists(&self, path: &str) -> bool {
        let exists = match &self.recorded {
            None => Path::new(path).exists(),
            Some(folder) => folder.exists(path),
        };
        if exists {
            self.note(|notes| notes.entry(path, self.is_dir(path)));
        }
        exists
    }

    fn is_dir(&self, path: &str) -> bool {
        match &self.recorded {
            None => Path::new(path).is_dir(),
            Some(folder) => folder.is_dir(path),
        }
    }

    /// Where a symbolic link points.
    pub fn link(&self, path: &str) -> Result<String, RootError> {
        let target = match &self.recorded {
            None => fs::read_link(path),
            Some(folder) => folder.link(path),
        };
        let target = target
            .map(|target| target.to_string_lossy().into_owned())
            .map_err(|error| RootError::io(path, &error))?;
        self.note(|notes| notes.link(path, &target));
        Ok(target)
    }

    fn names(&self, path: &str) -> Result<Vec<String>, RootError> {
        let names = match &self.recorded {
            None => fs::read_dir(path).map(|entries| {
                let entries = entries.filter_map(Result::ok);
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
            }),
            Some(folder) => {
                folder.list(path).map(|entries| entries.into_iter().map(|(name, _)| name).collect())
            }
        };
        names.map_err(|error| RootError::io(path, &error))
    }

    /// The names of a folder that are numbers, in order: processes, threads, descriptors.
    pub fn numbers(&self, path: &str) -> Result<Vec<u32>, RootError> {
        let names = self.names(path)?;
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn open(&self, path: &str) -> io::Result<File> {
        match &self.recorded {
            None => File::open(path),
            Some(folder) => folder.open(path, OpenOptions::new().read(true)),
        }
    }

    fn open_to_write(&self, path: &str, options: &mut OpenOptions) -> io::Result<File> {
        match &self.recorded {
            None => options.write(true).open(path),
            Some(folder) => folder.open_to_write(path, options),
        }
    }

    /// All that a file holds.
    fn content(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = self.open(path)?;
        match self.recorded {
            None => drop((&file).read_to_end(&mut bytes)?),
            // One line of a recording can make a sparse file of gigabytes.
            Some(_) => {
                file.take(CONTENT + 1).read_to_end(&mut bytes)?;
                if bytes.len() as u64 > CONTENT {
                    let why = format!("it is longer than {} MiB", CONTENT >> 20);
                    return Err(io::Error::other(why));
                }
            }
        }
        Ok(bytes)
    }

    /// A file's whole text, as it is; it may be empty.
    pub fn text(&self, path: &str) -> Result<String, RootError> {
        match self.content(path) {
            // Device models and DMI strings are not always UTF-8.
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                self.note(|notes| notes.text(path, &text));
                Ok(text)
            }
            Err(error) => {
                let error = RootError::io(path, &error);
                if !matches!(error, RootError::Missing { .. }) {
                    self.note(|notes| notes.failure(path, error.to_string()));
                }
                Err(error)
            }
        }
    }

    /// The selected word, in brackets, of a file; the whole file where nothing is in brackets.
    pub(crate) fn selected(&self, path: &str) -> Result<String, RootError> {
        let text = self.value(path)?;
        Ok(crate::parse::bracketed(&text).unwrap_or(&text).to_owned())
    }

    /// A file's text without the white space around it; an empty one is an error.
    pub fn value(&self, path: &str) -> Result<String, RootError> {
        let text = self.text(path)?;
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        if text.is_empty() {
            return Err(RootError::Empty { path: path.to_owned() });
        }
        Ok(text.to_owned())
    }

    /// A file that holds one number.
    pub fn number<T: FromStr>(&self, path: &str) -> Result<T, RootError> {
        let text = self.value(path)?;
        text.parse().map_err(|_| RootError::malformed(path, &text, "a number"))
    }

    /// The names in a folder, with `cpu2` before `cpu10`.
    pub fn list(&self, path: &str) -> Result<Vec<String>, RootError> {
        let mut names = self.names(path)?;
        self.note(|notes| {
            notes.entry(path, true);
            for name in &names {
                let entry = format!("{}/{name}", path.trim_end_matches('/'));
                notes.entry(&entry, self.is_dir(&entry));
            }
        });
        names.sort_by_cached_key(|name| natural(name));
        Ok(names)
    }

    /// The numbers N of the entries `prefixN` of a folder, in order.
    pub fn numbered(&self, path: &str, prefix: &str) -> Result<Vec<u32>, RootError> {
        let numbers = self.list(path)?.into_iter().filter_map(|name| {
            let digits = name.strip_prefix(prefix)?;
            digits.parse().ok()
        });
        Ok(numbers.collect())
    }

    /// Writes to an existing file, truncating it like `echo TEXT > FILE`; never
    /// creates one.
    pub fn write(&self, path: &str, text: &str) -> Result<(), RootError> {
        self.open_to_write(path, OpenOptions::new().truncate(true))
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| RootError::io(path, &error))
    }

    /// Writes like [`Root::write`]; `false` where the kernel keeps the value fixed for every user: it
    /// answers `EIO`, since Linux 6.11 `EPERM`.
    pub(crate) fn write_unless_fixed(&self, path: &str, text: &str) -> Result<bool, RootError> {
        let written = self
            .open_to_write(path, OpenOptions::new().truncate(true))
            .and_then(|mut file| file.write_all(text.as_bytes()));
        let fixed = [Errno::EIO, Errno::EPERM].map(|errno| Some(errno as i32));
        match written {
            Ok(()) => Ok(true),
            Err(error) if fixed.contains(&error.raw_os_error()) => Ok(false),
            Err(error) => Err(RootError::io(path, &error)),
        }
    }

    /// Whether the file has no permission to write for anyone, which does not bind root.
    pub(crate) fn is_read_only(&self, path: &str) -> Result<bool, RootError> {
        let metadata = self.open(path).and_then(|file| file.metadata());
        let metadata = metadata.map_err(|error| RootError::io(path, &error))?;
        Ok(metadata.permissions().readonly())
    }

    /// Bytes of a register file: of `/dev/cpu/N/msr` or of a PCI device's `config`.
    pub fn bytes_at<const N: usize>(&self, path: &str, offset: u64) -> Result<[u8; N], RootError> {
        let mut bytes = [0; N];
        self.open(path)
            .and_then(|file| file.read_exact_at(&mut bytes, offset))
            .map_err(|error| RootError::io(path, &error))?;
        self.note(|notes| notes.bytes(path, offset, &bytes));
        Ok(bytes)
    }

    /// Writes bytes of a register file with one call, and leaves the others alone.
    pub fn write_bytes_at(&self, path: &str, offset: u64, bytes: &[u8]) -> Result<(), RootError> {
        self.open_to_write(path, &mut OpenOptions::new())
            .and_then(|file| file.write_all_at(bytes, offset))
            .map_err(|error| RootError::io(path, &error))
    }

    /// Opens a device and writes to it; the value holds while the file is open.
    pub fn hold(&self, path: &str, bytes: &[u8]) -> Result<File, RootError> {
        let hold = || {
            let mut file = self.open_to_write(path, &mut OpenOptions::new())?;
            file.write_all(bytes)?;
            Ok(file)
        };
        hold().map_err(|error| RootError::io(path, &error))
    }

    /// Whether this user may write to the file, without writing (`access(2)`).
    pub fn may_write(&self, path: &str) -> Result<(), RootError> {
        let answer = match &self.recorded {
            None => nix::unistd::access(path, nix::unistd::AccessFlags::W_OK).map_err(Into::into),
            Some(folder) => folder.may_write(path),
        };
        answer.map_err(|error| RootError::io(path, &error))
    }

    /// Makes a control group. The kernel fills its folder; in a recorded machine, which has no
    /// kernel, it gets the files of the group above it.
    pub fn make_group(&self, path: &str) -> Result<(), RootError> {
        let make = |folder: &ConfinedDir| {
            folder.make_folder(path)?;
            let (above, _) = path.rsplit_once('/').unwrap_or_default();
            for (name, is_file) in folder.list(above)? {
                if is_file {
                    let bytes = self.content(&format!("{above}/{name}"))?;
                    folder.write_file(&format!("{path}/{name}"), &bytes)?;
                }
            }
            Ok(())
        };
        let outcome = match &self.recorded {
            None => fs::create_dir(path),
            Some(folder) => make(folder),
        };
        outcome.map_err(|error| RootError::io(path, &error))
    }

    /// Removes a control group; the kernel moves what was in it to the group above.
    pub fn remove_group(&self, path: &str) -> Result<(), RootError> {
        let removed = match &self.recorded {
            None => fs::remove_dir(path),
            Some(folder) => folder.remove_folder(path),
        };
        removed.map_err(|error| RootError::io(path, &error))
    }
}

/// Orders names by their text and then by the number that ends them.
fn natural(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file_of_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        fs::write(dir.path().join("proc/blank"), "\n").unwrap();
        fs::write(dir.path().join("proc/word"), "many\nmore").unwrap();
        let root = Root::at(dir.path());
        assert_eq!(root.text("/proc/none").unwrap_err().to_string(), "/proc/none does not exist");
        assert_eq!(root.value("/proc/blank").unwrap_err().to_string(), "/proc/blank is empty");
        assert_eq!(
            root.number::<u64>("/proc/word").unwrap_err().to_string(),
            "/proc/word holds `many`, which is not a number"
        );
    }

    #[test]
    fn writing_never_makes_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        assert!(root.write("/knob", "1").is_err());
        assert!(!dir.path().join("knob").exists());
        fs::write(dir.path().join("knob"), "0").unwrap();
        root.write("/knob", "1").unwrap();
        assert_eq!(root.number::<u32>("/knob"), Ok(1));
    }

    #[test]
    fn a_value_that_the_kernel_keeps_is_no_error() {
        // The first page of a process cannot be written to, for which its memory answers EIO.
        assert_eq!(Root::live().write_unless_fixed("/proc/self/mem", "1"), Ok(false));
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        assert!(root.write_unless_fixed("/list", "1").is_err());
        let path = dir.path().join("list");
        fs::write(&path, "0").unwrap();
        assert_eq!(root.write_unless_fixed("/list", "1"), Ok(true));
        assert_eq!((root.number("/list"), root.is_read_only("/list")), (Ok(1), Ok(false)));
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
        assert_eq!(root.is_read_only("/list"), Ok(true));
    }

    #[test]
    fn folders_are_listed_in_numeric_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["cpu10", "cpu2", "cpu0", "cpufreq"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let root = Root::at(dir.path());
        assert_eq!(root.list("/").unwrap(), ["cpu0", "cpu2", "cpu10", "cpufreq"]);
        assert_eq!(root.numbered("/", "cpu").unwrap(), [0, 2, 10]);
    }

    #[test]
    fn a_file_of_a_recording_that_is_too_long_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let text = "/proc/cpuinfo @4294967295 = 00\n/proc/short = 1\n/group/long @67108864 = 00\n";
        crate::recorded::unpack(text, "text", dir.path()).unwrap();
        let root = Root::at(dir.path());
        let refused = root.text("/proc/cpuinfo").unwrap_err().to_string();
        assert_eq!(refused, "/proc/cpuinfo could not be accessed: it is longer than 64 MiB");
        assert_eq!(root.number::<u32>("/proc/short"), Ok(1));
        assert!(root.make_group("/group/new").is_err());
        assert!(!root.exists("/group/new/long"));
        // A text of the longest that is read.
        File::create(dir.path().join("longest")).unwrap().set_len(CONTENT).unwrap();
        assert_eq!(root.text("/longest").unwrap().len() as u64, CONTENT);
    }

    #[test]
    fn a_missing_folder_is_an_error_and_no_empty_machine() {
        let dir = tempfile::tempdir().unwrap();
        Root::live().check().unwrap();
        Root::at(dir.path()).check().unwrap();
        let missing = Root::at(dir.path().join("none")).check().unwrap_err().to_string();
        assert!(missing.ends_with("/none does not exist"), "{missing}");
    }
}
