//! Runs a command of kvmeter for a coordinator on another machine, and ends it with its lease.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use model::Span;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::exit::{ExitOutcome, request};
use crate::flags::machine::this_program;
use crate::interrupt::stop_flag;
use crate::output::write_stderr;
use crate::own_process::LEASED_BY;

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time between SIGTERM and SIGKILL, in which the command restores knobs and ends its servers.
const GRACE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub struct LeasedArgs {
    /// The command is ended when standard input is silent for so long, or closed
    #[arg(long, value_name = "TIME")]
    pub lease: Span,
    /// A verb with its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

pub fn run(args: &LeasedArgs) -> anyhow::Result<ExitOutcome> {
    let Span(lease) = args.lease;
    if !(Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&lease) {
        return Err(request("--lease: is between 1s and 24h"));
    }
    let stop = stop_flag()?;
    let mut command = Command::new(this_program()?);
    command.args(&args.command).env(LEASED_BY, std::process::id().to_string());
    // What ends this process's group must not end the command before it has restored the machine.
    command.stdin(Stdio::null()).process_group(0);
    let mut child = command.spawn().context("the command cannot be started")?;
    let renewed = watch_stdin();
    let mut terminated = None;
    loop {
        if let Some(status) = child.try_wait().context("the command cannot be waited for")? {
            let code = match status.code() {
                Some(code) => code,
                // It had nothing to finish.
                None if terminated.is_some() => return Ok(ExitOutcome::Invalid),
                None => 128 + status.signal().unwrap_or_default(),
            };
            return Ok(ExitOutcome::Code(u8::try_from(code).unwrap_or(1)));
        }
        match terminated {
            None => {
                if let Some(why) = ended(&renewed, lease, &stop) {
                    write_stderr(&format!("{why}: the command is ended"));
                    signal(&child, Signal::TERM);
                    terminated = Some(Instant::now());
                }
            }
            Some(since) if since.elapsed() > GRACE => {
                if let Some(id) = id(&child) {
                    let _ = kill_process_group(id, Signal::KILL);
                }
            }
            Some(_) => {}
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// When the last byte came; None once standard input is closed.
type Renewed = Arc<Mutex<Option<Instant>>>;

fn watch_stdin() -> Renewed {
    let renewed = Arc::new(Mutex::new(Some(Instant::now())));
    let seen = Arc::clone(&renewed);
    thread::spawn(move || {
        let (mut stdin, mut buffer) = (std::io::stdin().lock(), [0; 64]);
        loop {
            let open = matches!(stdin.read(&mut buffer), Ok(1..));
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = open.then(Instant::now);
            if !open {
                return;
            }
        }
    });
    renewed
}

/// Why the lease has ended.
fn ended(renewed: &Renewed, lease: Duration, stop: &AtomicBool) -> Option<String> {
    if stop.load(Ordering::Relaxed) {
        return Some("a signal".to_owned());
    }
    match *renewed.lock().unwrap_or_else(PoisonError::into_inner) {
        None => Some("the coordinator has ended".to_owned()),
        Some(at) if at.elapsed() > lease => {
            Some(format!("the coordinator was silent for {}", Span(lease)))
        }
        Some(_) => None,
    }
}

fn id(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id().try_into().ok()?)
}

fn signal(child: &Child, signal: Signal) {
    if let Some(id) = id(child) {
        let _ = kill_process(id, signal);
    }
}
