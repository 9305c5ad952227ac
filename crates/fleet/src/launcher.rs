//! The extension point: how a command is started on another machine.

use std::fmt::Debug;
use std::process::Command;
use std::time::Instant;

use crate::error::FleetError;

/// Runs commands on hosts. A launcher only connects: folders, files, leases and progress are the
/// same for all of them.
pub trait Launcher: Debug + Send + Sync {
    /// A process of this machine that runs `script` by `sh` on a host, with its three standard
    /// streams connected to it and its exit code passed back. When the process here ends, however
    /// it ends, the script's standard input does.
    fn shell(&self, host: &str, script: &str) -> Command;

    /// Whether an exit code of [`Launcher::shell`] means that the host was not reached.
    fn is_unreachable(&self, code: Option<i32>) -> bool;

    /// The name or IP address under which other machines reach a host.
    ///
    /// # Errors
    /// It cannot be found out.
    fn address(&self, host: &str) -> Result<String, FleetError>;

    /// Gives back what it holds for a host: a connection, a pod.
    ///
    /// # Errors
    /// It cannot be given back; nothing else depends on it.
    fn release(&self, host: &str) -> Result<(), FleetError>;

    /// Why a host cannot be used any more, if a scheduler says so.
    fn why_lost(&self, _host: &str) -> Option<String> {
        None
    }

    /// When a scheduler takes the host away.
    fn ends_at(&self, _host: &str) -> Option<Instant> {
        None
    }

    /// Gives all hosts back to a scheduler.
    ///
    /// # Errors
    /// Something is left there; says what, and how it is removed by hand.
    fn release_all(&self) -> Result<(), FleetError> {
        Ok(())
    }
}
