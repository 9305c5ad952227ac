//! Servers on this machine.

mod binary;
mod guard;
mod listen_address;
mod output;
mod readiness;
mod server_process;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use model::Address;
use nix::sys::signal::Signal;

use self::binary::Binary;
use self::guard::Guard;
use self::listen_address::ListenAddress;
use self::output::Output;
use self::server_process::{ServerProcess, SpawnError};
use super::error::LaunchError;
use super::launcher::{LaunchRequest, Launched, Launcher, ServerHandle, ServerState, quoted};
use super::program::{LaunchContext, Program};
use super::settings::{CommonSettings, GivenSettings};
use crate::watch::Process;

/// A free port may be taken by another process before the server has it.
const PORTS_TRIED: usize = 3;

/// Marks are created and inherited one at a time, so that no server inherits another's.
static STARTING: Mutex<()> = Mutex::new(());

/// The executable of a program on the PATH, which is not run.
///
/// # Errors
/// It is missing.
pub fn located(program: &dyn Program) -> Result<PathBuf, LaunchError> {
    binary::locate(program, None)
}

/// The same, and the version that it prints.
///
/// # Errors
/// It is missing, or is another program.
pub fn installed(program: &dyn Program) -> Result<(PathBuf, String), LaunchError> {
    Binary::find(program, None).map(|found| (found.path, found.version))
}

/// Starts a server as a process of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalLauncher;

impl Launcher for LocalLauncher {
    fn name(&self) -> &'static str {
        "local"
    }

    fn start(&self, request: &LaunchRequest) -> Result<Launched, LaunchError> {
        let program = request.program;
        let given = GivenSettings::new(program.name(), program.settings(), &request.settings)?;
        let common = CommonSettings::read(&given)?;
        program.check(&common.arguments)?;
        let has_bus = program.cluster(&given)?.is_some();
        let mut tried = 1;
        loop {
            let listen = ListenAddress::choose(program, &common, has_bus)?;
            let folder = output::folder()?;
            let context = LaunchContext { listen: &listen.given, folder: &folder };
            let mut arguments = program.arguments(&given, context)?;
            arguments.extend(common.arguments.iter().cloned());
            // Invalid settings are refused first.
            let binary = Binary::find(program, common.binary.as_deref())?;
            let attempt = LaunchAttempt {
                request,
                given: &given,
                common: &common,
                binary: &binary,
                listen: &listen,
            };
            match attempt.start(arguments, &folder) {
                Err(LaunchError::EndedEarly { words, .. })
                    if listen.chosen
                        && tried < PORTS_TRIED
                        && words.contains("ddress already in use") =>
                {
                    tried += 1;
                }
                outcome => return outcome,
            }
        }
    }
}

/// One attempt to start a server at one address.
struct LaunchAttempt<'a> {
    request: &'a LaunchRequest,
    given: &'a GivenSettings<'a>,
    common: &'a CommonSettings,
    binary: &'a Binary,
    listen: &'a ListenAddress,
}

impl LaunchAttempt<'_> {
    fn start(&self, arguments: Vec<String>, folder: &Path) -> Result<Launched, LaunchError> {
        let program = self.request.program;
        let mut running = self.spawn(&arguments, folder)?;
        let pid = self.answered(&running)?;
        if pid != running.process.pid() {
            running.listening = Process::of(pid).ok();
        }
        if let Some(key) = program.unmet(self.given, &running.output.first_output()) {
            let words = quoted(&running.last_output());
            return Err(LaunchError::Unmet { program: program.name(), key, words });
        }
        let cpus = affinity::of_process(pid)
            .map(|cpus| model::cpu_list::show(&cpus))
            .map_err(|error| self.cpus_error(error.to_string()))?;
        Ok(Launched {
            program: program.name(),
            addresses: vec![self.listen.reached.clone()],
            pid,
            version: self.binary.version.clone(),
            build: self.binary.build.clone(),
            binary: self.binary.path.clone(),
            arguments,
            environment: environment(&self.request.environment),
            cpus,
            handle: Box::new(running),
        })
    }

    fn cpus_error(&self, why: impl Into<String>) -> LaunchError {
        LaunchError::Cpus { program: self.request.program.name(), why: why.into() }
    }

    fn spawn(&self, arguments: &[String], folder: &Path) -> Result<RunningServer, LaunchError> {
        let program = self.request.program;
        let open_files = program.open_files(self.given)?;
        let mut command = self.binary.command(&self.request.prefix, open_files);
        command.args(arguments).envs(self.request.environment.iter().cloned());
        let alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let (guard, mark) = Guard::start(folder, self.listen.socket())
            .map_err(|error| LaunchError::Guard { why: error.to_string() })?;
        let output = Output::make(folder)?;
        command.current_dir(output.folder());
        output.attach(&mut command)?;
        let keeper = ServerProcess::start(command, self.common.cpus.as_deref(), mark.fd());
        let mark_id = mark.hand_over();
        drop(alone);
        match keeper {
            Ok(keeper) => {
                let stop = Arc::clone(&self.request.stop);
                Ok(RunningServer {
                    process: keeper,
                    guard: Some(guard),
                    mark_id,
                    listening: None,
                    output,
                    stop,
                })
            }
            Err(SpawnError::Cpus(why)) => Err(self.cpus_error(why)),
            Err(SpawnError::Start(error)) => Err(LaunchError::CannotRun {
                program: program.name(),
                binary: self.binary.path.display().to_string(),
                why: error.to_string(),
            }),
        }
    }

    /// Waits until the server answers; returns the pid of the process that does.
    fn answered(&self, running: &RunningServer) -> Result<u32, LaunchError> {
        let program = self.request.program;
        let began = Instant::now();
        let mut pause = Duration::from_millis(2);
        loop {
            if let Some(status) = running.process.ended() {
                return Err(self.ended_early(running, status));
            }
            // The process that answered may have ended: then it is checked once more.
            if readiness::answers(program, &self.listen.reached)
                && let Some(pid) = self.listener(running)?
                // A daemonised server answers although the started process has ended.
                && running.process.ended().is_none()
            {
                return Ok(pid);
            }
            if self.request.stop.load(Ordering::Relaxed) {
                return Err(LaunchError::Stopped { program: program.name() });
            }
            if began.elapsed() >= self.request.start_timeout {
                let words = running.output.last_output();
                return Err(LaunchError::Silent {
                    program: program.name(),
                    address: self.listen.reached.clone(),
                    limit: self.request.start_timeout,
                    remedy: remedy(program, &words),
                    words: quoted(&words),
                });
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// The process that listens at the address, if it is ours; not the started one where `binary`
    /// is a script that starts the server itself.
    fn listener(&self, running: &RunningServer) -> Result<Option<u32>, LaunchError> {
        let Ok(listener) = Process::listening_at(&self.listen.reached) else {
            // Not every machine shows it; if the started process has ended, the next check reports
            // it.
            return Ok(running.process.ended().is_none().then_some(running.process.pid()));
        };
        let pid = listener.pid();
        if pid == running.process.pid() || running.mark_id.is_on(pid) {
            return Ok(Some(pid));
        }
        if !listener.exists() {
            return Ok(None);
        }
        Err(LaunchError::OtherListener {
            program: self.request.program.name(),
            address: self.listen.reached.clone(),
            pid,
            name: listener.name().to_owned(),
        })
    }

    fn ended_early(&self, running: &RunningServer, status: ExitStatus) -> LaunchError {
        let program = self.request.program;
        let words = running.output.last_output();
        if status.success() && running.mark_id.is_anywhere() {
            return LaunchError::Background { program: program.name(), words: quoted(&words) };
        }
        LaunchError::EndedEarly {
            program: program.name(),
            status,
            remedy: remedy(program, &words),
            words: quoted(&words),
        }
    }
}

/// Inherited variables that change how the server is linked or allocates, then the added ones.
fn environment(added: &[(String, String)]) -> Vec<(String, String)> {
    let recorded = ["LD_", "MALLOC_", "GLIBC_TUNABLES"];
    let mut environment: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| recorded.iter().any(|prefix| name.starts_with(prefix)))
        .filter(|(name, _)| !added.iter().any(|(other, _)| other == name))
        .collect();
    environment.sort();
    environment.extend_from_slice(added);
    environment
}

fn remedy(program: &dyn Program, words: &str) -> String {
    program.remedy(words).map(|way| format!("; {way}")).unwrap_or_default()
}

/// A server process, killed when this is dropped.
#[derive(Debug)]
struct RunningServer {
    process: ServerProcess,
    /// `None` after the end.
    guard: Option<Guard>,
    mark_id: guard::MarkId,
    /// The process that listens, where it is a child of the one that was started.
    listening: Option<Process>,
    output: Output,
    /// The request's.
    stop: Arc<AtomicBool>,
}

impl ServerHandle for RunningServer {
    fn state(&self) -> ServerState {
        match self.process.ended() {
            Some(status) => ServerState::Ended(status),
            None if self.listening.as_ref().is_some_and(|process| !process.exists()) => {
                ServerState::Lost
            }
            None => ServerState::Runs,
        }
    }

    fn first_output(&self) -> String {
        self.output.first_output()
    }

    fn last_output(&self) -> String {
        self.output.last_output()
    }

    fn end(&mut self, limit: Duration) -> Option<(ExitStatus, bool)> {
        self.process.signal(Signal::SIGTERM);
        let outcome = match self.process.wait_unless(&self.stop, limit) {
            Some(status) => Some((status, false)),
            None => {
                self.process.signal(Signal::SIGKILL);
                self.process.wait(limit).map(|status| (status, true))
            }
        };
        // Processes that left the server's process group are ended by the guard.
        drop(self.guard.take());
        outcome
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if self.guard.is_some() {
            self.process.signal(Signal::SIGKILL);
            self.process.wait(Duration::from_secs(5));
        }
    }
}

/// The address at which a server that listens at `given` is reached.
fn reached(given: &Address) -> Address {
    match given {
        Address::Tcp { host, port } if host == "0.0.0.0" => {
            Address::Tcp { host: "127.0.0.1".to_owned(), port: *port }
        }
        Address::Tcp { host, port } if host == "::" => {
            Address::Tcp { host: "::1".to_owned(), port: *port }
        }
        other => other.clone(),
    }
}
