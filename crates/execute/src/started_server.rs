//! Servers that kvmeter starts and ends.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use model::{Address, RunSettings, Unavailable};
use server::launch::{LaunchError, LaunchRequest, Launched, form_cluster};
use server::tap::Tap;
use study::ServerSpec;

use crate::error::ExecuteError;

/// How long a server may take to come up behind a program that slows it down.
const SLOW_START: Duration = Duration::from_secs(120);

/// How long a server may take to end by itself.
const END_LIMIT: Duration = Duration::from_secs(10);

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
    /// The machines on which they run, if it is not this one.
    hosts: Option<Vec<String>>,
}

/// Starts one process of it behind a program that slows it down; it may take `limit` to come
/// up.
pub(crate) fn start_behind(
    server: &ServerSpec,
    prefix: Vec<OsString>,
    limit: Duration,
    stop: &Arc<AtomicBool>,
) -> Result<StartedServer, ExecuteError> {
    let request = LaunchRequest {
        prefix,
        stop: Arc::clone(stop),
        start_timeout: limit.min(SLOW_START),
        ..LaunchRequest::new(server.program, server.settings_of(0))
    };
    let first = StartedProcess {
        launched: server.launcher().start(&request).map_err(of_launch)?,
        tap: None,
    };
    Ok(StartedServer { first, others: Vec::new(), port_given: false, hosts: None })
}

pub(crate) fn start(
    server: &ServerSpec,
    preload: bool,
    stop: &AtomicBool,
) -> Result<StartedServer, ExecuteError> {
    // The library would have to be on the server's machine.
    let preload = preload && server.hosts().is_none();
    let first = start_one(server, 0, preload)?;
    let others = (1..server.processes as usize)
        .map(|process| start_one(server, process, preload))
        .collect::<Result<_, _>>()?;
    let hosts = server.hosts().map(<[String]>::to_vec);
    let started = StartedServer { first, others, port_given: server.has_port(), hosts };
    if let Some(layout) = server.cluster {
        form_cluster(server.program.name(), &started.addresses(), layout, stop)
            .map_err(|error| started.explain(of_launch(error)))?;
    }
    Ok(started)
}

fn start_one(
    server: &ServerSpec,
    process: usize,
    preload: bool,
) -> Result<StartedProcess, ExecuteError> {
    let mut request = LaunchRequest {
        process,
        ..LaunchRequest::new(server.program, server.settings_of(process))
    };
    let tap = match preload {
        true => Some(Tap::prepare().map_err(|error| ExecuteError::Failed(error.to_string()))?),
        false => None,
    };
    if let Some(tap) = &tap {
        request.environment = tap.environment();
    }
    let launched = server.launcher().start(&request).map_err(of_launch)?;
    let tap =
        tap.map(|tap| tap.watches(launched.pid, &launched.first_output()).map(|()| Arc::new(tap)));
    Ok(StartedProcess { launched, tap })
}

impl StartedServer {
    fn all(&self) -> impl Iterator<Item = &StartedProcess> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Where its processes answer.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        self.all().flat_map(|one| one.launched.addresses.clone()).collect()
    }

    /// Names of its processes in results, where their addresses differ between starts.
    pub(crate) fn names(&self) -> BTreeMap<Address, String> {
        if self.port_given && self.hosts.is_none() {
            return BTreeMap::new();
        }
        let name = |at: usize| match &self.hosts {
            None => format!("process{}", at + 1),
            Some(hosts) => match (&hosts[at % hosts.len()], at / hosts.len()) {
                (host, 0) => host.clone(),
                (host, before) => format!("{host}-{}", before + 1),
            },
        };
        self.addresses().into_iter().enumerate().map(|(at, own)| (own, name(at))).collect()
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
    pub(crate) fn explain(&self, error: ExecuteError) -> ExecuteError {
        let ended = self.all().find_map(|one| one.launched.still_running().err());
        match ended {
            Some(ended) => error.with_note(&ended.to_string()),
            None => error,
        }
    }

    /// # Errors
    /// It has ended by itself, with its last output; or cannot be ended.
    pub(crate) fn end(self) -> Result<(), ExecuteError> {
        self.end_within(END_LIMIT)
    }

    /// The same with another time limit.
    pub(crate) fn end_within(self, limit: Duration) -> Result<(), ExecuteError> {
        self.all().try_for_each(|one| one.launched.still_running()).map_err(of_launch)?;
        let all = std::iter::once(self.first).chain(self.others);
        // Ends all of them before the first error is returned.
        let ended: Vec<_> = all.map(|one| one.launched.end(limit)).collect();
        ended.into_iter().try_for_each(|end| end.map(drop)).map_err(of_launch)
    }
}

fn of_launch(error: LaunchError) -> ExecuteError {
    match error.is_request() {
        true => ExecuteError::Request(error.to_string()),
        false => ExecuteError::Failed(error.to_string()),
    }
}
