use std::process::ExitStatus;
use std::time::Duration;

use model::Address;
use thiserror::Error;

/// An invalid setting. [`SettingError::key`] names it, so that errors can point into the study.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingError {
    #[error("`server.{program}` has no setting `{key}`; {hint}")]
    Unknown { program: &'static str, key: String, hint: String },
    #[error("`{key}` of `server.{program}` is given twice")]
    Twice { program: &'static str, key: String },
    #[error("`{key}` of `server.{program}` takes {takes}, not `{given}`")]
    Wrong { program: &'static str, key: &'static str, takes: String, given: String },
    #[error("`{key}` and `{other}` of `server.{program}` exclude each other; give one of them")]
    Together { program: &'static str, key: &'static str, other: &'static str },
    #[error("`arguments` of `server.{program}` contains `{argument}`; {instead}")]
    Argument { program: &'static str, argument: String, instead: String },
}

impl SettingError {
    /// The key of the study's table; of two that exclude each other, the one to leave out.
    pub fn key(&self) -> &str {
        match self {
            SettingError::Unknown { key, .. } | SettingError::Twice { key, .. } => key,
            SettingError::Wrong { key, .. } | SettingError::Together { other: key, .. } => key,
            SettingError::Argument { .. } => "arguments",
        }
    }
}

/// Why a server was not started, ended early, or could not be ended.
#[derive(Debug, Error)]
pub enum LaunchError {
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error("there is no server program `{name}`; {hint}")]
    NoSuchProgram { name: String, hint: String },
    #[error(
        "`{binary}` was not found; install the package `{package}`, \
         or name another executable with `binary` of `server.{program}`"
    )]
    NotInstalled { program: &'static str, binary: String, package: &'static str },
    #[error("`{binary}` could not be run: {why}; see `binary` of `server.{program}`")]
    CannotRun { program: &'static str, binary: String, why: String },
    #[error(
        "`{binary} {flag}` did not print the version of {program}, but `{output}`; \
         see `binary` of `server.{program}`"
    )]
    NoVersion { program: &'static str, binary: String, flag: &'static str, output: String },
    #[error(
        "{address} is in use{by}; end what listens there, or leave out `{key}` of \
         `server.{program}`{otherwise}"
    )]
    InUse {
        program: &'static str,
        address: Address,
        key: &'static str,
        /// ` by pid 7 (redis-server)`, if known.
        by: String,
        otherwise: &'static str,
    },
    #[error("cannot listen at {address}: {why}; change `{key}` of `server.{program}`")]
    CannotListen { program: &'static str, address: Address, key: &'static str, why: String },
    #[error("the server cannot be pinned: {why}; change `cpus` of `server.{program}`")]
    Cpus { program: &'static str, why: String },
    #[error("no folder for the server could be made: {why}; set TMPDIR to one that can be written")]
    Folder { why: String },
    #[error("the process that ends the server when kvmeter is killed could not be started: {why}")]
    Guard { why: String },
    #[error("{program} was stopped before it answered")]
    Stopped { program: &'static str },
    #[error("{program} ended ({status}) before it answered{remedy}{words}")]
    EndedEarly { program: &'static str, status: ExitStatus, remedy: String, words: String },
    #[error(
        "{program} went into the background, where kvmeter cannot control it, and was ended; \
         remove what makes it a daemon from `arguments` or `binary`{words}"
    )]
    Background { program: &'static str, words: String },
    #[error(
        "{program} did not answer at {address} within {} s{remedy}{words}",
        limit.as_secs_f64()
    )]
    Silent {
        program: &'static str,
        address: Address,
        limit: Duration,
        remedy: String,
        words: String,
    },
    #[error(
        "pid {pid} ({name}) answers at {address}, and kvmeter did not start it; leave out `port` \
         of `server.{program}`, and kvmeter takes a free one"
    )]
    OtherListener { program: &'static str, address: Address, pid: u32, name: String },
    /// Of a server on another machine.
    #[error("{why}")]
    Host { why: String, refused: bool },
    #[error("the cluster of {program} was not formed: {why}")]
    Cluster { program: &'static str, why: String },
    #[error("{program} runs, but not with `{key}` as it was given; change it{words}")]
    Unmet { program: &'static str, key: &'static str, words: String },
    #[error("{program} (pid {pid}) ended in the middle of the run: {how}{words}")]
    Died { program: &'static str, pid: u32, how: String, words: String },
    #[error("{program} (pid {pid}) was killed and had not ended {} s later", limit.as_secs_f64())]
    DoesNotEnd { program: &'static str, pid: u32, limit: Duration },
}

impl LaunchError {
    /// The key of the study's table that is to be changed, where the setting itself is invalid.
    pub fn key(&self) -> Option<&str> {
        match self {
            LaunchError::Setting(error) => Some(error.key()),
            _ => None,
        }
    }

    /// Whether the request was wrong, rather than its execution.
    pub fn is_request(&self) -> bool {
        matches!(
            self,
            LaunchError::Setting(_)
                | LaunchError::NoSuchProgram { .. }
                | LaunchError::NotInstalled { .. }
                | LaunchError::CannotListen { .. }
                | LaunchError::Cpus { .. }
                | LaunchError::InUse { .. }
                | LaunchError::Unmet { .. }
                | LaunchError::Host { refused: true, .. }
        )
    }
}
