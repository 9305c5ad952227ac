//! Who holds a lock: as the kernel has it, which nobody can write, and else as the file says.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use nix::sys::stat::{major, minor};
use nix::unistd::{SysconfVar, sysconf};

use crate::who::user_name;

/// A process that has a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// `None` where the kernel does not show it to this process.
    pub pid: Option<u32>,
    lives: bool,
    words: String,
}

impl Holder {
    pub(super) fn of(file: &mut File) -> Holder {
        let signed = signature(file);
        let pid = locked_by(file).or_else(|| signed.as_deref().and_then(pid_in));
        let lives = pid.is_some_and(|pid| proc(pid, "").exists());
        let words = match pid {
            Some(pid) if lives => words(pid),
            Some(pid) => format!("what process {pid} has started, which has ended"),
            None => signed.unwrap_or_else(|| "an unknown process".to_owned()),
        };
        Holder { pid, lives, words }
    }

    /// Whether the process that took it runs; what it has started may hold the lock after it.
    pub fn lives(&self) -> bool {
        self.lives
    }

    /// Where the process that took it is gone: any other that has the file open, as far as this
    /// user may see it.
    pub(super) fn or_whoever_has(self, file: &File) -> Holder {
        if self.lives {
            return self;
        }
        match opened_by(file) {
            Some(pid) => Holder { pid: Some(pid), lives: true, words: words(pid) },
            None => self,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

fn proc(pid: u32, file: &str) -> std::path::PathBuf {
    Path::new("/proc").join(pid.to_string()).join(file)
}

/// The process that `/proc/locks` names: `5: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`.
fn locked_by(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let (dev, ino) = (metadata.dev(), metadata.ino());
    let place = format!("{:02x}:{:02x}:{ino}", major(dev), minor(dev));
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        (words.next()? == "FLOCK").then_some(())?;
        let (pid, at) = (words.nth(2)?, words.next()?);
        (at == place).then(|| pid.parse().ok()).flatten()
    })
}

/// What a holder has written into the file: one line, of which no more than is needed.
fn signature(file: &mut File) -> Option<String> {
    let mut bytes = Vec::new();
    file.rewind().ok()?;
    file.take(120).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line: String = text.lines().next()?.chars().filter(|c| !c.is_control()).collect();
    (!line.is_empty()).then_some(line)
}

fn pid_in(line: &str) -> Option<u32> {
    let digits = line.strip_prefix("process ").unwrap_or(line);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// `process 4711 (kvmeter) of user alice, which runs since 2026-03-01 12:00:00 UTC`.
fn words(pid: u32) -> String {
    let mut words = format!("process {pid}");
    if let Some(name) = read(pid, "comm") {
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        words += &format!(" ({name})");
    }
    if let Some(uid) = owner(pid) {
        words += &format!(" of {}", user_name(uid));
    }
    if let Some(since) = started(pid) {
        words += &format!(", which runs since {}", shown(since));
    }
    words
}

fn read(pid: u32, file: &str) -> Option<String> {
    let bytes = fs::read(proc(pid, file)).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// The effective user of a process; the owner of its folder may be root in its place.
fn owner(pid: u32) -> Option<u32> {
    let status = read(pid, "status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn started(pid: u32) -> Option<Timestamp> {
    // After the name, which is in brackets and may hold anything, `starttime` is the 20th.
    let stat = read(pid, "stat")?;
    let ticks: i64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let boot = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    let a_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    Timestamp::from_second(boot.trim().parse::<i64>().ok()? + ticks / a_second.max(1)).ok()
}

pub(super) fn shown(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

/// Another process that has the file open.
fn opened_by(file: &File) -> Option<u32> {
    let ours = file.metadata().ok()?;
    let is_it = |fd: &fs::DirEntry| {
        fs::metadata(fd.path())
            .is_ok_and(|there| there.dev() == ours.dev() && there.ino() == ours.ino())
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        *pid != std::process::id()
            && fs::read_dir(proc(*pid, "fd"))
                .is_ok_and(|mut fds| fds.any(|fd| fd.as_ref().is_ok_and(is_it)))
    })
}
