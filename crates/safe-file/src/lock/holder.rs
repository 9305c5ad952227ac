//! The holder of a lock: from the kernel, or else from the file's own line.

use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use nix::sys::stat::{major, minor};
use nix::unistd::{SysconfVar, sysconf};

use crate::users::user_name;

/// A process that has a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// `None` where the kernel hides it from this process.
    pub pid: Option<u32>,
    lives: bool,
    words: String,
}

impl LockHolder {
    pub(super) fn of(file: &mut File) -> LockHolder {
        let signed = signature(file);
        let signed_pid = signed.as_deref().and_then(pid_in);
        // A file's line is not trusted and may name a pid of another namespace: it counts only if
        // the kernel shows that this process has the file open.
        let pid = locked_by(file).or_else(|| signed_pid.filter(|pid| has_open(*pid, file)));
        let lives = pid.or(signed_pid).is_some_and(|pid| proc(pid, "").exists());
        let words = match (pid, signed) {
            (Some(pid), _) if lives => words(pid),
            (Some(pid), _) => format!("a child of process {pid}, which has ended"),
            (None, Some(signed)) => format!("a process that calls itself \"{signed}\""),
            (None, None) => "an unknown process".to_owned(),
        };
        LockHolder { pid, lives, words }
    }

    /// Whether the process that took it runs; its children may hold the lock after it.
    pub fn lives(&self) -> bool {
        self.lives
    }

    /// If the process that took it has ended: any other that has the file open, as far as this user
    /// may see it.
    pub(super) fn or_current_holder(self, file: &File) -> LockHolder {
        if self.lives {
            return self;
        }
        match opened_by(file) {
            Some(pid) => LockHolder { pid: Some(pid), lives: true, words: words(pid) },
            None => self,
        }
    }
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

fn proc(pid: u32, file: &str) -> std::path::PathBuf {
    Path::new("/proc").join(pid.to_string()).join(file)
}

/// The process that `/proc/locks` names.
fn locked_by(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    named(&locks, metadata.dev(), metadata.ino())
}

/// The process in a line `5: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF` for this file.
fn named(locks: &str, dev: u64, ino: u64) -> Option<u32> {
    let locks_of_file = || {
        locks.lines().filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            (words.next()? == "FLOCK").then_some(())?;
            let (pid, at) = (words.nth(2)?.parse().ok()?, words.next()?);
            Some((pid, at))
        })
    };
    let place = format!("{:02x}:{:02x}:{ino}", major(dev), minor(dev));
    if let Some((pid, _)) = locks_of_file().find(|(_, at)| *at == place) {
        return Some(pid);
    }
    // File systems without a device of their own have several numbers: `stat` answers that of a
    // subvolume (btrfs) or a layer, the lines have that of the whole. Then the inode decides, if
    // only one line has it.
    if major(dev) != 0 {
        return None;
    }
    let (major, inode) = ("00:", format!(":{ino}"));
    let mut alike = locks_of_file().filter(|(_, at)| at.starts_with(major) && at.ends_with(&inode));
    let (pid, _) = alike.next()?;
    alike.all(|(other, _)| other == pid).then_some(pid)
}

/// The line that a holder has written into the file.
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
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| *pid != std::process::id() && has_open(*pid, file))
}

/// Whether a process has the file open by another descriptor; `false` where this user may not see
/// that.
fn has_open(pid: u32, file: &File) -> bool {
    let Ok(ours) = file.metadata() else { return false };
    let is_it = |fd: &fs::DirEntry| {
        let is_ours = pid == std::process::id()
            && fd.file_name().to_str() == Some(file.as_raw_fd().to_string().as_str());
        !is_ours
            && fs::metadata(fd.path())
                .is_ok_and(|there| there.dev() == ours.dev() && there.ino() == ours.ino())
    };
    fs::read_dir(proc(pid, "fd")).is_ok_and(|fds| fds.flatten().any(|fd| is_it(&fd)))
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::makedev;

    use super::*;

    #[test]
    fn matches_lock_lines_by_device_and_inode() {
        let locks = "1: POSIX  ADVISORY  WRITE 1 00:1f:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 12 fe:00:77 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 99 00:1f:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13 00:1f:77 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 14 00:1f:78 0 EOF\n\
                     5: FLOCK  ADVISORY  WRITE 15 00:20:78 0 EOF\n\
                     6: FLOCK  ADVISORY  WRITE 16 fe:00:177 0 EOF\n";
        assert_eq!(named(locks, makedev(0xfe, 0), 77), Some(12));
        assert_eq!(named(locks, makedev(0xfe, 1), 77), None);
        assert_eq!(named(locks, makedev(0, 0x1f), 77), Some(13));
        assert_eq!(named(locks, makedev(0, 0x2a), 77), Some(13));
        assert_eq!(named(locks, makedev(0, 0x20), 78), Some(15));
        assert_eq!(named(locks, makedev(0, 0x2a), 78), None, "it could be either");
        assert_eq!(named(locks, makedev(0, 0x2a), 177), None);
    }

    #[test]
    fn unverified_signature_is_quoted() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let holder_of = |text: &str| {
            fs::write(path.path(), text).unwrap();
            LockHolder::of(&mut File::open(path.path()).unwrap())
        };
        let holder = holder_of("process 4194304000 of user root since ever\x1b[2J\n");
        let words = "a process that calls itself \"process 4194304000 of user root since ever[2J\"";
        assert_eq!((holder.to_string().as_str(), holder.pid), (words, None));
        assert_eq!(holder_of("").to_string(), "an unknown process");
    }
}
