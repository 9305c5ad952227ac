//! A server's listen address, and whether it is free.

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

/// How long an address may stay in use before it is refused: a guard may still be ending the server
/// of a killed kvmeter.
const TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// The bus of a Redis cluster listens this far above the port.
const BUS_OFFSET: u16 = 10_000;

/// The listen address of one server.
#[derive(Debug)]
pub(super) struct ListenAddress {
    /// As given to the server.
    pub given: Address,
    /// As clients of this machine reach it.
    pub reached: Address,
    /// Whether kvmeter chose the port.
    pub chosen: bool,
}

impl ListenAddress {
    /// The address of the settings, if it is free; a free port where none is set. An address in use
    /// is retried for a moment: after a kill, the guard is still ending the old server. `has_bus` is
    /// whether the server takes the port of a cluster's bus too.
    pub fn choose(
        program: &dyn Program,
        common: &CommonSettings,
        has_bus: bool,
    ) -> Result<Self, LaunchError> {
        let limit = Instant::now() + TIMEOUT;
        loop {
            match ListenAddress::chosen_now(program, common) {
                Err(LaunchError::InUse { .. }) if Instant::now() < limit => thread::sleep(PAUSE),
                // Another free port has a bus port that is free too.
                Ok(listen) if has_bus && !listen.has_free_bus() && Instant::now() < limit => {}
                chosen => return chosen,
            }
        }
    }

    fn chosen_now(program: &dyn Program, common: &CommonSettings) -> Result<Self, LaunchError> {
        if let Some(path) = &common.socket {
            let given = Address::Unix(path.clone());
            // memcached would remove the socket of a running server.
            if path.symlink_metadata().is_ok() {
                return Err(in_use(program, &given, "socket"));
            }
            return Ok(ListenAddress { reached: given.clone(), given, chosen: false });
        }
        let tcp = |port| Address::Tcp { host: common.listen.to_string(), port };
        let port = common.port.unwrap_or(0);
        let free =
            TcpListener::bind((common.listen, port)).and_then(|listener| listener.local_addr());
        match free {
            Ok(address) => {
                let given = tcp(address.port());
                Ok(ListenAddress { reached: reached(&given), given, chosen: common.port.is_none() })
            }
            Err(error) => Err(refused(program, &tcp(port), &error)),
        }
    }

    /// Whether the port of the bus is free.
    fn has_free_bus(&self) -> bool {
        let Address::Tcp { host, port } = &self.given else { return true };
        let bus = port.checked_add(BUS_OFFSET);
        bus.is_some_and(|bus| TcpListener::bind((host.as_str(), bus)).is_ok())
    }

    /// The socket file that a killed server leaves behind.
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
            _ => ", and kvmeter takes a free port",
        },
        by: by.unwrap_or_default(),
    }
}
