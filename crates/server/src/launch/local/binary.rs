//! The server's executable and its version.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::super::error::LaunchError;
use super::super::program::Program;

/// A version is printed at once; a program that runs longer is the wrong one.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Binary {
    pub path: PathBuf,
    pub version: String,
    /// The whole line that names the version.
    pub build: String,
}

impl Binary {
    /// Finds the executable and runs it for its version.
    pub fn find(program: &dyn Program, given: Option<&Path>) -> Result<Self, LaunchError> {
        let path = locate(program, given)?;
        let cannot_run = |error: io::Error| LaunchError::CannotRun {
            program: program.name(),
            binary: path.display().to_string(),
            why: error.to_string(),
        };
        let printed = printed(&path, program.version_flag()).map_err(cannot_run)?;
        let line = printed.lines().find_map(|line| Some((line, program.version(line)?)));
        match line {
            Some((build, version)) => {
                let build = build.trim().to_owned();
                Ok(Binary { version, build, path })
            }
            None => Err(LaunchError::NoVersion {
                program: program.name(),
                binary: path.display().to_string(),
                flag: program.version_flag(),
                output: printed.lines().next().unwrap_or_default().chars().take(80).collect(),
            }),
        }
    }

    /// The command that runs it, after an optional prefix, which then starts with the program's
    /// limit of open files.
    pub fn command(&self, prefix: &[OsString], open_files: Option<u32>) -> Command {
        let Some((program, rest)) = prefix.split_first() else { return Command::new(&self.path) };
        let mut command = match open_files {
            None => Command::new(program),
            Some(files) => {
                let mut command = Command::new("sh");
                let script = format!("ulimit -Sn {files} && exec \"$@\"");
                command.args(["-c", &script, "sh"]).arg(program);
                command
            }
        };
        command.args(rest).arg(&self.path);
        command
    }
}

/// The path of a program's executable, which may be given.
pub(super) fn locate(program: &dyn Program, given: Option<&Path>) -> Result<PathBuf, LaunchError> {
    let name = given.unwrap_or(Path::new(program.binary()));
    on_path(name).ok_or_else(|| LaunchError::NotInstalled {
        program: program.name(),
        binary: name.display().to_string(),
        package: program.package(),
    })
}

/// The absolute path of an executable: a path as given, a name from the PATH.
fn on_path(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        // The server is started in another folder.
        return std::path::absolute(name).ok().filter(|path| path.exists());
    }
    let runs = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(&env::var_os("PATH")?)
        .filter_map(|folder| std::path::absolute(folder.join(name)).ok())
        .find(runs)
}

/// The executable's output with one argument, on stdout or stderr.
fn printed(path: &Path, argument: &str) -> io::Result<String> {
    // In memory: a full pipe would block the program, an open one the reader.
    let out = File::from(memfd_create(c"version", MFdFlags::MFD_CLOEXEC)?);
    let mut child = Command::new(path)
        .arg(argument)
        .stdin(Stdio::null())
        .stdout(out.try_clone()?)
        .stderr(out.try_clone()?)
        .process_group(0)
        .spawn()?;
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        if began.elapsed() >= LIMIT {
            killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL)?;
            child.wait()?;
            let why = format!("`{argument}` did not end within {} s", LIMIT.as_secs());
            return Err(io::Error::new(ErrorKind::TimedOut, why));
        }
        thread::sleep(Duration::from_millis(1));
    }
    let mut printed = vec![0; 4096];
    let length = out.read_at(&mut printed, 0)?;
    Ok(String::from_utf8_lossy(&printed[..length]).into_owned())
}
