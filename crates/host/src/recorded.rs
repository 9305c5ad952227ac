//! Recorded machines: the files read from one, as a text that people can review before they send
//! it, and as a folder that stands in for the machine.
//!
//! The text has one entry after the other:
//!
//! - `PATH = TEXT`: a file of one line; nothing after `=` is an empty file.
//! - `PATH:` and then lines that begin with `|`: a file of those lines.
//! - `PATH @OFFSET = 0C 00`: bytes of a register file, in hexadecimal.
//! - `PATH -> TARGET`: a symbolic link. It is followed as on the machine, whose root is the folder.
//! - `PATH/`: a folder.
//! - `{0-7}` in a path: one file for each number. `#` begins a comment line.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use thiserror::Error;

use crate::confined::ConfinedDir;
use crate::facts::identity;
use crate::root::Root;

pub use crate::recording_notes::RecordingNotes;

/// The identifying texts of a machine: its identity and its name.
pub fn machine_names(root: &Root) -> Vec<String> {
    identity::SOURCES.iter().filter_map(|path| root.value(path).ok()).collect()
}

/// Why a recorded machine cannot be used.
#[derive(Debug, Error)]
pub enum TreeError {
    #[error(
        "{origin}:{line}: `{text}` is not an entry of a recorded machine; use a file that `kvmeter \
         doctor --record FILE` wrote"
    )]
    NoEntry { origin: String, line: usize, text: String },
    #[error("{origin}:{line}: {what}; a recorded machine has no more than {limit}")]
    TooMuch { origin: String, line: usize, what: &'static str, limit: String },
    #[error("{origin}:{line}: {path}: {source}")]
    Unpacked { origin: String, line: usize, path: String, source: io::Error },
}

/// Limits that no real recording reaches: files and folders, names in a path, bytes in files, and
/// the offset of a register.
const FILES: u64 = 500_000;
const NAMES: usize = 64;
const BYTES: u64 = 256 << 20;
const OFFSET: u64 = u32::MAX as u64;

/// Makes the files of a recorded machine in a folder; `origin` names the text in errors. Nothing is
/// made or written outside of the folder, whatever the text says.
///
/// # Errors
/// A line that is no entry, with its number; one that makes more than a machine has; what the file
/// system refuses.
pub fn unpack(text: &str, origin: &str, dir: &Path) -> Result<(), TreeError> {
    let mut tree = RecordedTree { folder: ConfinedDir::new(dir), files: 0, bytes: 0 };
    let mut lines = text.lines().zip(1..).peekable();
    while let Some((line, number)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut content = None;
        if line.ends_with(':') && !line.contains(" =") && !line.contains(" -> ") {
            let text = content.insert(String::new());
            while let Some((part, _)) = lines.next_if(|(line, _)| line.starts_with('|')) {
                *text += &part[1..];
                text.push('\n');
            }
        }
        let origin = || origin.to_owned();
        tree.entry(line, content).map_err(|no| match no {
            TreeRefusal::Entry => TreeError::NoEntry {
                origin: origin(),
                line: number,
                text: line.chars().take(60).collect(),
            },
            TreeRefusal::TooMuch(what, limit) => {
                TreeError::TooMuch { origin: origin(), line: number, what, limit }
            }
            TreeRefusal::Io(path, source) => {
                TreeError::Unpacked { origin: origin(), line: number, path, source }
            }
        })?;
    }
    Ok(())
}

/// Why a line is refused.
enum TreeRefusal {
    Entry,
    TooMuch(&'static str, String),
    Io(String, io::Error),
}

/// The folder, and the totals of its content.
struct RecordedTree {
    folder: ConfinedDir,
    files: u64,
    bytes: u64,
}

impl RecordedTree {
    /// Makes the entry of a line; `content` are the lines that follow a `PATH:`.
    fn entry(&mut self, line: &str, content: Option<String>) -> Result<(), TreeRefusal> {
        if let Some(content) = content {
            let paths = line.strip_suffix(':').ok_or(TreeRefusal::Entry)?;
            if content.is_empty() {
                return Err(TreeRefusal::Entry);
            }
            return self.texts(paths, &content);
        }
        if let Some((path, target)) = line.split_once(" -> ") {
            let path = checked(path)?;
            self.count(1, 0)?;
            return self.link(path, target);
        }
        if let Some((path, text)) = line.split_once(" =") {
            if let Some((path, offset)) = path.split_once(" @") {
                return self.bytes(checked(path)?, offset, text);
            }
            let text = text.trim();
            let content = if text.is_empty() { String::new() } else { format!("{text}\n") };
            return self.texts(path, &content);
        }
        let path = checked(line.strip_suffix('/').ok_or(TreeRefusal::Entry)?)?;
        self.folders(path, path)
    }

    fn count(&mut self, files: u64, bytes: u64) -> Result<(), TreeRefusal> {
        self.files = self.files.saturating_add(files);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.files > FILES {
            return Err(TreeRefusal::TooMuch(
                "too many files",
                format!("{FILES} files and folders"),
            ));
        }
        if self.bytes > BYTES {
            return Err(TreeRefusal::TooMuch(
                "too much text",
                format!("{} MiB of text", BYTES >> 20),
            ));
        }
        Ok(())
    }

    /// One file for each number of a path's `{0-7}`, all with the same content.
    fn texts(&mut self, path: &str, content: &str) -> Result<(), TreeRefusal> {
        let path = checked(path)?;
        let (before, first, last, after) = match path.split_once('{') {
            None => (path, None, None, ""),
            Some((before, rest)) => {
                let (range, after) = rest.split_once('}').ok_or(TreeRefusal::Entry)?;
                let (first, last) = range.split_once('-').ok_or(TreeRefusal::Entry)?;
                let number = |text: &str| text.parse::<u32>().map_err(|_| TreeRefusal::Entry);
                (before, Some(number(first)?), Some(number(last)?), after)
            }
        };
        let (Some(first), Some(last)) = (first, last) else {
            self.count(1, content.len() as u64)?;
            return self.text(path, content);
        };
        let files = u64::from(last).saturating_add(1).saturating_sub(first.into());
        self.count(files, files.saturating_mul(content.len() as u64))?;
        (first..=last)
            .try_for_each(|number| self.text(&format!("{before}{number}{after}"), content))
    }

    fn text(&mut self, path: &str, content: &str) -> Result<(), TreeRefusal> {
        self.with_folder(path)?;
        self.folder.write_file(path, content.as_bytes()).map_err(failed(path))
    }

    fn bytes(&mut self, path: &str, offset: &str, text: &str) -> Result<(), TreeRefusal> {
        let offset: u64 = offset.parse().map_err(|_| TreeRefusal::Entry)?;
        if offset > OFFSET {
            return Err(TreeRefusal::TooMuch(
                "too far an offset",
                format!("{OFFSET} as an offset"),
            ));
        }
        let bytes: Result<Vec<u8>, _> =
            text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16)).collect();
        let bytes = bytes.map_err(|_| TreeRefusal::Entry)?;
        self.count(1, bytes.len() as u64)?;
        self.with_folder(path)?;
        self.folder
            .make_file(path)
            .and_then(|file| file.write_all_at(&bytes, offset))
            .map_err(failed(path))
    }

    /// A link as it was recorded; where it leads within the folder is made, for files below it.
    fn link(&mut self, path: &str, target: &str) -> Result<(), TreeRefusal> {
        self.with_folder(path)?;
        if self.folder.is_taken(path) {
            return Ok(());
        }
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let leads_to = match target.starts_with('/') {
            true => target.to_owned(),
            false => format!("{above}/{target}"),
        };
        self.folders(not_too_deep(&leads_to)?, path)?;
        self.folder.make_link(path, target).map_err(failed(path))
    }

    fn with_folder(&mut self, path: &str) -> Result<(), TreeRefusal> {
        let above = path.trim_end_matches('/').rsplit_once('/').map_or("", |(above, _)| above);
        self.folders(above, path)
    }

    /// Makes a folder and those above it, for the sake of an entry.
    fn folders(&mut self, folder: &str, entry: &str) -> Result<(), TreeRefusal> {
        let count = self.folder.make_folders(folder).map_err(failed(entry))?;
        self.count(count, 0)
    }
}

/// Checks a path; `..` is refused, as a plain path can replace it.
fn checked(path: &str) -> Result<&str, TreeRefusal> {
    let is_plain = path.starts_with('/') && !path.split('/').any(|part| part == "..");
    not_too_deep(is_plain.then_some(path).ok_or(TreeRefusal::Entry)?)
}

fn not_too_deep(path: &str) -> Result<&str, TreeRefusal> {
    match path.split('/').filter(|name| !name.is_empty()).count() > NAMES {
        true => Err(TreeRefusal::TooMuch("too deep a path", format!("{NAMES} names in a path"))),
        false => Ok(path),
    }
}

fn failed(path: &str) -> impl FnOnce(io::Error) -> TreeRefusal {
    move |error| TreeRefusal::Io(path.to_owned(), error)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_recording_reads_back_as_the_machine() {
        let machine = tempfile::tempdir().unwrap();
        let text = "/sys/cpu{0-1}/online = 1\n/sys/cpu0/seen\n".replace("/seen\n", "/seen =\n");
        let text = format!(
            "{text}/proc/cpuinfo:\n|a : b\n|\n|c\n/dev/msr @16 = 0C 00 FF 01\n/sys/devices/real/\n/sys/class -> devices/real\n/proc/77/comm = secret\n/etc/name = host-of-mine\n"
        );
        unpack(&text, "text", machine.path()).unwrap();
        let (root, notes) = Root::at(machine.path()).with_notes();
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
    fn refuses_lines_that_are_no_entry() {
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

    #[test]
    fn makes_nothing_outside_of_the_folder() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("a/machine");
        fs::create_dir_all(&dir).unwrap();
        let outside = home.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let out = outside.display();
        let hostile = [
            format!("/esc -> {out}\n/esc/keys = x\n"),
            "/esc2 -> ../../outside\n/esc2/keys = x\n".to_owned(),
            "/deep/esc -> ../../../../../../outside\n/deep/esc/k{0-1}/keys = x\n".to_owned(),
            format!("/file -> {out}/keys\n/file/x = x\n"),
            format!("/one -> /two\n/two/up -> {out}\n/one/up/keys:\n|x\n"),
            format!("/r -> {out}\n/r/keys @7 = 00\n/r/folder/\n"),
        ];
        for text in hostile {
            // Either made within the folder, or refused with its line.
            let outcome = unpack(&text, "text", &dir).map_err(|error| error.to_string());
            assert!(
                outcome.is_ok() || outcome.as_ref().unwrap_err().starts_with("text:"),
                "{outcome:?}"
            );
            assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{text}");
            assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2, "{text}");
            assert_eq!(fs::read_dir(home.path().join("a")).unwrap().count(), 1, "{text}");
        }
        // It was followed inside: the machine's own root is the folder.
        let root = Root::at(&dir);
        assert_eq!(root.value("/esc/keys").unwrap(), "x");
        assert_eq!(root.value(&format!("{out}/keys")).unwrap(), "x");
        assert_eq!(root.value("/outside/keys").unwrap(), "x");
    }

    #[test]
    fn refuses_lines_that_exceed_the_limits() {
        let dir = tempfile::tempdir().unwrap();
        let long = "x".repeat(2000);
        for (text, words) in [
            ("/a{0-4000000000} = 1".to_owned(), "text:1: too many files"),
            (format!("/a{{0-400000}}:\n|{long}"), "text:1: too much text"),
            (format!("/a{{0-499999}}{}/x = 1", "/b".repeat(1500)), "text:1: too deep a path"),
            (format!("{}/", "/b".repeat(65)), "text:1: too deep a path"),
            (format!("/deep -> /x{}", "/b".repeat(64)), "text:1: too deep a path"),
            (format!("/a/deep -> {}b", "b/".repeat(63)), "text:1: too deep a path"),
            ("# a\n/msr @9223372036854775807 = 00".to_owned(), "text:2: too far an offset"),
            ("/../../x -> /y".to_owned(), "text:1: `/../../x -> /y`"),
            ("x -> /y".to_owned(), "text:1: `x -> /y`"),
            ("/a\0b = 1".to_owned(), "text:1: /a"),
            (format!("/{long} = 1"), "text:1: /x"),
        ] {
            let error = unpack(&text, "text", dir.path()).unwrap_err().to_string();
            assert!(error.starts_with(words), "{error} is not `{words}`");
        }
        // The registers of AMD's processors lie high.
        unpack("/dev/msr @3221291672 = 0C", "text", dir.path()).unwrap();
        assert_eq!(Root::at(dir.path()).bytes_at::<1>("/dev/msr", 3_221_291_672), Ok([12]));
    }

    #[test]
    fn folders_count_like_files() {
        let dir = tempfile::tempdir().unwrap();
        let tree = |files| RecordedTree { folder: ConfinedDir::new(dir.path()), files, bytes: 0 };
        let deep = "/b".repeat(50);
        for (line, content) in [
            (format!("/a{{0-1}}{deep}/x = 1"), None),
            (format!("/c{{0-1}}{deep}/x:"), Some("x\n".to_owned())),
            (format!("/d{deep}/"), None),
            (format!("/msr{deep}/msr @0 = 00"), None),
            (format!("/link -> /there{deep}"), None),
        ] {
            let refused = tree(FILES - 50).entry(&line, content);
            assert!(matches!(refused, Err(TreeRefusal::TooMuch("too many files", _))), "{line}");
        }
        // What is there already is not made again; a path of the most names is one.
        let mut folder = tree(0);
        for _ in 0..2 {
            assert!(folder.entry(&format!("/e{}/", "/b".repeat(63)), None).is_ok());
            assert_eq!(folder.files, 64);
        }
    }

    #[test]
    fn links_are_followed_while_other_things_are_renamed() {
        // The kernel gives up at some 4 % of them.
        const LOOKED_UP: usize = 2_000;
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let up = "../".repeat(50);
        unpack(&format!("/x/y/link -> {up}a\n/a/f = 1\n"), "text", dir.path()).unwrap();
        let root = Root::at(dir.path());
        let ended = std::sync::atomic::AtomicBool::new(false);
        let rename = &|number: usize| {
            let name = |end: &str| other.path().join(format!("{number}{end}"));
            fs::write(name("a"), "").unwrap();
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                fs::rename(name("a"), name("b")).unwrap();
                fs::rename(name("b"), name("a")).unwrap();
            }
        };
        std::thread::scope(|scope| {
            for number in 0..2 {
                scope.spawn(move || rename(number));
            }
            let successes = (0..LOOKED_UP).filter(|_| root.exists("/x/y/link/f")).count();
            let read = root.text("/x/y/link/f");
            ended.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!((successes, read), (LOOKED_UP, Ok("1\n".to_owned())));
        });
    }

    #[test]
    fn a_planted_folder_does_not_lead_outside() {
        let home = tempfile::tempdir().unwrap();
        let secret = home.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        let dir = home.path().join("machine");
        fs::create_dir(&dir).unwrap();
        symlink(&secret, dir.join("absolute")).unwrap();
        symlink("../secret", dir.join("relative")).unwrap();
        symlink("/", dir.join("root")).unwrap();
        symlink("/proc/self/fd/0", dir.join("magic")).unwrap();
        fs::hard_link(&secret, dir.join("same")).unwrap();
        nix::unistd::mkfifo(&dir.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let root = Root::at(&dir);
        let below_root = format!("/root{}", secret.display());
        for path in ["/absolute", "/relative", "/../secret", &below_root, "/magic", "/pipe"] {
            assert!(root.text(path).is_err(), "{path}");
            assert!(root.write(path, "changed").is_err(), "{path}");
            assert!(root.bytes_at::<1>(path, 0).is_err(), "{path}");
        }
        assert!(!root.exists("/absolute") && !root.exists("/relative"));
        assert_eq!(root.link("/relative"), Ok("../secret".to_owned()));
        // A hard link to an outside file may be read, as a copy may, but it is not written.
        assert!(root.write("/same", "changed").is_err());
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        assert_eq!(root.list("/root").unwrap(), root.list("/").unwrap());
    }
}
