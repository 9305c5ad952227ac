//! Recorded machines: what was read of one, as a text that people can look through before they
//! send it, and as a folder that stands in for the machine.
//!
//! The text has one entry after the other:
//!
//! - `PATH = TEXT`: a file of one line; nothing after `=` is an empty file.
//! - `PATH:` and then lines that begin with `|`: a file of those lines.
//! - `PATH @OFFSET = 0C 00`: bytes of a register file, in hexadecimal.
//! - `PATH -> TARGET`: a symbolic link.
//! - `PATH/`: a folder.
//! - `{0-7}` in a path: one file for each number. `#` begins a comment line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use thiserror::Error;

use crate::facts::identity;
use crate::root::{Root, RootError};

/// What was read of a machine.
#[derive(Debug, Default)]
pub struct Notes(Mutex<BTreeMap<String, Entry>>);

#[derive(Debug, Clone, PartialEq)]
enum Entry {
    Folder,
    /// It is there; nobody has read it.
    File,
    Text(String),
    /// Offsets and what lies there.
    Bytes(BTreeMap<u64, Vec<u8>>),
    Link(String),
    Failure(String),
}

impl Entry {
    /// Of two that say something of one path the more telling one stays.
    fn rank(&self) -> u8 {
        match self {
            Entry::Folder | Entry::File | Entry::Failure(_) => 0,
            Entry::Text(_) | Entry::Bytes(_) | Entry::Link(_) => 1,
        }
    }
}

impl Notes {
    pub(crate) fn entry(&self, path: &str, is_folder: bool) {
        self.put(path, if is_folder { Entry::Folder } else { Entry::File });
    }

    pub(crate) fn text(&self, path: &str, text: &str) {
        self.put(path, Entry::Text(text.to_owned()));
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        self.put(path, Entry::Link(target.to_owned()));
    }

    pub(crate) fn failure(&self, path: &str, error: &RootError) {
        if !matches!(error, RootError::Missing { .. }) {
            self.put(path, Entry::Failure(error.to_string()));
        }
    }

    pub(crate) fn bytes(&self, path: &str, offset: u64, bytes: &[u8]) {
        if is_of_a_process(path) {
            return;
        }
        let mut notes = self.lock();
        let entry = notes.entry(path.to_owned()).or_insert(Entry::File);
        match entry {
            Entry::Bytes(parts) => drop(parts.insert(offset, bytes.to_vec())),
            other => *other = Entry::Bytes(BTreeMap::from([(offset, bytes.to_vec())])),
        }
    }

    fn put(&self, path: &str, entry: Entry) {
        if is_of_a_process(path) {
            return;
        }
        let path = path.trim_end_matches('/');
        let mut notes = self.lock();
        // The first reading of a text stays: one moment of the machine.
        if notes.get(path).is_none_or(|before| before.rank() < entry.rank()) {
            notes.insert(path.to_owned(), entry);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of it as a text that [`unpack`] takes, behind `title` as comment. Each of `secrets`
    /// is replaced by `...`.
    pub fn to_text(&self, title: &str, secrets: &[String]) -> String {
        let mut text = String::new();
        for line in title.lines() {
            let _ = writeln!(text, "# {line}");
        }
        for (path, entry) in &*self.lock() {
            let _ = match entry {
                Entry::Folder => writeln!(text, "{path}/"),
                Entry::File => writeln!(text, "{path} ="),
                Entry::Failure(why) => writeln!(text, "# {why}"),
                Entry::Link(target) => writeln!(text, "{path} -> {target}"),
                Entry::Text(content) => write_text(&mut text, path, content),
                Entry::Bytes(parts) => parts.iter().try_for_each(|(offset, bytes)| {
                    let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02X}")).collect();
                    writeln!(text, "{path} @{offset} = {}", hex.join(" "))
                }),
            };
        }
        for secret in secrets.iter().filter(|secret| secret.len() > 2) {
            text = text.replace(secret.as_str(), "...");
        }
        text
    }
}

fn write_text(text: &mut String, path: &str, content: &str) -> std::fmt::Result {
    // Device trees and DMI end their texts with a zero.
    let content = content.trim_end_matches(['\0', '\n']);
    if !content.contains('\n') {
        return writeln!(text, "{path} = {content}");
    }
    writeln!(text, "{path}:")?;
    content.lines().try_for_each(|line| writeln!(text, "|{line}"))
}

/// What tells a machine from every other one: its identity and its name.
pub fn names_of(root: &Root) -> Vec<String> {
    identity::SOURCES.iter().filter_map(|path| root.value(path).ok()).collect()
}

/// What other processes do is nobody's business, and another one's at the next moment.
fn is_of_a_process(path: &str) -> bool {
    path.strip_prefix("/proc/").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Why a recorded machine cannot be used.
#[derive(Debug, Error)]
pub enum TreeError {
    #[error(
        "{origin}:{line}: `{text}` is no entry of a recorded machine; take what `kvmeter doctor --record FILE` writes"
    )]
    NoEntry { origin: String, line: usize, text: String },
    #[error("{origin}:{line}: {path}: {source}")]
    Unpacked { origin: String, line: usize, path: String, source: io::Error },
}

/// Makes the files of a recorded machine in a folder; `origin` names the text in errors.
///
/// # Errors
/// A line that is no entry, with its number; what the file system refuses.
pub fn unpack(text: &str, origin: &str, dir: &Path) -> Result<(), TreeError> {
    let mut lines = text.lines().zip(1..).peekable();
    while let Some((line, number)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let no_entry = || TreeError::NoEntry {
            origin: origin.to_owned(),
            line: number,
            text: line.chars().take(60).collect(),
        };
        let failed = |path: &str| {
            let path = path.to_owned();
            let origin = origin.to_owned();
            move |source| TreeError::Unpacked { origin, line: number, path, source }
        };
        if !line.starts_with('/')
            || line.split('/').any(|part| part == "..") && !line.contains(" -> ")
        {
            return Err(no_entry());
        }
        if let Some((path, target)) = line.split_once(" -> ") {
            make_link(dir, path, target).map_err(failed(path))?;
        } else if let Some((path, text)) = line.split_once(" =") {
            if let Some((path, offset)) = path.split_once(" @") {
                let offset = offset.parse().map_err(|_| no_entry())?;
                let bytes: Result<Vec<u8>, _> =
                    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16)).collect();
                let bytes = bytes.map_err(|_| no_entry())?;
                put_bytes(&place(dir, path), offset, &bytes).map_err(failed(path))?;
                continue;
            }
            let text = text.trim();
            let content = if text.is_empty() { String::new() } else { format!("{text}\n") };
            for path in each(path).ok_or_else(no_entry)? {
                put(&place(dir, &path), &content).map_err(failed(&path))?;
            }
        } else if let Some(path) = line.strip_suffix(':') {
            let mut content = String::new();
            while let Some((part, _)) = lines.next_if(|(line, _)| line.starts_with('|')) {
                content += &part[1..];
                content.push('\n');
            }
            if content.is_empty() {
                return Err(no_entry());
            }
            for path in each(path).ok_or_else(no_entry)? {
                put(&place(dir, &path), &content).map_err(failed(&path))?;
            }
        } else if let Some(path) = line.strip_suffix('/') {
            fs::create_dir_all(place(dir, path)).map_err(failed(path))?;
        } else {
            return Err(no_entry());
        }
    }
    Ok(())
}

fn place(dir: &Path, path: &str) -> PathBuf {
    dir.join(path.trim_start_matches('/'))
}

fn with_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

fn put(path: &Path, content: &str) -> io::Result<()> {
    with_folder(path)?;
    fs::write(path, content)
}

fn put_bytes(path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
    with_folder(path)?;
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    file.write_all_at(bytes, offset)
}

/// A link to a place within the folder; where it leads is made, for files below the link.
fn make_link(dir: &Path, path: &str, target: &str) -> io::Result<()> {
    let link = place(dir, path);
    with_folder(&link)?;
    let mut leads_to = match target.starts_with('/') {
        true => PathBuf::new(),
        false => Path::new(path.trim_start_matches('/'))
            .parent()
            .map_or_else(PathBuf::new, Path::to_owned),
    };
    for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(leads_to.pop()),
            part => leads_to.push(part),
        }
    }
    fs::create_dir_all(dir.join(&leads_to))?;
    if link.is_symlink() || link.exists() {
        return Ok(());
    }
    symlink(target, &link)
}

/// The paths of one with `{0-7}` in it; None if that is not two numbers.
fn each(path: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = path.split_once('{') else { return Some(vec![path.to_owned()]) };
    let (range, after) = rest.split_once('}')?;
    let (first, last) = range.split_once('-')?;
    let numbers = first.parse::<u32>().ok()?..=last.parse().ok()?;
    Some(numbers.map(|number| format!("{before}{number}{after}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_of_a_machine_is_read_of_its_recording_again() {
        let machine = tempfile::tempdir().unwrap();
        let text = "/sys/cpu{0-1}/online = 1\n/sys/cpu0/seen\n".replace("/seen\n", "/seen =\n");
        let text = format!(
            "{text}/proc/cpuinfo:\n|a : b\n|\n|c\n/dev/msr @16 = 0C 00 FF 01\n/sys/devices/real/\n/sys/class -> devices/real\n/proc/77/comm = secret\n/etc/name = host-of-mine\n"
        );
        unpack(&text, "text", machine.path()).unwrap();
        let (root, notes) = Root::at(machine.path()).noting();
        let read = |root: &Root| {
            (
                root.numbered("/sys", "cpu"),
                root.value("/sys/cpu1/online"),
                root.text("/proc/cpuinfo"),
                root.bytes_at::<4>("/dev/msr", 16),
                root.link("/sys/class"),
                root.exists("/sys/cpu0/seen"),
                root.text("/sys/missing").is_err(),
            )
        };
        let first = read(&root);
        assert_eq!(first.0, Ok(vec![0, 1]));
        assert_eq!(first.3, Ok([12, 0, 255, 1]));
        assert!(first.5);
        let _ = (root.value("/proc/77/comm"), root.value("/etc/name"));
        let text = notes.to_text("a machine\nof the tests", &["host-of-mine".to_owned()]);
        assert!(text.starts_with("# a machine\n# of the tests\n"), "{text}");
        assert!(!text.contains("secret") && !text.contains("host-of-mine"), "{text}");
        let again = tempfile::tempdir().unwrap();
        unpack(&text, "text", again.path()).unwrap();
        let root = Root::at(again.path());
        assert_eq!(read(&root), first);
        assert_eq!(root.value("/etc/name"), Ok("...".to_owned()));
    }

    #[test]
    fn a_line_that_is_no_entry_is_named() {
        let dir = tempfile::tempdir().unwrap();
        for (text, line) in [
            ("# a\n\nsys/x = 1", 3),
            ("/sys/x", 1),
            ("/sys/x:\n/sys/y = 1", 1),
            ("/sys/../../x = 1", 1),
            ("/dev/msr @x = 00", 1),
            ("/dev/msr @1 = zz", 1),
            ("/sys/{a-b}/x = 1", 1),
        ] {
            let error = unpack(text, "machine.tree", dir.path()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("machine.tree:{line}: ")), "{error}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
