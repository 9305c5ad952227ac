//! A command with an end: of time, and of what it may print.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::FleetError;

/// What a short command may print.
const MAX_OUTPUT: u64 = 1 << 20;
const LOOK: Duration = Duration::from_millis(10);

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
    let here = |error: std::io::Error| FleetError::Failed {
        host: host.to_owned(),
        what,
        why: error.to_string(),
    };
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        FleetError::Request(format!("`{program}` cannot be started: {error}; install it"))
    })?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        scope.spawn(move || {
            // A command that ends early does not read all of it; its exit code says why.
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(input);
            }
        });
        let stdout = scope.spawn(|| text(stdout));
        let stderr = scope.spawn(|| text(stderr));
        let begin = Instant::now();
        let status = loop {
            match child.try_wait().map_err(here)? {
                Some(status) => break status,
                None if begin.elapsed() > limit => {
                    let _ = child.kill();
                    let _ = child.wait();
                    let host = host.to_owned();
                    return Err(FleetError::TimedOut { host, what, limit });
                }
                None => thread::sleep(LOOK),
            }
        };
        let read = |text: thread::ScopedJoinHandle<'_, String>| text.join().unwrap_or_default();
        Ok(Printed { code: status.code(), stdout: read(stdout), stderr: read(stderr) })
    })
}

fn text(stream: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        let _ = stream.take(MAX_OUTPUT).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
