//! Commands with a limit of time and of output.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

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
    input: &[u8],
    limit: Duration,
    host: &str,
    what: &'static str,
) -> Result<Printed, FleetError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    run(command, input, limit, (host, what), || Ok(()))
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
    let stdout = file.try_clone().map_err(|error| failed(error.to_string()))?;
    command.stdin(Stdio::null()).stdout(stdout);
    let check = || {
        let bytes = file.metadata().map_err(|error| failed(error.to_string()))?.len();
        if bytes > most {
            return Err(failed(format!("it is larger than {most} B")));
        }
        Ok(())
    };
    let printed = run(command, b"", limit, (host, what), check)?;
    check()?;
    Ok(printed)
}

/// Runs a command until it ends, `check` fails or the limit has passed.
fn run(
    mut command: Command,
    input: &[u8],
    limit: Duration,
    (host, what): (&str, &'static str),
    check: impl Fn() -> Result<(), FleetError>,
) -> Result<Printed, FleetError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(|error| {
        FleetError::Request(format!("`{program}` cannot be started: {error}; install it"))
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        // A command that ends early does not read all of it; its exit code says why.
        thread::spawn(move || stdin.write_all(&input));
    }
    let (stdout, stderr) = (Text::read(child.stdout.take()), Text::read(child.stderr.take()));
    let begin = Instant::now();
    let status: Result<ExitStatus, FleetError> = loop {
        let ended = child.try_wait().map_err(|error: io::Error| FleetError::Failed {
            host: host.to_owned(),
            what,
            why: error.to_string(),
        });
        match (ended, check()) {
            (Ok(Some(status)), _) => break Ok(status),
            (Err(error), _) | (_, Err(error)) => break Err(error),
            _ if begin.elapsed() > limit => {
                break Err(FleetError::TimedOut { host: host.to_owned(), what, limit });
            }
            _ => thread::sleep(POLL_INTERVAL),
        }
    };
    if status.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    Ok(Printed { code: status?.code(), stdout: stdout.whole(), stderr: stderr.whole() })
}

/// What a stream holds so far. A shared connection that stays may keep the stream of the command
/// that opened it, so that its end may not come.
struct Text {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Text {
    fn read(stream: Option<impl Read + Send + 'static>) -> Text {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (end, ended) = channel();
        if let Some(mut stream) = stream {
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
        }
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
        let error = output(sh("sleep 60"), b"", Duration::from_millis(200), "m1", "waiting");
        assert_eq!(error.unwrap_err().to_string(), "m1: waiting: no end within 0 s");
        assert!(begin.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn endless_output_ends_at_its_limit() {
        let file = tempfile::tempfile().unwrap();
        let (most, limit) = (1 << 20, Duration::from_secs(60));
        let error = output_to_file(sh("yes"), &file, most, limit, "m1", "collecting");
        assert_eq!(error.unwrap_err().to_string(), "m1: collecting: it is larger than 1048576 B");
        let printed = output(sh("yes & sleep 0.3; kill $!"), b"", limit, "m1", "asking").unwrap();
        assert!(printed.stdout.len() <= MAX_OUTPUT + 4096);
    }
}
