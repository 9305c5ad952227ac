//! A command that runs while knobs are turned.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::error::KnobError;
use super::turned::TurnedKnobs;

const LOOK: Duration = Duration::from_millis(10);
/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a command to its end and answers its exit code as a shell would: 128 and the signal's
/// number if one ended it. When `stop` is raised the command gets SIGTERM, and SIGKILL if it
/// goes on for ten seconds. A knob that is seen to have no effect is an error, and nothing is
/// run. The knobs stay turned until the guard goes.
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
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match asked {
            None if stop.load(Ordering::Relaxed) => {
                // It is our child and not waited for, so the number is still its own.
                let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
                asked = Some(Instant::now());
            }
            Some(since) if since.elapsed() > GRACE => {
                child.kill()?;
                return child.wait();
            }
            _ => {}
        }
        thread::sleep(LOOK);
    }
}
