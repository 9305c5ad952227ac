//! The one door to `/proc`, `/sys` and `/etc`: the machine's own, or a recorded tree.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

/// Why something of the machine could not be read. Paths are those of the
/// machine, without the folder of a recorded tree.
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
            _ if error.raw_os_error() == Some(nix::errno::Errno::ESRCH as i32) => {
                RootError::Missing { path }
            }
            _ => RootError::Io { path, why: error.to_string() },
        }
    }

    /// For a file whose content is not what the kernel documents.
    pub fn malformed(path: &str, text: &str, expected: &'static str) -> Self {
        // A whole file in an error message helps nobody.
        let text = text.lines().next().unwrap_or_default().chars().take(60).collect();
        RootError::Malformed { path: path.to_owned(), text, expected }
    }
}

/// Where the machine is read from: `/`, or the folder of a recorded machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    dir: PathBuf,
}

impl Default for Root {
    fn default() -> Self {
        Root::live()
    }
}

impl Root {
    /// The running machine.
    pub fn live() -> Self {
        Root { dir: PathBuf::from("/") }
    }

    /// A recorded machine: a folder that holds `proc/`, `sys/` and `etc/`.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Root { dir: dir.into() }
    }

    /// Whether this is the running machine. Only then do system calls, which
    /// no folder can answer, speak of the same machine as the files.
    pub fn is_live(&self) -> bool {
        self.dir == Path::new("/")
    }

    /// Where an absolute path of the machine lies on this one.
    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.join(path.trim_start_matches('/'))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Where a symbolic link points.
    pub fn link(&self, path: &str) -> Result<String, RootError> {
        fs::read_link(self.path(path))
            .map(|target| target.to_string_lossy().into_owned())
            .map_err(|error| RootError::io(path, &error))
    }

    /// The names of a folder that are numbers, in order: processes, threads, descriptors.
    pub fn numbers(&self, path: &str) -> Result<Vec<u32>, RootError> {
        let entries = fs::read_dir(self.path(path)).map_err(|error| RootError::io(path, &error))?;
        let mut numbers: Vec<u32> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// A file's whole text, as it is; it may be empty.
    pub fn text(&self, path: &str) -> Result<String, RootError> {
        match fs::read(self.path(path)) {
            // Device models and DMI strings are not always UTF-8.
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => Err(RootError::io(path, &error)),
        }
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
        let entries = fs::read_dir(self.path(path)).map_err(|error| RootError::io(path, &error))?;
        let mut names: Vec<String> = entries
            .filter_map(Result::ok)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
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

    /// Writes to a file that exists; never makes one.
    pub fn write(&self, path: &str, text: &str) -> Result<(), RootError> {
        OpenOptions::new()
            .write(true)
            .open(self.path(path))
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| RootError::io(path, &error))
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
    fn folders_are_listed_as_people_count() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["cpu10", "cpu2", "cpu0", "cpufreq"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let root = Root::at(dir.path());
        assert_eq!(root.list("/").unwrap(), ["cpu0", "cpu2", "cpu10", "cpufreq"]);
        assert_eq!(root.numbered("/", "cpu").unwrap(), [0, 2, 10]);
    }
}
