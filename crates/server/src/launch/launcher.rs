use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use model::Address;

use super::error::LaunchError;
use super::program::Program;
use super::settings::ServerSettings;

/// A server to start.
#[derive(Debug, Clone)]
pub struct LaunchRequest {
    pub program: &'static dyn Program,
    pub settings: ServerSettings,
    /// Its number among the processes of one server, counted from 0.
    pub process: usize,
    /// Added to kvmeter's own environment, such as `LD_PRELOAD` for the tap.
    pub environment: Vec<(String, String)>,
    /// A program and its arguments that run the server's command, such as a simulator. It must
    /// execute it in the same process.
    pub prefix: Vec<OsString>,
    /// Timeout of the start.
    pub start_timeout: Duration,
    /// Cancels waiting for its start and for its end.
    pub stop: Arc<AtomicBool>,
}

impl LaunchRequest {
    /// A server with nothing added to its environment and 10 s to come up.
    pub fn new(program: &'static dyn Program, settings: ServerSettings) -> Self {
        let start_timeout = Duration::from_secs(10);
        let (environment, prefix) = (Vec::new(), Vec::new());
        let stop = Arc::default();
        LaunchRequest { program, settings, process: 0, environment, prefix, start_timeout, stop }
    }
}

/// Starts servers somewhere: [`LocalLauncher`](super::LocalLauncher) on this machine.
pub trait Launcher: fmt::Debug + Send + Sync {
    /// The name in a study: `local`.
    fn name(&self) -> &'static str;

    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    /// Why it did not start; nothing is left behind.
    fn start(&self, request: &LaunchRequest) -> Result<Launched, LaunchError>;
}

/// A running server, and everything that a result records about it. Dropping it kills it.
#[derive(Debug)]
pub struct Launched {
    /// The program's name in a study: `memcached`.
    pub program: &'static str,
    /// The addresses at which it answers.
    pub addresses: Vec<Address>,
    /// The process that listens, on the machine on which it runs.
    pub pid: u32,
    /// Name and version, as the executable prints them: `memcached 1.6.18`.
    pub version: String,
    /// The whole version line; Redis names its allocator there.
    pub build: String,
    pub binary: PathBuf,
    /// All arguments, in order, without the executable's name.
    pub arguments: Vec<String>,
    /// Variables added to kvmeter's own environment, and inherited ones that change how a program
    /// is linked or allocates (`LD_*`, `MALLOC_*`, `GLIBC_TUNABLES`).
    pub environment: Vec<(String, String)>,
    /// The CPUs that it may run on, as a list: `0-3,8`.
    pub cpus: String,
    pub handle: Box<dyn ServerHandle>,
}

/// A [`Launcher`]'s handle on a server; dropping it kills the server.
pub trait ServerHandle: fmt::Debug + Send {
    fn state(&self) -> ServerState;
    /// Its output during the start.
    fn first_output(&self) -> String;
    /// The last lines of its output; empty if there are none.
    fn last_output(&self) -> String;
    /// Terminates it, and kills it after `limit`. Returns its status and whether it had to be
    /// killed, or `None` if it still runs after another `limit`.
    fn end(&mut self, limit: Duration) -> Option<(ExitStatus, bool)>;
}

/// Whether a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    Runs,
    Ended(ExitStatus),
    /// The started script runs, but its child that listened has ended with an unknown status.
    Lost,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerExit {
    pub status: ExitStatus,
    /// It ended before it was terminated: the last measurement is in doubt.
    pub by_itself: bool,
    /// It did not terminate in time, and was killed.
    pub killed: bool,
}

impl Launched {
    /// # Errors
    /// [`LaunchError::Died`], with its exit status and last output, if it ended.
    pub fn still_running(&self) -> Result<(), LaunchError> {
        let how = match self.handle.state() {
            ServerState::Runs => return Ok(()),
            ServerState::Ended(status) => status.to_string(),
            ServerState::Lost => "only the script that started it knows how".to_owned(),
        };
        Err(LaunchError::Died {
            program: self.program,
            pid: self.pid,
            how,
            words: quoted(&self.handle.last_output()),
        })
    }

    /// Its output during the start.
    pub fn first_output(&self) -> String {
        self.handle.first_output()
    }

    /// The last lines of its output.
    pub fn last_output(&self) -> String {
        self.handle.last_output()
    }

    /// Terminates it (SIGTERM), kills it after `limit`, and waits for its end.
    ///
    /// # Errors
    /// [`LaunchError::DoesNotEnd`] if even the kill had no effect within another `limit`.
    pub fn end(mut self, limit: Duration) -> Result<ServerExit, LaunchError> {
        let by_itself = self.handle.state() != ServerState::Runs;
        match self.handle.end(limit) {
            Some((status, killed)) => Ok(ServerExit { status, by_itself, killed }),
            None => Err(LaunchError::DoesNotEnd { program: self.program, pid: self.pid, limit }),
        }
    }
}

/// The last output as the end of an error message.
pub(super) fn quoted(words: &str) -> String {
    match words.is_empty() {
        true => "; it printed nothing".to_owned(),
        false => format!("; its last output:\n{words}"),
    }
}
