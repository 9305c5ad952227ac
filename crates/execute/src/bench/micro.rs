//! A microbenchmark as a run: `kvmeter micro job` in a process of its own, so that a study measures
//! exactly what the command does.

use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use micro::job::{MicroJob, MicroOutcome};
use micro::window::{WindowEdge, WindowListener};
use study::PlannedMicro;

use crate::error::ExecuteError;

/// Maximum output of a bench, in bytes.
const MAX_OUTPUT: u64 = 64 << 20;
/// A bench that exceeds its own time by this has hung: DPDK alone may take a minute to start.
const GRACE: Duration = Duration::from_secs(180);
/// How often its end and a stop are checked.
const LOOK: Duration = Duration::from_millis(20);
/// How long a stopped bench may take to end its own server.
const ENDING: Duration = Duration::from_secs(10);
/// Exit code of the command for an invalid request.
const WRONG_REQUEST: i32 = 2;

/// Runs the command and returns its outcome; `edge` is called when its measured window opens and
/// closes. None where it was stopped.
///
/// # Errors
/// The error of the command, or that it hangs.
pub(super) fn run(
    planned: &PlannedMicro,
    program: Option<&OsString>,
    stop: &AtomicBool,
    edge: &mut dyn FnMut(WindowEdge),
) -> Result<Option<MicroOutcome>, ExecuteError> {
    let name = planned.name;
    let failed = |why: String| ExecuteError::Failed(format!("micro {name}: {why}"));
    let program = program.ok_or_else(|| failed("kvmeter cannot find its own executable".into()))?;
    let listener = WindowListener::new().map_err(|error| failed(error.to_string()))?;
    let window = Some(listener.name().to_owned());
    let job = serde_json::to_string(&MicroJob { bench: planned.bench.clone(), window })
        .map_err(|error| failed(error.to_string()))?;
    let mut child = Command::new(program)
        .args(["--quiet", "micro", "job", &job])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let (output, errors) = (text(child.stdout.take()), text(child.stderr.take()));
    let limit = Duration::from_secs_f64(planned.seconds) + GRACE;
    let Some(status) = wait(&mut child, limit, stop, &listener, edge).map_err(failed)? else {
        return Ok(None);
    };
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let receive = |from: Receiver<String>| from.recv_timeout(ENDING).unwrap_or_default();
    let (output, errors) = (receive(output), receive(errors));
    let words = errors.trim().trim_start_matches("error: ").to_owned();
    match status.code() {
        Some(0) => serde_json::from_str(&output)
            .map(Some)
            .map_err(|error| failed(format!("its answer cannot be read: {error}"))),
        Some(WRONG_REQUEST) => Err(ExecuteError::Request(format!("micro {name}: {words}"))),
        _ if words.is_empty() => Err(failed(status.to_string())),
        _ => Err(failed(words)),
    }
}

/// Waits for its end; None where it was stopped.
fn wait(
    child: &mut Child,
    limit: Duration,
    stop: &AtomicBool,
    listener: &WindowListener,
    edge: &mut dyn FnMut(WindowEdge),
) -> Result<Option<ExitStatus>, String> {
    let mut until = Instant::now() + limit;
    let mut stopped = false;
    loop {
        match child.try_wait() {
            Ok(Some(_)) if stopped => return Ok(None),
            Ok(Some(status)) => {
                // The last events may still be queued.
                while let Some(event) = listener.wait_for_edge(Duration::from_millis(1)) {
                    edge(event);
                }
                return Ok(Some(status));
            }
            Ok(None) => {}
            Err(error) => return Err(error.to_string()),
        }
        if !stopped && stop.load(Ordering::Relaxed) {
            // A terminal signals the child too; a stop of this process alone does not.
            stopped = true;
            until = Instant::now() + ENDING;
        }
        if Instant::now() > until {
            // Its own children end with it.
            let _ = child.kill();
            let _ = child.wait();
            return match stopped {
                true => Ok(None),
                false => Err(format!("it did not end within {:.0} s", limit.as_secs_f64())),
            };
        }
        if let Some(event) = listener.wait_for_edge(LOOK) {
            edge(event);
        }
    }
}

/// Reads a stream to its end in a thread.
fn text(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(stream) = stream {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            // An error ends the output early.
            let _ = stream.take(MAX_OUTPUT).read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    receiver
}
