//! Servers that kvmeter starts and ends.

use std::ffi::OsString;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use host::Unavailable;
use model::{Address, RunSettings};
use server::launch::{
    LaunchError, LaunchRequest, Launched, Launcher, LocalLauncher, Program, ServerSettings,
    SettingError,
};
use server::tap::Tap;

use crate::error::StudyError;

/// How long a server may take to come up behind a program that slows it down.
const SLOW_START: Duration = Duration::from_secs(120);
/// How long a server may take to end by itself.
const END_LIMIT: Duration = Duration::from_secs(10);

/// How many processes of a server are started: the one setting that is no program's own.
const PROCESSES: &str = "processes";
/// Maximum number of processes.
const MAX_PROCESSES: u32 = 1024;

/// A server that is to be started for a segment.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub program: &'static dyn Program,
    pub settings: ServerSettings,
    /// All alike, each at a port of its own.
    pub processes: u32,
}

/// One running process of a server, with its preloaded library.
pub(crate) struct StartedProcess {
    pub(crate) launched: Launched,
    tap: Option<Tapped>,
}

/// The preloaded library, or why it does not work.
pub(crate) type Tapped = Result<Arc<Tap>, Unavailable>;

/// A running server: one or several equal processes.
pub(crate) struct StartedServer {
    pub(crate) first: StartedProcess,
    others: Vec<StartedProcess>,
    port_given: bool,
}

impl ServerSpec {
    /// Parses the settings of a flag: `memory=1GiB,cpus=0,1`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(program: &str, words: &str) -> Result<ServerSpec, String> {
        let settings = match words {
            "default" => ServerSettings::default(),
            words => crate::server_flag::read(words)?,
        };
        ServerSpec::new(program, settings).map_err(|error| error.to_string())
    }

    /// Checks the settings without starting anything.
    ///
    /// # Errors
    /// What is wrong with them, and the key.
    pub fn new(program: &str, mut settings: ServerSettings) -> Result<ServerSpec, LaunchError> {
        let program = server::launch::program(program)?;
        let known = program.settings().iter().map(|setting| setting.name).chain([PROCESSES]);
        let unknown = |(key, _): &&(String, _)| !known.clone().any(|name| name == key);
        if let Some((key, _)) = settings.0.iter().find(unknown) {
            let (program, hint) = (program.name(), model::suggest::hint(key, known.clone()));
            return Err(SettingError::Unknown { program, key: key.clone(), hint }.into());
        }
        let at = settings.0.iter().position(|(key, _)| key == PROCESSES);
        let processes = match at.map(|at| settings.0.remove(at).1.to_string()) {
            None => 1,
            Some(given) => match given.parse() {
                Ok(number @ 1..=MAX_PROCESSES) => number,
                _ => {
                    let takes = format!("a number from 1 to {MAX_PROCESSES}");
                    let (program, key) = (program.name(), PROCESSES);
                    return Err(SettingError::Wrong { program, key, takes, given }.into());
                }
            },
        };
        // Each process needs its own.
        let own =
            ["port", "socket"].into_iter().find(|own| settings.0.iter().any(|(k, _)| k == own));
        if let Some(other) = own.filter(|_| processes > 1) {
            let (program, key) = (program.name(), PROCESSES);
            return Err(SettingError::Together { program, key, other }.into());
        }
        server::launch::check(program, &settings)?;
        Ok(ServerSpec { program, settings, processes })
    }

    /// Whether it will listen at an address that other machines can reach.
    pub(crate) fn is_reachable(&self) -> bool {
        let given = |name: &str| self.settings.0.iter().find(|(key, _)| key == name);
        let listen = given("listen").and_then(|(_, at)| at.to_string().parse::<IpAddr>().ok());
        given("socket").is_none()
            && listen.is_some_and(|at| !at.is_loopback() && !at.is_unspecified())
    }

    pub(crate) fn settings(&self, settings: &mut RunSettings) {
        settings.insert("server".to_owned(), "started".to_owned());
        if self.processes > 1 {
            settings.insert(format!("server.{PROCESSES}"), self.processes.to_string());
        }
        for (key, value) in &self.settings.0 {
            settings.insert(format!("server.{key}"), value.to_string());
        }
    }

    /// Starts one process of it behind a program that slows it down; it may take `limit` to come
    /// up.
    pub(crate) fn start_behind(
        &self,
        prefix: Vec<OsString>,
        limit: Duration,
        stop: &Arc<AtomicBool>,
    ) -> Result<StartedServer, StudyError> {
        let request = LaunchRequest {
            prefix,
            stop: Arc::clone(stop),
            start_timeout: limit.min(SLOW_START),
            ..LaunchRequest::new(self.program, self.settings.clone())
        };
        let first = StartedProcess {
            launched: LocalLauncher.start(&request).map_err(of_launch)?,
            tap: None,
        };
        Ok(StartedServer { first, others: Vec::new(), port_given: false })
    }

    pub(crate) fn start(&self, preload: bool) -> Result<StartedServer, StudyError> {
        let first = self.start_one(preload)?;
        let others =
            (1..self.processes).map(|_| self.start_one(preload)).collect::<Result<_, _>>()?;
        let port_given = self.settings.0.iter().any(|(key, _)| key == "port");
        Ok(StartedServer { first, others, port_given })
    }

    fn start_one(&self, preload: bool) -> Result<StartedProcess, StudyError> {
        let mut request = LaunchRequest::new(self.program, self.settings.clone());
        let tap = match preload {
            true => Some(Tap::prepare().map_err(|error| StudyError::Failed(error.to_string()))?),
            false => None,
        };
        if let Some(tap) = &tap {
            request.environment = tap.environment();
        }
        let launched = LocalLauncher.start(&request).map_err(of_launch)?;
        let tap = tap
            .map(|tap| tap.watches(launched.pid, &launched.first_output()).map(|()| Arc::new(tap)));
        Ok(StartedProcess { launched, tap })
    }
}

impl StartedServer {
    fn all(&self) -> impl Iterator<Item = &StartedProcess> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Where its processes answer.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        self.all().flat_map(|one| one.launched.addresses.clone()).collect()
    }

    /// The preloaded library of the process at an address, if any.
    pub(crate) fn tap_at(&self, address: &Address) -> Option<Tapped> {
        self.all().find(|one| one.launched.addresses.contains(address))?.tap.clone()
    }

    /// Adds the settings of its first process; the others are equal. A port that kvmeter chose and the
    /// files of the preloaded library are left out, because they differ between starts.
    pub(crate) fn settings(&self, settings: &mut RunSettings) {
        let StartedProcess { launched, tap } = &self.first;
        let Launched { version, build, binary, arguments, environment, cpus, .. } = launched;
        let chosen = launched.addresses.iter().find_map(|address| match address {
            Address::Tcp { port, .. } if !self.port_given => Some(port.to_string()),
            _ => None,
        });
        let argument = |given: &String| match chosen.as_ref() == Some(given) {
            true => "PORT".to_owned(),
            false => given.clone(),
        };
        let mut put = |key: &str, value: String| settings.insert(format!("server.{key}"), value);
        put("version", version.clone());
        put("build", build.clone());
        put("binary", binary.display().to_string());
        put("arguments", arguments.iter().map(argument).collect::<Vec<_>>().join(" "));
        put("cpus", cpus.clone());
        let ours = |key: &str| tap.is_some() && Tap::sets(key);
        if let Some(Ok(_)) = tap {
            put("preloaded", "tap".to_owned());
        }
        let inherited: Vec<String> = environment
            .iter()
            .filter(|(key, _)| !ours(key))
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        if !inherited.is_empty() {
            put("environment", inherited.join(" "));
        }
    }

    /// Adds the server's last output to an error, if the server has ended by itself.
    pub(crate) fn explain(&self, error: StudyError) -> StudyError {
        let ended = self.all().find_map(|one| one.launched.still_running().err());
        match ended {
            Some(ended) => error.with_note(&ended.to_string()),
            None => error,
        }
    }

    /// # Errors
    /// It has ended by itself, with its last output; or cannot be ended.
    pub(crate) fn end(self) -> Result<(), StudyError> {
        self.end_within(END_LIMIT)
    }

    /// The same with another time limit.
    pub(crate) fn end_within(self, limit: Duration) -> Result<(), StudyError> {
        self.all().try_for_each(|one| one.launched.still_running()).map_err(of_launch)?;
        let all = std::iter::once(self.first).chain(self.others);
        // Ends all of them before the first error is returned.
        let ended: Vec<_> = all.map(|one| one.launched.end(limit)).collect();
        ended.into_iter().try_for_each(|end| end.map(drop)).map_err(of_launch)
    }
}

fn of_launch(error: LaunchError) -> StudyError {
    match error.is_request() {
        true => StudyError::Request(error.to_string()),
        false => StudyError::Failed(error.to_string()),
    }
}
