//! A command with an end: of time, and of what it may print.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::FleetError;

/// What a short command may print.
const MAX_OUTPUT: usize = 1 << 20;
const LOOK: Duration = Duration::from_millis(10);
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
    let input = input.to_vec();
    thread::spawn(move || {
        // A command that ends early does not read all of it; its exit code says why.
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(&input);
        }
    });
    let (stdout, stderr) = (Text::read(stdout), Text::read(stderr));
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().map_err(here)? {
            Some(status) => break status,
            None if begin.elapsed() > limit => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(FleetError::TimedOut { host: host.to_owned(), what, limit });
            }
            None => thread::sleep(LOOK),
        }
    };
    Ok(Printed { code: status.code(), stdout: stdout.whole(), stderr: stderr.whole() })
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
        let kept = Arc::clone(&bytes);
        thread::spawn(move || {
            let Some(mut stream) = stream else { return };
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
