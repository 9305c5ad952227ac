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

/// A server that is wanted.
#[derive(Debug, Clone)]
pub struct LaunchRequest {
    pub program: &'static dyn Program,
    pub settings: ServerSettings,
    /// Added to kvmeter's own environment, such as `LD_PRELOAD` for the tap.
    pub environment: Vec<(String, String)>,
    /// A program and its arguments that stand before the server's own command and run it, such as
    /// a simulator. It must go on in the same process.
    pub prefix: Vec<OsString>,
    /// How long it may take until it answers.
    pub start_timeout: Duration,
    /// Raised, it is waited for no longer: neither for its start nor for its end.
    pub stop: Arc<AtomicBool>,
}

impl LaunchRequest {
    /// A server with nothing added to its environment and 10 s to come up.
    pub fn new(program: &'static dyn Program, settings: ServerSettings) -> Self {
        let patience = Duration::from_secs(10);
        let (environment, prefix) = (Vec::new(), Vec::new());
        let stop = Arc::default();
        LaunchRequest { program, settings, environment, prefix, start_timeout: patience, stop }
    }
}

/// A way to have a server run somewhere. [`Local`](super::Local) starts it on this machine;
/// another would start the same [`Order`] on another one.
pub trait Launcher {
    /// Of the study: `local`.
    fn name(&self) -> &'static str;

    /// Starts the server and waits until it answers.
    ///
    /// # Errors
    /// Why it did not; nothing is left behind then.
    fn start(&self, order: &LaunchRequest) -> Result<Launched, LaunchError>;
}

/// A server that runs, and everything that a result needs to know of it. Dropping it kills it.
#[derive(Debug)]
pub struct Launched {
    /// Of the study's table: `memcached`.
    pub program: &'static str,
    /// Where it answers.
    pub addresses: Vec<Address>,
    /// The process that listens, on the machine on which it runs.
    pub pid: u32,
    /// Name and version, as the executable says them: `memcached 1.6.18`.
    pub version: String,
    /// Everything that the executable says of its version; Redis names its allocator there.
    pub build: String,
    pub binary: PathBuf,
    /// All of them, in order, without the executable's name.
    pub arguments: Vec<String>,
    /// What was added to kvmeter's own environment, and what of that changes how a program is
    /// linked or allocates (`LD_*`, `MALLOC_*`, `GLIBC_TUNABLES`).
    pub environment: Vec<(String, String)>,
    /// The CPUs that it may run on, as a list: `0-3,8`.
    pub cpus: String,
    pub(super) handle: Box<dyn ServerHandle>,
}

/// How a [`Launcher`] keeps hold of a server; dropping it kills the server.
pub trait ServerHandle: fmt::Debug + Send {
    fn state(&self) -> ServerState;
    /// What it printed while it started.
    fn first_output(&self) -> String;
    /// The last lines that it printed, each on a line of its own; empty if there are none.
    fn last_output(&self) -> String;
    /// Asks it to end, and kills it after `limit`; gives how it ended and whether it had to be
    /// killed, or nothing if it was still there after another `limit`.
    fn end(&mut self, limit: Duration) -> Option<(ExitStatus, bool)>;
}

/// Whether a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    Runs,
    Ended(ExitStatus),
    /// What was started runs, but the process that listened is gone: it was a script's child,
    /// which alone knows how it ended.
    Lost,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerExit {
    pub status: ExitStatus,
    /// It had ended before it was asked to: what was measured last is in doubt.
    pub by_itself: bool,
    /// It did not end in time when asked, and was killed.
    pub killed: bool,
}

impl Launched {
    /// # Errors
    /// [`LaunchError::Died`], with its exit status and last words, if it ended.
    pub fn still_running(&self) -> Result<(), LaunchError> {
        let how = match self.handle.state() {
            ServerState::Runs => return Ok(()),
            ServerState::Ended(status) => status.to_string(),
            ServerState::Lost => "how is known only to the script that started it".to_owned(),
        };
        Err(LaunchError::Died {
            program: self.program,
            pid: self.pid,
            how,
            words: quoted(&self.handle.last_output()),
        })
    }

    /// What it printed while it started.
    pub fn first_output(&self) -> String {
        self.handle.first_output()
    }

    /// The last lines that it printed.
    pub fn last_output(&self) -> String {
        self.handle.last_output()
    }

    /// Asks it to end (SIGTERM), kills it after `limit`, and waits until nothing is left of it.
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

/// Last words as the end of an error message.
pub(super) fn quoted(words: &str) -> String {
    match words.is_empty() {
        true => "; it printed nothing".to_owned(),
        false => format!("; its last words:\n{words}"),
    }
}
