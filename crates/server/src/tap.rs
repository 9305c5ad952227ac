//! The preloaded library of a server that is about to start, and the shared memory.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::Unavailable;
use nix::sys::statvfs::{FsFlags, statvfs};
use tap::preload::{FILE_NAME, VARIABLE};
use tap::reader::{Reader, ReaderError, Snapshot};
use tempfile::TempDir;
use thiserror::Error;

/// The library itself, built with this crate.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libkvmeter_tap.so"));

/// The loader's variable of preloaded libraries.
const PRELOAD: &str = "LD_PRELOAD";

const PREFIX: &str = "kvmeter-tap-";

/// Why a server cannot be watched from inside.
#[derive(Debug, Error)]
pub enum TapError {
    #[error("{}: {source}; name a folder that can be written and run from with TMPDIR", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("the memory that the server shares: {0}")]
    Memory(#[from] ReaderError),
}

/// Files for one start of one server, removed when this is dropped.
#[derive(Debug)]
pub struct Tap {
    library: PathBuf,
    reader: Reader,
    folder: TempDir,
}

impl Tap {
    /// Writes the library to a folder of its own, and removes folders of killed processes.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn prepare() -> Result<Tap, TapError> {
        let parent = std::env::temp_dir();
        sweep(&parent);
        let failed = |source| TapError::Folder { path: parent.clone(), source };
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let folder =
            tempfile::Builder::new().prefix(&prefix).tempdir_in(&parent).map_err(failed)?;
        let library = folder.path().join(FILE_NAME);
        fs::write(&library, LIBRARY).map_err(failed)?;
        let reader = Reader::create(&folder.path().join("shared"))?;
        // A server that changes its user has mapped library and memory before.
        Ok(Tap { library, reader, folder })
    }

    /// The environment for the server.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = |path: &Path| OsString::from(path).to_string_lossy().into_owned();
        vec![
            (PRELOAD.to_owned(), text(&self.library)),
            (VARIABLE.to_owned(), text(self.reader.path())),
        ]
    }

    /// Whether a variable is one of [`Tap::environment`].
    pub fn sets(key: &str) -> bool {
        [PRELOAD, VARIABLE].contains(&key)
    }

    /// Whether the process counts into the shared memory. `printed` is its output during the start,
    /// in which the loader explains why it left the library out.
    ///
    /// # Errors
    /// Why it does not, with a remedy.
    pub fn watches(&self, pid: u32, printed: &str) -> Result<(), Unavailable> {
        let folder = self.folder.path();
        let files = [&self.library, self.reader.path()].map(|file| {
            // The name is unique; the folder may have several paths.
            let name = folder.file_name().map(Path::new).unwrap_or(folder);
            name.join(file.file_name().unwrap_or_default()).display().to_string()
        });
        let [library, shared] = match fs::read_to_string(format!("/proc/{pid}/maps")) {
            Ok(maps) => files.map(|file| maps.contains(&file)),
            // Another user's process: the newest with the memory mapped is recorded there.
            Err(_) => [self.snapshot().server.is_some_and(|server| server.pid == pid); 2],
        };
        if library && shared {
            return Ok(());
        }
        let bars_programs =
            statvfs(folder).is_ok_and(|found| found.flags().contains(FsFlags::ST_NOEXEC));
        let message =
            loader_message(printed).map_or(String::new(), |words| format!(" (`{words}`)"));
        // A library that was refused may have left a segment behind.
        Err(match (bars_programs, message.is_empty(), library) {
            (true, ..) => Unavailable::new(
                format!(
                    "the library that times process {pid} lies in {}, which is mounted \
                     noexec{message}",
                    folder.display()
                ),
                "name a folder from which programs may run with TMPDIR, or use `ebpf`",
            ),
            (false, false, _) => Unavailable::new(
                format!("the loader of process {pid} refused the library that times it{message}"),
                "fix what the loader names, or use `ebpf`",
            ),
            (false, true, true) => Unavailable::new(
                format!(
                    "process {pid} has loaded the library that times it, but not the memory that \
                     they share"
                ),
                "let the server read and write files of TMPDIR",
            ),
            (false, true, false) => Unavailable::new(
                format!(
                    "process {pid} runs without the library that times it: what starts it drops \
                     LD_PRELOAD, or it is linked statically or set-user-ID"
                ),
                "name the server's own executable as `binary`, or use `ebpf`",
            ),
        })
    }

    /// The server's counts so far, without disturbing it.
    pub fn snapshot(&self) -> Snapshot {
        self.reader.snapshot()
    }
}

/// The loader's line about the library in a server's output.
fn loader_message(printed: &str) -> Option<&str> {
    printed.lines().map(str::trim).find(|line| line.contains(FILE_NAME))
}

/// Removes the folders of ended processes.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        let Some(owner) = owner.and_then(|owner| owner.parse::<u32>().ok()) else { continue };
        if !Path::new(&format!("/proc/{owner}")).exists() {
            // Another process may remove it first.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explains_a_missing_preload() {
        let tap = Tap::prepare().unwrap();
        let why = tap.watches(std::process::id(), "ready").unwrap_err();
        assert!(why.reason.contains("drops LD_PRELOAD"), "{why}");
        let printed = format!(
            "hello\nERROR: ld.so: object '/x/{FILE_NAME}' from LD_PRELOAD cannot be preloaded (wrong ELF class): ignored.\n"
        );
        let why = tap.watches(std::process::id(), &printed).unwrap_err();
        assert!(why.reason.contains("wrong ELF class"), "{why}");
    }

    #[test]
    fn sweep_removes_only_folders_of_dead_processes() {
        let parent = tempfile::tempdir().unwrap();
        let dead = parent.path().join("kvmeter-tap-4000000000-x");
        let living = parent.path().join(format!("kvmeter-tap-{}-x", std::process::id()));
        let other = parent.path().join("kvmeter-tap-x");
        for folder in [&dead, &living, &other] {
            fs::create_dir(folder).unwrap();
        }
        sweep(parent.path());
        assert_eq!((dead.exists(), living.exists(), other.exists()), (false, true, true));
    }
}
