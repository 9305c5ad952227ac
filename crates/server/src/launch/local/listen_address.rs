//! Where a server is to listen, and whether that is free.

use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use model::Address;

use super::super::error::LaunchError;
use super::super::program::Program;
use super::super::settings::CommonSettings;
use super::reached;
use crate::watch::Process;

/// How long a place may stay taken before it is refused. A guard ends what a killed kvmeter left
/// within a fraction of it.
const TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// The place of one server.
#[derive(Debug)]
pub(super) struct ListenAddress {
    /// As the server is told.
    pub given: Address,
    /// As clients of this machine reach it.
    pub reached: Address,
    /// Whether kvmeter chose the port.
    pub chosen: bool,
}

impl ListenAddress {
    /// The place that the settings name, if nothing is there; else a free port. What is there is
    /// given a moment to go: after a kill, the guard is still ending the server that was left.
    pub fn choose(program: &dyn Program, common: &CommonSettings) -> Result<Self, LaunchError> {
        let limit = Instant::now() + TIMEOUT;
        loop {
            match ListenAddress::chosen_now(program, common) {
                Err(LaunchError::InUse { .. }) if Instant::now() < limit => thread::sleep(PAUSE),
                chosen => return chosen,
            }
        }
    }

    fn chosen_now(program: &dyn Program, common: &CommonSettings) -> Result<Self, LaunchError> {
        if let Some(path) = &common.socket {
            let given = Address::Unix(path.clone());
            // memcached would take away the socket of a server that runs.
            if path.symlink_metadata().is_ok() {
                return Err(in_use(program, &given, "socket"));
            }
            return Ok(ListenAddress { reached: given.clone(), given, chosen: false });
        }
        let tcp = |port| Address::Tcp { host: common.listen.to_string(), port };
        let asked = common.port.unwrap_or(0);
        let free = TcpListener::bind((common.listen, asked)).and_then(|held| held.local_addr());
        match free {
            Ok(address) => {
                let given = tcp(address.port());
                Ok(ListenAddress { reached: reached(&given), given, chosen: common.port.is_none() })
            }
            Err(error) => Err(refused(program, &tcp(asked), &error)),
        }
    }

    /// The file that is left behind by a server that is killed.
    pub fn socket(&self) -> Option<&Path> {
        match &self.given {
            Address::Unix(path) => Some(path),
            Address::Tcp { .. } => None,
        }
    }
}

fn refused(program: &dyn Program, address: &Address, error: &io::Error) -> LaunchError {
    let (key, why) = match error.kind() {
        ErrorKind::AddrInUse => return in_use(program, address, "port"),
        ErrorKind::AddrNotAvailable => ("listen", "no interface of this machine has it".to_owned()),
        ErrorKind::PermissionDenied => {
            ("port", "this user may not listen there; take one above 1023".to_owned())
        }
        _ => ("listen", error.to_string()),
    };
    LaunchError::CannotListen { program: program.name(), address: address.clone(), key, why }
}

fn in_use(program: &dyn Program, address: &Address, key: &'static str) -> LaunchError {
    let by = Process::listening_at(address)
        .map(|process| format!(" by pid {} ({})", process.pid(), process.name()));
    LaunchError::InUse {
        program: program.name(),
        address: address.clone(),
        key,
        otherwise: match (key, by.is_ok()) {
            ("socket", false) => "; if nothing listens there any more, remove the file",
            ("socket", true) => "",
            _ => ", then kvmeter takes a port that is free",
        },
        by: by.unwrap_or_default(),
    }
}
