//! The user's own `ssh`, with its configuration, jump hosts and agent.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;
use std::time::Duration;

use model::text::shell_word;
use tempfile::TempDir;

use crate::error::FleetError;
use crate::launcher::Launcher;
use crate::limited::output;

/// How long a connection may take, and how long one may be silent before it counts as lost: three
/// unanswered questions, 10 s apart.
const CONNECT_S: u32 = 20;
const ALIVE_S: u32 = 10;
const ALIVE_COUNT: u32 = 3;
/// How long an idle shared connection stays after this process has ended without closing it.
const PERSIST_S: u32 = 60;
/// `ssh` ends with it when it could not connect.
const SSH_FAILED: i32 = 255;

/// Starts commands by `ssh`, over one connection a host.
#[derive(Debug)]
pub struct Ssh {
    /// Destination of each host by its name.
    destinations: BTreeMap<String, String>,
    /// Options before the destination, such as `-F FILE`.
    options: Vec<String>,
    /// Sockets of the shared connections; only this user can enter it.
    sockets: TempDir,
}

impl Ssh {
    /// # Errors
    /// There is no folder for the connections' sockets.
    pub fn new(
        destinations: BTreeMap<String, String>,
        options: Vec<String>,
    ) -> Result<Ssh, FleetError> {
        let sockets = tempfile::Builder::new()
            .prefix("kvmeter-ssh-")
            .tempdir()
            .map_err(|error| FleetError::Here(format!("no folder for connections: {error}")))?;
        Ok(Ssh { destinations, options, sockets })
    }

    fn command(&self, host: &str, more: &[&str]) -> Command {
        let socket = self.sockets.path().join("%C");
        let mut command = Command::new("ssh");
        command.args(["-T", "-o", "BatchMode=yes", "-o", "ControlMaster=auto"]);
        command.arg("-o").arg(format!("ControlPath={}", socket.display()));
        for option in [
            format!("ControlPersist={PERSIST_S}"),
            format!("ConnectTimeout={CONNECT_S}"),
            format!("ServerAliveInterval={ALIVE_S}"),
            format!("ServerAliveCountMax={ALIVE_COUNT}"),
        ] {
            command.args(["-o", &option]);
        }
        command.args(&self.options).args(more).arg("--");
        command.arg(self.destinations.get(host).map_or(host, String::as_str));
        command
    }
}

impl Launcher for Ssh {
    fn shell(&self, host: &str, script: &str) -> Command {
        let mut command = self.command(host, &[]);
        // The login shell of the user may be any.
        command.arg(format!("sh -c {}", shell_word(script)));
        command
    }

    fn is_unreachable(&self, code: Option<i32>) -> bool {
        code == Some(SSH_FAILED)
    }

    /// The `HostName` of the user's configuration.
    fn address(&self, host: &str) -> Result<String, FleetError> {
        const WHAT: &str = "reading the ssh configuration";
        let command = self.command(host, &["-G"]);
        let printed = output(command, io::empty(), Duration::from_secs(10), host, WHAT)?;
        let name = printed.stdout.lines().find_map(|line| line.strip_prefix("hostname "));
        name.map(|name| name.trim().to_owned()).ok_or_else(|| FleetError::Failed {
            host: host.to_owned(),
            what: WHAT,
            why: printed.stderr.trim().to_owned(),
        })
    }

    fn release(&self, host: &str) -> Result<(), FleetError> {
        let command = self.command(host, &["-O", "exit"]);
        output(command, io::empty(), Duration::from_secs(10), host, "closing the connection")
            .map(drop)
    }
}
