//! Runs a program for its output, with a time limit.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use model::Unavailable;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How often a running program is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Longest output.
const MAX_OUTPUT: usize = 64 << 10;

/// The output of a program. An error if it fails, prints too much or takes longer than `limit`;
/// then it and its children are killed.
pub(super) fn run(words: &[String], limit: Duration) -> Result<String, Unavailable> {
    let name = words.join(" ");
    let Some((program, arguments)) = words.split_first() else {
        return Err(Unavailable::new("no program was given", "name one"));
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Of its own, so that a shell's children can be killed with it.
    command.process_group(0);
    let child = command.spawn().map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::NotFound => format!("install {program}, or give its full path"),
            _ => format!("make {program} a program that this user may run"),
        };
        Unavailable::new(format!("`{name}` could not be started: {error}"), remedy)
    })?;
    let answer = RunningProgram { child }.finish(limit);
    let (status, out, err) = answer.map_err(|why| match why {
        ProgramFailure::Late => Unavailable::new(
            format!("`{name}` did not end within {limit:?}"),
            "make it faster, or raise its limit where it has one",
        ),
        ProgramFailure::Flood => Unavailable::new(
            format!("`{name}` printed more than {} KiB", MAX_OUTPUT >> 10),
            "let it print only the answer",
        ),
        ProgramFailure::Io(error) => Unavailable::new(
            format!("`{name}` could not be read: {error}"),
            "run it by hand to see what it does",
        ),
    })?;
    if !status.success() {
        let message = err.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
        let message: String = message.trim().chars().take(120).collect();
        return Err(Unavailable::new(
            format!("`{name}` failed ({status}) and said: {message}"),
            "run it by hand until it answers",
        ));
    }
    Ok(out)
}

enum ProgramFailure {
    Late,
    Flood,
    Io(io::Error),
}

impl From<io::Error> for ProgramFailure {
    fn from(error: io::Error) -> Self {
        ProgramFailure::Io(error)
    }
}

/// A program that is killed with its children, unless it has ended.
struct RunningProgram {
    child: Child,
}

impl RunningProgram {
    fn finish(mut self, limit: Duration) -> Result<(ExitStatus, String, String), ProgramFailure> {
        let until = Instant::now() + limit;
        let mut out = Pipe::new(self.child.stdout.take())?;
        let mut err = Pipe::new(self.child.stderr.take())?;
        loop {
            // Checked before the pipes are read, so that all its output is in them.
            let status = self.child.try_wait()?;
            out.drain()?;
            err.drain()?;
            if let Some(status) = status {
                return Ok((status, out.text(), err.text()));
            }
            if Instant::now() >= until {
                return Err(ProgramFailure::Late);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // Children in the background would hold the pipes and the CPU; where there are none,
        // the group is gone and this does nothing.
        let group = Pid::from_raw(self.child.id() as i32);
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// One end of a pipe that is read without waiting.
struct Pipe<R> {
    end: Option<R>,
    bytes: Vec<u8>,
}

impl<R: Read + AsFd> Pipe<R> {
    fn new(end: Option<R>) -> Result<Self, ProgramFailure> {
        if let Some(end) = &end {
            fcntl(end.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(io::Error::from)?;
        }
        Ok(Pipe { end, bytes: Vec::new() })
    }

    fn drain(&mut self) -> Result<(), ProgramFailure> {
        let Some(end) = &mut self.end else { return Ok(()) };
        let mut part = [0; 4096];
        loop {
            match end.read(&mut part) {
                Ok(0) => {
                    self.end = None;
                    return Ok(());
                }
                Ok(read) => self.bytes.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
            if self.bytes.len() > MAX_OUTPUT {
                return Err(ProgramFailure::Flood);
            }
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn shell(script: &str, limit: Duration) -> Result<String, Unavailable> {
        run(&["sh".into(), "-c".into(), script.into()], limit)
    }

    #[test]
    fn returns_the_output() {
        assert_eq!(shell("echo 12.5", LIMIT).unwrap(), "12.5\n");
        // A child in the background holds the pipe, and is not waited for.
        let began = Instant::now();
        assert_eq!(shell("sleep 15 & echo 7", LIMIT).unwrap(), "7\n");
        assert!(began.elapsed() < Duration::from_secs(14));
    }

    #[test]
    fn reports_failures() {
        let why = shell("echo no sensor >&2; exit 3", LIMIT).unwrap_err();
        assert!(why.reason.contains("exit status: 3") && why.reason.contains("no sensor"), "{why}");
        let why = run(&["/no/such/program".into()], LIMIT).unwrap_err();
        // An emulator of system calls hears of the failure only by the child's exit status.
        if !why.reason.contains("exit status: 127") {
            assert!(why.reason.contains("could not be started"), "{why}");
            assert!(why.remedy.contains("full path"), "{why}");
        }
        let why = shell("yes", LIMIT).unwrap_err();
        assert!(why.reason.contains("more than 64 KiB"), "{why}");
    }

    #[test]
    fn a_slow_program_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!("sleep 100 & echo $! > {}; wait", file.display());
        // On a busy machine the shell may be killed before it has started its child.
        let child = [300, 3_000, 30_000].into_iter().find_map(|limit| {
            let why = shell(&script, Duration::from_millis(limit)).unwrap_err();
            assert!(why.reason.contains("not end within"), "{why}");
            std::fs::read_to_string(&file).ok()?.trim().parse::<i32>().ok()
        });
        let child = child.expect("the shell starts its child");
        // Killed at once; who adopts it may take a moment to bury it.
        let has_ended = || match std::fs::read_to_string(format!("/proc/{child}/stat")) {
            Ok(stat) => stat.contains(") Z ") || stat.contains(") X "),
            Err(_) => true,
        };
        let until = Instant::now() + LIMIT;
        while !has_ended() && Instant::now() < until {
            thread::sleep(POLL_INTERVAL);
        }
        assert!(has_ended());
    }
}
