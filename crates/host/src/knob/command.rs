//! Runs a command while knobs are turned.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::error::KnobError;
use super::turned::TurnedKnobs;

const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long a command may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a command to its end and returns its exit code as a shell would: 128 plus the signal's
/// number if a signal ended it. When `stop` is set the command gets SIGTERM, and SIGKILL ten
/// seconds later. If a knob has no effect, that is an error and nothing is run. The knobs stay
/// turned until the guard is dropped.
pub fn run_under(
    turned: &mut TurnedKnobs,
    command: &[String],
    stop: &AtomicBool,
) -> Result<u8, KnobError> {
    turned.check_effect()?;
    let Some((program, args)) = command.split_first() else { return Ok(0) };
    let failed = |error: std::io::Error| KnobError::Command {
        command: program.clone(),
        why: error.to_string(),
    };
    let mut child = Command::new(program).args(args).spawn().map_err(failed)?;
    let status = wait(&mut child, stop).map_err(failed)?;
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => 128 + signal.unwrap_or(0) as u8,
    })
}

fn wait(child: &mut Child, stop: &AtomicBool) -> std::io::Result<ExitStatus> {
    let mut terminated_at: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match terminated_at {
            None if stop.load(Ordering::Relaxed) => {
                // The child is not reaped yet, so its number is still valid.
                let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
                terminated_at = Some(Instant::now());
            }
            Some(since) if since.elapsed() > GRACE => {
                child.kill()?;
                return child.wait();
            }
            _ => {}
        }
        thread::sleep(POLL_INTERVAL);
    }
}
