//! Commands with a limit of time and of output.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::FleetError;

/// Maximum output of a short command; the rest is dropped.
const MAX_OUTPUT: usize = 1 << 20;
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long the end of a stream is waited for when its command has ended.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// What a short command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Printed {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a command that prints little, with `input` as its standard input.
pub(crate) fn output(
    mut command: Command,
    input: impl Read + Send + 'static,
    limit: Duration,
    host: &str,
    what: &'static str,
) -> Result<Printed, FleetError> {
    command.stdin(Stdio::piped());
    let (status, stderr, stdout) = run(command, input, limit, (host, what), Text::read)?;
    Ok(Printed { code: status.code(), stdout: stdout.whole(), stderr: stderr.whole() })
}

/// Runs a command whose standard output becomes the content of a file of at most `most` bytes.
pub(crate) fn output_to_file(
    mut command: Command,
    file: &File,
    most: u64,
    limit: Duration,
    host: &str,
    what: &'static str,
) -> Result<Printed, FleetError> {
    let failed = |why: String| FleetError::Failed { host: host.to_owned(), what, why };
    let mut file = file.try_clone().map_err(|error| failed(error.to_string()))?;
    // The command writes to a pipe, so that it can never write more than is read of it.
    let copy = |stdout: ChildStdout| {
        let (end, copied) = channel();
        thread::spawn(move || end.send(io::copy(&mut stdout.take(most + 1), &mut file)));
        copied
    };
    command.stdin(Stdio::null());
    let (status, stderr, copied) = run(command, io::empty(), limit, (host, what), copy)?;
    match copied.recv_timeout(LAST_WAIT) {
        Ok(Ok(bytes)) if bytes > most => Err(failed(format!("it is larger than {most} B"))),
        Ok(Err(error)) => Err(failed(error.to_string())),
        // Where the stream stays open, the checksum says whether all of it has come.
        Ok(Ok(_)) | Err(_) => {
            Ok(Printed { code: status.code(), stdout: String::new(), stderr: stderr.whole() })
        }
    }
}

/// Runs a command until it ends or the limit has passed. Its standard output goes to `read`.
fn run<R>(
    mut command: Command,
    mut input: impl Read + Send + 'static,
    limit: Duration,
    (host, what): (&str, &'static str),
    read: impl FnOnce(ChildStdout) -> R,
) -> Result<(ExitStatus, Text, R), FleetError> {
    let program = command.get_program().to_string_lossy().into_owned();
    // What the command starts ends with it.
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| {
        FleetError::Request(format!("`{program}` cannot be started: {error}; install it"))
    })?;
    let failed = |why: String| FleetError::Failed { host: host.to_owned(), what, why };
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(failed("it has no streams".to_owned()));
    };
    if let Some(mut stdin) = child.stdin.take() {
        // A command that ends early does not read all of it; its exit code says why.
        thread::spawn(move || io::copy(&mut input, &mut stdin));
    }
    let (stdout, stderr) = (read(stdout), Text::read(stderr));
    let begin = Instant::now();
    let status: Result<ExitStatus, FleetError> = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Err(error) => break Err(failed(error.to_string())),
            Ok(None) if begin.elapsed() > limit => {
                break Err(FleetError::TimedOut { host: host.to_owned(), what, limit });
            }
            Ok(None) => thread::sleep(POLL_INTERVAL),
        }
    };
    if status.is_err() {
        kill_group(&child);
        let _ = child.wait();
    }
    Ok((status?, stderr, stdout))
}

/// Ends a command with all that it has started.
fn kill_group(child: &Child) {
    let group = child.id().try_into().ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// What a stream holds so far. A shared connection that stays may keep the stream of the command
/// that opened it, so that its end may not come.
struct Text {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Text {
    fn read(mut stream: impl Read + Send + 'static) -> Text {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (end, ended) = channel();
        let kept = Arc::clone(&bytes);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() < MAX_OUTPUT {
                    kept.extend_from_slice(&buffer[..read]);
                }
            }
            let _ = end.send(());
        });
        Text { bytes, ended }
    }

    /// All of it, of a command that has ended.
    fn whole(self) -> String {
        let _ = self.ended.recv_timeout(LAST_WAIT);
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_silent_command_ends_at_its_limit() {
        let begin = Instant::now();
        let error =
            output(sh("sleep 60"), io::empty(), Duration::from_millis(200), "m1", "waiting");
        assert_eq!(error.unwrap_err().to_string(), "m1: waiting: no end within 0 s");
        assert!(begin.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn endless_output_ends_at_its_limit_and_fills_no_disk() {
        let file = tempfile::tempfile().unwrap();
        let (most, limit) = (1 << 20, Duration::from_secs(60));
        // A shell that starts the program instead of becoming it.
        let error = output_to_file(sh("yes; true"), &file, most, limit, "m1", "collecting");
        assert_eq!(error.unwrap_err().to_string(), "m1: collecting: it is larger than 1048576 B");
        thread::sleep(Duration::from_millis(100));
        assert_eq!(file.metadata().unwrap().len(), most + 1);
        let printed =
            output(sh("yes & sleep 0.3; kill $!"), io::empty(), limit, "m1", "asking").unwrap();
        assert!(printed.stdout.len() <= MAX_OUTPUT + 4096);
    }

    #[test]
    fn what_a_command_started_ends_with_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let script = format!("sleep 60 & echo $! > {}; wait", file.path().display());
        let limit = Duration::from_millis(300);
        output(sh(&script), io::empty(), limit, "m1", "waiting").unwrap_err();
        let started = std::fs::read_to_string(file.path()).unwrap();
        // A process that has ended is a zombie until it is reaped; a signal takes a moment.
        let stat = format!("/proc/{}/stat", started.trim());
        let runs = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let begin = Instant::now();
        while runs() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{started}");
            thread::sleep(POLL_INTERVAL);
        }
    }
}
