//! Servers that a command starts on other machines, and ends: `--server-on`.

use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fleet::{FleetHost, FleetTarget, Hosted, HostedEnd};
use model::Address;
use model::text::shell_word;
use serde::{Deserialize, Serialize};
use server::launch::{
    LaunchError, LaunchRequest, Launched, Launcher, ServerHandle, ServerSettings, ServerState,
    Value,
};
use study::ServerHosts;

use super::hosted_verb::{VerbEnd, VerbFailure, VerbStart, keep};
use super::program::GivenPrograms;
use super::{acquire, host_address, names_of, new_folder_id, target_of};
use crate::exit::request;
use crate::flags::server_hosts::{SERVER_BINARY, SERVER_ON};
use crate::output::Output;

/// The file of the settings in the host's folder.
const SETTINGS: &str = "server.json";
const LISTEN: &str = "listen";
const ARGUMENTS: &str = "arguments";

/// What `kvmeter server` prints, as one line, once the server answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerReport {
    pub port: u16,
    pub pid: u32,
    pub version: String,
    pub build: String,
    pub binary: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub cpus: String,
}

/// The hosts of `--server-on`, of which processes of a server take turns.
///
/// # Errors
/// It names no host, or one that cannot be used.
pub fn host_servers(on: &str, binaries: &[PathBuf], show: &Output) -> anyhow::Result<ServerHosts> {
    let target = target_of(on, SERVER_ON)?;
    let names = names_of(&target, SERVER_ON)?;
    let (target, show) = (Mutex::new(target), *show);
    let launcher = HostLauncher { target, binaries: binaries.to_vec(), show };
    Ok(ServerHosts { names, launcher: Arc::new(launcher) })
}

/// Starts servers on hosts.
#[derive(Debug)]
struct HostLauncher {
    /// A scheduler gives the hosts when the first server starts.
    target: Mutex<FleetTarget>,
    /// kvmeter for hosts of other architectures.
    binaries: Vec<PathBuf>,
    show: Output,
}

impl Launcher for HostLauncher {
    fn name(&self) -> &'static str {
        "host"
    }

    fn start(&self, request: &LaunchRequest) -> Result<Launched, LaunchError> {
        let mut target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        if target.hosts.is_empty() {
            acquire(&mut target, SERVER_ON, &self.show)
                .map_err(|error| LaunchError::Host { why: format!("{error:#}"), refused: true })?;
        }
        let host = &target.hosts[request.process % target.hosts.len()];
        let wrong = |error: anyhow::Error| {
            let why = format!("{SERVER_ON}: {}: {error:#}", host.name);
            LaunchError::Host { why, refused: true }
        };
        let own = address_of(&target, host).map_err(wrong)?;
        let program = request.program;
        let (settings, at) = listening_at(&request.settings, own);
        let settings = open(settings, program.open_to_others());
        let settings = serde_json::to_string(&settings).map_err(|error| wrong(error.into()))?;
        let start = VerbStart {
            target: &target,
            host,
            folder: format!("server-{}-{}", new_folder_id().map_err(wrong)?, host.name),
            programs: GivenPrograms { files: &self.binaries, flag: SERVER_BINARY },
            what: "its server",
        };
        let program = program.name();
        let verb = format!("server {} --settings {SETTINGS}", shell_word(program));
        let report = |line: &str| serde_json::from_str::<ServerReport>(line).ok();
        let (hosted, report) = start.start(&[(SETTINGS, &settings)], &verb, report).map_err(
            |VerbFailure { words, refused }| LaunchError::Host {
                why: format!("{SERVER_ON}: {words}"),
                refused,
            },
        )?;
        let ServerReport { port, pid, version, build, binary, arguments, environment, cpus } =
            report;
        Ok(Launched {
            program,
            addresses: vec![Address::Tcp { host: at.to_string(), port }],
            pid,
            version,
            build,
            binary,
            arguments,
            environment,
            cpus,
            handle: Box::new(HostedServer::new(hosted)),
        })
    }
}

impl Drop for HostLauncher {
    fn drop(&mut self) {
        let target = self.target.get_mut().unwrap_or_else(PoisonError::into_inner);
        for host in &target.hosts {
            // Without the shared connection nothing is lost.
            let _ = target.launcher.release(&host.name);
        }
        if let Err(error) = target.launcher.release_all() {
            self.show.warn(&error.to_string());
        }
    }
}

/// The IP address at which a host's server is reached.
fn address_of(target: &FleetTarget, host: &FleetHost) -> anyhow::Result<IpAddr> {
    let name = host_address(target, host)?;
    let mut found = (name.trim_matches(['[', ']']), 0).to_socket_addrs()?;
    found
        .next()
        .map(|socket| socket.ip())
        .ok_or_else(|| request(format!("{name} has no address; give `listen` in a fleet file")))
}

/// The settings with an address to listen at, and where the server is reached.
fn listening_at(given: &ServerSettings, own: IpAddr) -> (ServerSettings, IpAddr) {
    let listen = given.0.iter().find(|(key, _)| key == LISTEN);
    match listen.and_then(|(_, value)| value.to_string().parse::<IpAddr>().ok()) {
        Some(at) => (given.clone(), if at.is_unspecified() { own } else { at }),
        None => (given.clone().with(LISTEN, &*own.to_string()), own),
    }
}

/// The settings with arguments before the given ones, which hold over them.
fn open(mut settings: ServerSettings, first: &[&str]) -> ServerSettings {
    if first.is_empty() {
        return settings;
    }
    let mut all: Vec<String> = first.iter().map(|word| (*word).to_owned()).collect();
    let given = settings.0.iter().position(|(key, _)| key == ARGUMENTS);
    match given.map(|at| settings.0.remove(at).1) {
        Some(Value::List(list)) => all.extend(list),
        Some(other) => all.push(other.to_string()),
        None => {}
    }
    settings.0.push((ARGUMENTS.to_owned(), Value::List(all)));
    settings
}

/// A server on a host; dropped, it ends with its lease.
#[derive(Debug)]
struct HostedServer {
    stop: Arc<AtomicBool>,
    ended: Arc<Mutex<Option<VerbEnd>>>,
    lease: Option<JoinHandle<()>>,
}

impl HostedServer {
    fn new(hosted: Hosted) -> HostedServer {
        let (stop, ended): (Arc<AtomicBool>, Arc<Mutex<_>>) = (Arc::default(), Arc::default());
        let (stopped, end) = (Arc::clone(&stop), Arc::clone(&ended));
        let lease = thread::spawn(move || {
            let kept = keep(hosted, &stopped);
            *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        });
        HostedServer { stop, ended, lease: Some(lease) }
    }

    fn ended(&self) -> Option<VerbEnd> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ServerHandle for HostedServer {
    fn state(&self) -> ServerState {
        match self.ended().and_then(|end| end.by_itself) {
            None => ServerState::Runs,
            Some(HostedEnd::Code(code)) => ServerState::Ended(status(code)),
            Some(HostedEnd::Lost) => ServerState::Lost,
        }
    }

    fn first_output(&self) -> String {
        // What is read of it is of libraries that this process preloads.
        String::new()
    }

    fn last_output(&self) -> String {
        self.ended().map(|end| end.last).unwrap_or_default()
    }

    fn end(&mut self, limit: Duration) -> Option<(ExitStatus, bool)> {
        self.stop.store(true, Ordering::Relaxed);
        let begin = Instant::now();
        while self.ended().is_none() && begin.elapsed() < limit * 2 {
            thread::sleep(Duration::from_millis(20));
        }
        self.ended().map(|_| (status(0), false))
    }
}

impl Drop for HostedServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(lease) = self.lease.take() {
            // It ends the server on its host even where its own thread panicked.
            let _ = lease.join();
        }
    }
}

/// The status of an exit code.
fn status(code: i32) -> ExitStatus {
    ExitStatus::from_raw(code << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_listens_at_its_hosts_address_or_where_it_is_told() {
        let own: IpAddr = "192.0.2.7".parse().expect("an address");
        let other: IpAddr = "10.0.0.1".parse().expect("an address");
        let empty = ServerSettings::default;
        assert_eq!(listening_at(&empty(), own), (empty().with(LISTEN, "192.0.2.7"), own));
        let given = empty().with(LISTEN, "10.0.0.1");
        assert_eq!(listening_at(&given, own), (given, other));
        let any = empty().with(LISTEN, "0.0.0.0");
        assert_eq!(listening_at(&any, own), (any, own));
    }

    #[test]
    fn given_arguments_stand_last() {
        let of = |settings| open(settings, &["--protected-mode", "no"]).0;
        let all = |words: &[&str]| {
            let list = words.iter().map(|word| (*word).to_owned()).collect();
            vec![(ARGUMENTS.to_owned(), Value::List(list))]
        };
        assert_eq!(of(ServerSettings::default()), all(&["--protected-mode", "no"]));
        let given = ServerSettings(all(&["--hz", "1"]));
        assert_eq!(of(given), all(&["--protected-mode", "no", "--hz", "1"]));
    }
}
