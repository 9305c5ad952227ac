//! Runs the command again in a process of its own where it loads a plug-in: a crash there then has
//! somebody who says what happened. No operation costs more for it.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus};

use anyhow::Context;
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use store::StoreUrl;

use crate::flags::machine::this_program;

/// Holds the process id of the parent in the process of its own.
const VARIABLE: &str = "KVMETER_OWN_PROCESS_OF";

/// Holds the process id of `kvmeter leased` in the command that it runs.
pub const LEASED_BY: &str = "KVMETER_LEASED_BY";

/// Has the kernel send this command SIGTERM when the `kvmeter leased` that runs it is killed.
///
/// # Errors
/// The parent has ended already.
pub fn end_with_lease() -> anyhow::Result<()> {
    match std::env::var(LEASED_BY).ok().and_then(|id| id.parse().ok()) {
        // The process of a plug-in has another parent, which passes the signal on.
        Some(parent) if std::env::var_os(VARIABLE).is_none() => end_with(parent, Signal::TERM),
        _ => Ok(()),
    }
}

/// Runs this command line in a process of its own if it loads a plug-in that is not trusted, and
/// returns that process's exit code.
///
/// # Errors
/// The process cannot be started, or was ended by a signal.
pub fn run(plugin: Option<StoreUrl>) -> anyhow::Result<Option<ExitCode>> {
    let Some(plugin) = plugin.filter(|url| !is_trusted(url)) else { return Ok(None) };
    if let Some(parent) = std::env::var(VARIABLE).ok().and_then(|id| id.parse().ok()) {
        return end_with(parent, Signal::KILL).map(|()| None);
    }
    // Before the child, so that no signal is lost between the two.
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals cannot be handled")?;
    let mut command = Command::new(this_program()?);
    command.args(std::env::args_os().skip(1)).env(VARIABLE, std::process::id().to_string());
    // A terminal sends its signals to the parent alone, which passes each on once.
    let mut child = command.process_group(0).spawn().context("no process for the plug-in")?;
    if let Some(id) = pid(&child) {
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    let _ = kill_process(id, signal);
                }
            }
        });
    }
    let status = child.wait().context("the process of the plug-in cannot be waited for")?;
    exit_code(&plugin, status).map(Some)
}

fn is_trusted(url: &StoreUrl) -> bool {
    url.options.iter().any(|(name, value)| name == "trusted" && value == "yes")
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id().try_into().ok()?)
}

/// Ends this process with its parent, whatever ends that.
fn end_with(parent: i32, signal: Signal) -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(signal))
        .context("this process cannot be bound to its parent")?;
    // The parent may have ended before.
    anyhow::ensure!(
        getppid().is_some_and(|now| now.as_raw_nonzero().get() == parent),
        "the process that started this one has ended"
    );
    Ok(())
}

fn exit_code(plugin: &StoreUrl, status: ExitStatus) -> anyhow::Result<ExitCode> {
    if let Some(code) = status.code() {
        return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)));
    }
    let signal = status.signal().unwrap_or_default();
    let name = match signal {
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        _ => "a signal",
    };
    anyhow::bail!(
        "{plugin}: its process was ended by {name} ({signal}): the plug-in crashed, or something \
         ended it; runs that were finished are kept, and `--resume` goes on with a study"
    )
}
