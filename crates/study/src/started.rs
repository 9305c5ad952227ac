//! Servers that kvmeter starts for a study, and ends.

use std::ffi::OsString;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use model::Address;
use record::Settings;
use server::launch::{Launched, Launcher, Local, Order, Program, Settings as Wanted};
use server::tap::Tap;

use crate::error::StudyError;

/// How long a server may take to come up behind a program that slows it down.
const SLOW_START: Duration = Duration::from_secs(120);
/// How long a server may take to end by itself.
const END_LIMIT: Duration = Duration::from_secs(10);

/// A server that is to be started for a segment.
#[derive(Debug, Clone)]
pub struct ServerOrder {
    pub program: &'static dyn Program,
    pub wanted: Wanted,
}

/// A server that runs, and what was preloaded into it.
pub(crate) struct Started {
    pub(crate) launched: Launched,
    pub(crate) tap: Option<Arc<Tap>>,
    port_given: bool,
}

impl ServerOrder {
    /// Checks the settings without starting anything.
    ///
    /// # Errors
    /// What is wrong with them, and the key.
    pub fn new(program: &str, wanted: Wanted) -> Result<ServerOrder, server::launch::LaunchError> {
        let program = server::launch::program(program)?;
        server::launch::check(program, &wanted)?;
        Ok(ServerOrder { program, wanted })
    }

    /// Whether it will listen at an address by which other machines can be told to reach it.
    pub(crate) fn is_reachable(&self) -> bool {
        let given = |wanted: &str| self.wanted.0.iter().find(|(key, _)| key == wanted);
        let listen = given("listen").and_then(|(_, at)| at.to_string().parse::<IpAddr>().ok());
        given("socket").is_none()
            && listen.is_some_and(|at| !at.is_loopback() && !at.is_unspecified())
    }

    pub(crate) fn settings(&self, settings: &mut Settings) {
        settings.insert("server".to_owned(), "started".to_owned());
        for (key, value) in &self.wanted.0 {
            settings.insert(format!("server.{key}"), value.to_string());
        }
    }

    /// Starts it behind a program that slows it down; it may take `limit` to come up.
    pub(crate) fn start_behind(
        &self,
        prefix: Vec<OsString>,
        limit: Duration,
    ) -> Result<Started, StudyError> {
        let order = Order {
            prefix,
            patience: limit.min(SLOW_START),
            ..Order::new(self.program, self.wanted.clone())
        };
        let launched = Local.start(&order).map_err(of_launch)?;
        Ok(Started { launched, tap: None, port_given: false })
    }

    pub(crate) fn start(&self, preload: bool) -> Result<Started, StudyError> {
        let mut order = Order::new(self.program, self.wanted.clone());
        let tap = match preload {
            true => Some(Tap::prepare().map_err(|error| StudyError::Failed(error.to_string()))?),
            false => None,
        };
        if let Some(tap) = &tap {
            order.environment = tap.environment();
        }
        let launched = Local.start(&order).map_err(of_launch)?;
        let port_given = self.wanted.0.iter().any(|(key, _)| key == "port");
        Ok(Started { launched, tap: tap.map(Arc::new), port_given })
    }
}

impl Started {
    /// What a run with this server depends on, besides what was asked for. A port that kvmeter
    /// chose and the files of the preloaded library differ from start to start and decide nothing.
    pub(crate) fn settings(&self, settings: &mut Settings) {
        let Launched { version, build, binary, arguments, environment, cpus, .. } = &self.launched;
        let chosen = self.launched.addresses.iter().find_map(|address| match address {
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
        let ours = self.tap.as_ref().map(|tap| tap.environment()).unwrap_or_default();
        if !ours.is_empty() {
            put("preloaded", "tap".to_owned());
        }
        let inherited: Vec<String> = environment
            .iter()
            .filter(|pair| !ours.contains(pair))
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        if !inherited.is_empty() {
            put("environment", inherited.join(" "));
        }
    }

    /// # Errors
    /// It has ended by itself, with its last words; or cannot be ended.
    pub(crate) fn end(self) -> Result<(), StudyError> {
        self.end_within(END_LIMIT)
    }

    /// The same of one that needs more time to end.
    pub(crate) fn end_within(self, limit: Duration) -> Result<(), StudyError> {
        self.launched.still_running().map_err(of_launch)?;
        self.launched.end(limit).map(drop).map_err(of_launch)
    }
}

fn of_launch(error: server::launch::LaunchError) -> StudyError {
    match error.is_request() {
        true => StudyError::Request(error.to_string()),
        false => StudyError::Failed(error.to_string()),
    }
}
