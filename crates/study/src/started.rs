//! Servers that kvmeter starts for a study, and ends.

use std::ffi::OsString;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use host::Unavailable;
use model::Address;
use record::RunSettings;
use server::launch::{
    LaunchError, LaunchRequest, Launched, Launcher, LocalLauncher, Program,
    ServerSettings as Wanted, SettingError,
};
use server::tap::Tap;

use crate::error::StudyError;

/// How long a server may take to come up behind a program that slows it down.
const SLOW_START: Duration = Duration::from_secs(120);
/// How long a server may take to end by itself.
const END_LIMIT: Duration = Duration::from_secs(10);

/// How many processes of a server are started: the one setting that is no program's own.
const PROCESSES: &str = "processes";
/// More of them than any machine has use for.
const MOST_PROCESSES: u32 = 1024;

/// A server that is to be started for a segment.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub program: &'static dyn Program,
    pub wanted: Wanted,
    /// All alike, each at a port of its own.
    pub processes: u32,
}

/// One process of a server that runs, and what was preloaded into it.
pub(crate) struct StartedProcess {
    pub(crate) launched: Launched,
    tap: Option<Tapped>,
}

/// What was preloaded into a server, or why it does not count.
pub(crate) type Tapped = Result<Arc<Tap>, Unavailable>;

/// A server that runs: one process or several that are alike.
pub(crate) struct StartedServer {
    pub(crate) first: StartedProcess,
    others: Vec<StartedProcess>,
    port_given: bool,
}

impl ServerSpec {
    /// The same from one line, as a flag has it: `memory=1GiB,cpus=0,1`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn of_words(program: &str, words: &str) -> Result<ServerSpec, String> {
        let wanted = match words {
            "default" => Wanted::default(),
            words => crate::server_words::read(words)?,
        };
        ServerSpec::new(program, wanted).map_err(|error| error.to_string())
    }

    /// Checks the settings without starting anything.
    ///
    /// # Errors
    /// What is wrong with them, and the key.
    pub fn new(program: &str, mut wanted: Wanted) -> Result<ServerSpec, LaunchError> {
        let program = server::launch::program(program)?;
        let known = program.settings().iter().map(|setting| setting.name).chain([PROCESSES]);
        let strange = |(key, _): &&(String, _)| !known.clone().any(|name| name == key);
        if let Some((key, _)) = wanted.0.iter().find(strange) {
            let (program, hint) = (program.name(), model::suggest::hint(key, known.clone()));
            return Err(SettingError::Unknown { program, key: key.clone(), hint }.into());
        }
        let at = wanted.0.iter().position(|(key, _)| key == PROCESSES);
        let processes = match at.map(|at| wanted.0.remove(at).1.to_string()) {
            None => 1,
            Some(given) => match given.parse() {
                Ok(number @ 1..=MOST_PROCESSES) => number,
                _ => {
                    let takes = format!("a number from 1 to {MOST_PROCESSES}");
                    let (program, key) = (program.name(), PROCESSES);
                    return Err(SettingError::Wrong { program, key, takes, given }.into());
                }
            },
        };
        // Each process needs its own.
        let own = ["port", "socket"].into_iter().find(|own| wanted.0.iter().any(|(k, _)| k == own));
        if let Some(other) = own.filter(|_| processes > 1) {
            let (program, key) = (program.name(), PROCESSES);
            return Err(SettingError::Together { program, key, other }.into());
        }
        server::launch::check(program, &wanted)?;
        Ok(ServerSpec { program, wanted, processes })
    }

    /// Whether it will listen at an address by which other machines can be told to reach it.
    pub(crate) fn is_reachable(&self) -> bool {
        let given = |wanted: &str| self.wanted.0.iter().find(|(key, _)| key == wanted);
        let listen = given("listen").and_then(|(_, at)| at.to_string().parse::<IpAddr>().ok());
        given("socket").is_none()
            && listen.is_some_and(|at| !at.is_loopback() && !at.is_unspecified())
    }

    pub(crate) fn settings(&self, settings: &mut RunSettings) {
        settings.insert("server".to_owned(), "started".to_owned());
        if self.processes > 1 {
            settings.insert(format!("server.{PROCESSES}"), self.processes.to_string());
        }
        for (key, value) in &self.wanted.0 {
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
        let order = LaunchRequest {
            prefix,
            stop: Arc::clone(stop),
            start_timeout: limit.min(SLOW_START),
            ..LaunchRequest::new(self.program, self.wanted.clone())
        };
        let first =
            StartedProcess { launched: LocalLauncher.start(&order).map_err(of_launch)?, tap: None };
        Ok(StartedServer { first, others: Vec::new(), port_given: false })
    }

    pub(crate) fn start(&self, preload: bool) -> Result<StartedServer, StudyError> {
        let first = self.start_one(preload)?;
        let others =
            (1..self.processes).map(|_| self.start_one(preload)).collect::<Result<_, _>>()?;
        let port_given = self.wanted.0.iter().any(|(key, _)| key == "port");
        Ok(StartedServer { first, others, port_given })
    }

    fn start_one(&self, preload: bool) -> Result<StartedProcess, StudyError> {
        let mut order = LaunchRequest::new(self.program, self.wanted.clone());
        let tap = match preload {
            true => Some(Tap::prepare().map_err(|error| StudyError::Failed(error.to_string()))?),
            false => None,
        };
        if let Some(tap) = &tap {
            order.environment = tap.environment();
        }
        let launched = LocalLauncher.start(&order).map_err(of_launch)?;
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

    /// What was preloaded into the process that answers there, if anything was to be.
    pub(crate) fn tap_at(&self, address: &Address) -> Option<Tapped> {
        self.all().find(|one| one.launched.addresses.contains(address))?.tap.clone()
    }

    /// What a run with this server depends on, besides what was asked for, by its first process:
    /// the others are started alike. A port that kvmeter
    /// chose and the files of the preloaded library differ from start to start and decide nothing.
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

    /// An error that was met while it was asked: with its last words, if it has ended by itself.
    pub(crate) fn explain(&self, error: StudyError) -> StudyError {
        let ended = self.all().find_map(|one| one.launched.still_running().err());
        match ended {
            Some(ended) => error.with_note(&ended.to_string()),
            None => error,
        }
    }

    /// # Errors
    /// It has ended by itself, with its last words; or cannot be ended.
    pub(crate) fn end(self) -> Result<(), StudyError> {
        self.end_within(END_LIMIT)
    }

    /// The same of one that needs more time to end.
    pub(crate) fn end_within(self, limit: Duration) -> Result<(), StudyError> {
        self.all().try_for_each(|one| one.launched.still_running()).map_err(of_launch)?;
        let all = std::iter::once(self.first).chain(self.others);
        // All of them, whatever becomes of one; then the first that failed.
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
