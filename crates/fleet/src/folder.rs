//! A folder of ours on a host, and the files in it.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::text::shell_word;

use crate::error::FleetError;
use crate::launcher::Launcher;
use crate::limited::{Printed, output, output_to_file};

/// Time for a short command on a host, the connection included.
const SHORT: Duration = Duration::from_secs(60);
/// Time for a file.
const LONG: Duration = Duration::from_secs(1800);
/// A slower connection is not waited for, in bytes a second.
const SLOWEST: u64 = 1 << 20;
/// The largest file that is collected.
const MAX_FILE: u64 = 1 << 36;

/// A folder that only its owner can enter, named by a random number.
#[derive(Debug, Clone)]
pub struct HostFolder {
    launcher: Arc<dyn Launcher>,
    host: String,
    path: String,
    /// As `uname -m` says it: `x86_64`, `aarch64`.
    pub architecture: String,
    /// It was not there before.
    pub is_new: bool,
}

impl HostFolder {
    /// Creates it, or finds it again. It lies in `base`, or in the user's cache folder.
    ///
    /// # Errors
    /// The host is not reached, or has no place for it.
    pub fn create(
        launcher: &Arc<dyn Launcher>,
        host: &str,
        base: Option<&str>,
        id: &str,
    ) -> Result<HostFolder, FleetError> {
        let base = match base {
            Some(base) => shell_word(base).into_owned(),
            None => "\"${XDG_CACHE_HOME:-$HOME/.cache}/kvmeter/fleet\"".to_owned(),
        };
        let script = format!(
            "set -eu; umask 077; base={base}; mkdir -p \"$base\"; cd \"$base\"; \
             if [ -d {id} ]; then known=known; else mkdir {id}; known=new; fi; \
             [ -O {id} ]; cd {id}; pwd -P; uname -m; echo $known"
        );
        let printed = run(&**launcher, host, &script, io::empty(), SHORT, "creating a folder")?;
        let mut lines = printed.stdout.lines();
        let (Some(path), Some(architecture), Some(known)) =
            (lines.next(), lines.next(), lines.next())
        else {
            return Err(FleetError::Failed {
                host: host.to_owned(),
                what: "creating a folder",
                why: format!(
                    "it printed {:?}",
                    printed.stdout.chars().take(200).collect::<String>()
                ),
            });
        };
        Ok(HostFolder {
            launcher: Arc::clone(launcher),
            host: host.to_owned(),
            path: path.to_owned(),
            architecture: architecture.to_owned(),
            is_new: known == "new",
        })
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn launcher(&self) -> &Arc<dyn Launcher> {
        &self.launcher
    }

    /// A script that begins in the folder.
    pub fn within(&self, script: &str) -> String {
        format!("cd {} && {script}", shell_word(&self.path))
    }

    /// The first line that a short command prints; None if it fails.
    ///
    /// # Errors
    /// The host is not reached.
    pub fn first_line(&self, script: &str) -> Result<Option<String>, FleetError> {
        self.first_line_within(script, SHORT)
    }

    fn first_line_within(
        &self,
        script: &str,
        limit: Duration,
    ) -> Result<Option<String>, FleetError> {
        let command = self.launcher.shell(&self.host, &self.within(script));
        let printed = output(command, io::empty(), limit, &self.host, "asking")?;
        self.reached(&printed)?;
        let line = printed.stdout.lines().next().map(str::to_owned);
        Ok(line.filter(|_| printed.code == Some(0)))
    }

    /// The host's clock minus this machine's in seconds, and the bound of its error: half of the
    /// time that the question took.
    ///
    /// # Errors
    /// The host is not reached or tells no time.
    pub fn clock_offset(&self) -> Result<(f64, f64), FleetError> {
        let before = now_s();
        let begin = Instant::now();
        let line = self.first_line("date +%s.%N")?;
        let took = begin.elapsed().as_secs_f64();
        let theirs: Option<f64> = line.and_then(|line| line.trim().parse().ok());
        let Some(theirs) = theirs else {
            return Err(self.failed("reading its clock", "`date` told no time".to_owned()));
        };
        Ok((theirs - (before + took / 2.0), took / 2.0))
    }

    /// Puts bytes into a file of the folder; compares the checksum that the host computes.
    ///
    /// # Errors
    /// The host is not reached, is full, or has other bytes than were sent.
    pub fn put(&self, name: &str, bytes: &[u8], executable: bool) -> Result<(), FleetError> {
        let script = format!("{} && {}", receive(name), settle(name, executable, None));
        let sent = Cursor::new(bytes.to_vec());
        let sum = safe_file::sha256(bytes).map_err(|error| FleetError::Here(error.to_string()))?;
        self.send(&script, sent, &sum, LONG)
    }

    /// Copies a file of this machine into the folder, with its time of modification, below folders
    /// that are made where they lack; leaves one alone that is there with the same bytes.
    ///
    /// # Errors
    /// The file cannot be read here; as [`HostFolder::put`].
    pub fn put_file(&self, from: &Path, name: &str) -> Result<(), FleetError> {
        let here = |error: io::Error| FleetError::Here(format!("{}: {error}", from.display()));
        let mut file = File::open(from).map_err(here)?;
        let facts = file.metadata().map_err(here)?;
        let sum = safe_file::sha256(&mut file).map_err(here)?;
        file.rewind().map_err(here)?;
        let word = shell_word(name);
        let known = format!("[ -f {word} ] && sha256sum < {word}");
        let limit = LONG + Duration::from_secs(facts.len() / SLOWEST);
        let known = if self.is_new { None } else { self.first_line_within(&known, limit)? };
        if known.is_some_and(|line| line.split_whitespace().next() == Some(&sum)) {
            return Ok(());
        }
        let executable = facts.permissions().mode() & 0o100 != 0;
        let settle = settle(name, executable, facts.modified().ok());
        let script =
            format!("mkdir -p -- \"$(dirname -- {word})\" && {} && {settle}", receive(name));
        self.send(&script, file, &sum, limit)
    }

    /// Runs a script that receives `content` and prints the checksum of what it has.
    fn send(
        &self,
        script: &str,
        content: impl Read + Send + 'static,
        sum: &str,
        limit: Duration,
    ) -> Result<(), FleetError> {
        const WHAT: &str = "copying a file there";
        let script = self.within(&format!("umask 077 && {script}"));
        let printed = run(&*self.launcher, &self.host, &script, content, limit, WHAT)?;
        if printed.stdout.split_whitespace().next() != Some(sum) {
            let why = "the host has other bytes than were sent".to_owned();
            return Err(self.failed(WHAT, why));
        }
        Ok(())
    }

    /// Copies a file of the folder here, over what is at `to`; compares the checksum. False if the
    /// host has no such file.
    ///
    /// # Errors
    /// The host is not reached, the file grows beyond its limit or changes, or there is no space.
    pub fn get(&self, name: &str, to: &Path) -> Result<bool, FleetError> {
        const WHAT: &str = "collecting a file";
        let name = shell_word(name);
        let sum = format!("[ -f {name} ] || exit 3; sha256sum < {name}");
        let command = self.launcher.shell(&self.host, &self.within(&sum));
        let printed = output(command, io::empty(), LONG, &self.host, WHAT)?;
        if printed.code == Some(3) {
            return Ok(false);
        }
        let printed = self.ended_well(printed, WHAT)?;
        let theirs = printed.stdout.split_whitespace().next().unwrap_or_default();
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        let here = |error: io::Error| FleetError::Here(format!("{}: {error}", to.display()));
        let mut file =
            tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(here)?;
        let command = self.launcher.shell(&self.host, &self.within(&format!("cat {name}")));
        let printed = output_to_file(command, file.as_file(), MAX_FILE, LONG, &self.host, WHAT)?;
        self.ended_well(printed, WHAT)?;
        file.as_file_mut().rewind().map_err(here)?;
        if theirs != safe_file::sha256(file.as_file_mut()).map_err(here)? {
            return Err(self.failed(WHAT, "it changed, or its end was lost".to_owned()));
        }
        file.as_file().sync_all().map_err(here)?;
        file.persist(to).map_err(|error| here(error.error))?;
        Ok(true)
    }

    /// Removes the folder with all that is in it.
    ///
    /// # Errors
    /// The host is not reached, or keeps it.
    pub fn remove(&self) -> Result<(), FleetError> {
        let script = format!("rm -rf -- {}", shell_word(&self.path));
        run(&*self.launcher, &self.host, &script, io::empty(), LONG, "removing the folder")
            .map(drop)
    }

    fn failed(&self, what: &'static str, why: String) -> FleetError {
        FleetError::Failed { host: self.host.clone(), what, why }
    }

    fn reached(&self, printed: &Printed) -> Result<(), FleetError> {
        reached(&*self.launcher, &self.host, printed)
    }

    fn ended_well(&self, printed: Printed, what: &'static str) -> Result<Printed, FleetError> {
        ended_well(&*self.launcher, &self.host, printed, what)
    }
}

/// A script that writes its standard input beside the file.
fn receive(name: &str) -> String {
    format!("cat > {}.part", shell_word(name))
}

/// A script that prints the checksum of what was received, and makes it the file.
fn settle(name: &str, executable: bool, modified: Option<SystemTime>) -> String {
    let name = shell_word(name);
    let mode = if executable { "700" } else { "600" };
    let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let touch = since.map(|time| {
        let seconds = time.as_secs();
        // BusyBox takes whole seconds alone.
        format!(
            "{{ touch -d @{seconds}.{:09} {name}.part 2>/dev/null || \
             touch -d @{seconds} {name}.part; }} && ",
            time.subsec_nanos()
        )
    });
    format!(
        "chmod {mode} {name}.part && {}sha256sum < {name}.part && mv -f {name}.part {name}",
        touch.unwrap_or_default()
    )
}

fn run(
    launcher: &dyn Launcher,
    host: &str,
    script: &str,
    input: impl Read + Send + 'static,
    limit: Duration,
    what: &'static str,
) -> Result<Printed, FleetError> {
    let printed = output(launcher.shell(host, script), input, limit, host, what)?;
    ended_well(launcher, host, printed, what)
}

fn reached(launcher: &dyn Launcher, host: &str, printed: &Printed) -> Result<(), FleetError> {
    if launcher.is_unreachable(printed.code) {
        let why = launcher.why_lost(host).unwrap_or_else(|| last_line(&printed.stderr).to_owned());
        let why = format!("not reached: {why}");
        return Err(FleetError::Unreachable { host: host.to_owned(), why });
    }
    Ok(())
}

fn ended_well(
    launcher: &dyn Launcher,
    host: &str,
    printed: Printed,
    what: &'static str,
) -> Result<Printed, FleetError> {
    reached(launcher, host, &printed)?;
    if printed.code != Some(0) {
        let why = last_line(&printed.stderr).to_owned();
        return Err(FleetError::Failed { host: host.to_owned(), what, why });
    }
    Ok(printed)
}

/// The last line that says something.
fn last_line(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim()
}

fn now_s() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |since| since.as_secs_f64())
}
