//! The second line of defence: a small process that outlives kvmeter and ends its servers.
//!
//! The kernel's own way (a signal when the parent ends) is lost when a server changes its user or
//! forks into the background. The guard needs neither: every descendant of the server inherits one
//! end of a pipe, the mark, and the guard kills all processes with the mark when its own pipe to
//! kvmeter closes, however kvmeter ends. It is a shell, so that it shares no memory with the
//! measuring process.

use std::fs::{self, Metadata};
use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Arguments: the mark's number in the servers, a folder to remove, a socket to remove or
/// nothing. Standard input is the pipe to kvmeter, standard output the mark's other end.
/// `sleep` and `rm` are the only programs that it needs.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
while read -r _; do :; done
tries=0
while [ "$tries" -lt 100 ]; do
    left=
    for process in /proc/[0-9]*; do
        if [ "$process/fd/$1" -ef "/proc/$$/fd/1" ]; then
            left=yes
            kill -KILL "${process#/proc/}" 2>/dev/null
        fi
    done
    [ -z "$left" ] && break
    tries=$((tries + 1))
    sleep 0.05
done
rm -rf -- "$2"
[ -z "$3" ] || rm -f -- "$3"
"#;

/// The longest clean-up: 100 scans and the pauses between them.
const LIMIT: Duration = Duration::from_secs(20);

/// The guard process of a server. Dropping this makes it clean up and end.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
    /// Open as long as kvmeter runs and needs the server.
    alive_pipe: Option<PipeWriter>,
}

/// The end of a pipe that a server inherits, and no other program.
#[derive(Debug)]
pub(super) struct Mark(PipeWriter);

/// Identifies the mark of a process.
#[derive(Debug, Clone)]
pub(super) struct MarkId {
    fd: i32,
    device: u64,
    inode: u64,
}

impl Guard {
    /// Starts the guard; it watches all processes that inherit the mark.
    pub fn start(folder: &Path, socket: Option<&Path>) -> io::Result<(Guard, Mark)> {
        let (control, alive) = io::pipe()?;
        let (marks, mark) = io::pipe()?;
        let mark = Mark(mark);
        let process = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "kvmeter-guard"])
            .arg(mark.fd().as_raw_fd().to_string())
            .arg(folder)
            .args(socket)
            .stdin(Stdio::from(control))
            .stdout(Stdio::from(marks))
            .stderr(Stdio::null())
            // Without the tap or any other preloaded library.
            .env_remove("LD_PRELOAD")
            .current_dir("/")
            .process_group(0)
            .spawn()?;
        Ok((Guard { process, alive_pipe: Some(alive) }, mark))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.alive_pipe.take());
        let began = Instant::now();
        while let Ok(None) = self.process.try_wait() {
            if began.elapsed() >= LIMIT {
                // Not killed after the limit: it may still be ending processes.
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Mark {
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Closes kvmeter's own end, so that only the server is marked.
    pub fn hand_over(self) -> MarkId {
        let fd = self.0.as_raw_fd();
        // No file has inode zero.
        let (device, inode) = fs::metadata(format!("/proc/self/fd/{fd}"))
            .map(|pipe| (pipe.dev(), pipe.ino()))
            .unwrap_or_default();
        MarkId { fd, device, inode }
    }
}

impl MarkId {
    /// Whether a process descends from the started server.
    pub fn is_on(&self, pid: u32) -> bool {
        let same = |pipe: Metadata| (pipe.dev(), pipe.ino()) == (self.device, self.inode);
        fs::metadata(format!("/proc/{pid}/fd/{}", self.fd)).is_ok_and(same)
    }

    /// Whether any process has the mark.
    pub fn is_anywhere(&self) -> bool {
        let Ok(processes) = fs::read_dir("/proc") else { return false };
        processes
            .filter_map(Result::ok)
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .any(|pid| self.is_on(pid))
    }
}
