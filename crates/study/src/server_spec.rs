//! A server that kvmeter is to start.

use std::net::IpAddr;

use model::RunSettings;
use server::launch::{LaunchError, Program, ServerSettings, SettingError, Value};

/// How many processes of a server are started: the one setting that is no program's own.
const PROCESSES: &str = "processes";
/// The address of each process; a list of them is shared out among the processes.
const LISTEN: &str = "listen";
/// Maximum number of processes.
const MAX_PROCESSES: u32 = 1024;

/// A server that is to be started for a segment.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub program: &'static dyn Program,
    settings: ServerSettings,
    /// All alike, each at a port of its own.
    pub processes: u32,
}

impl PartialEq for ServerSpec {
    fn eq(&self, other: &ServerSpec) -> bool {
        let ServerSpec { program, settings, processes } = self;
        program.name() == other.program.name()
            && *settings == other.settings
            && *processes == other.processes
    }
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
        let spec = ServerSpec { program, settings, processes };
        let addresses = spec.addresses().count();
        for process in 0..addresses.max(1) {
            server::launch::check(program, &spec.settings_of(process))?;
        }
        Ok(spec)
    }

    fn given(&self, name: &str) -> Option<&Value> {
        self.settings.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The listed addresses; none where one is given as a text.
    fn addresses(&self) -> impl Iterator<Item = &str> {
        let list = match self.given(LISTEN) {
            Some(Value::List(list)) => list.as_slice(),
            _ => &[],
        };
        list.iter().map(String::as_str)
    }

    /// The settings of one process, counted from 0: processes take the addresses in turn.
    pub fn settings_of(&self, process: usize) -> ServerSettings {
        let mut settings = self.settings.clone();
        let addresses: Vec<&str> = self.addresses().collect();
        let listen = settings.0.iter_mut().find(|(key, _)| key == LISTEN);
        if let (Some((_, value)), false) = (listen, addresses.is_empty()) {
            *value = Value::from(addresses[process % addresses.len()]);
        }
        settings
    }

    /// Whether its port is given, and not chosen at the start.
    pub fn has_port(&self) -> bool {
        self.given("port").is_some()
    }

    /// Whether it will listen at an address that other machines can reach.
    pub(crate) fn is_reachable(&self) -> bool {
        let reachable = |process: usize| {
            let settings = self.settings_of(process);
            let listen = settings.0.iter().find(|(key, _)| key == LISTEN);
            let listen = listen.and_then(|(_, at)| at.to_string().parse::<IpAddr>().ok());
            listen.is_some_and(|at| !at.is_loopback() && !at.is_unspecified())
        };
        self.given("socket").is_none() && (0..self.processes as usize).all(reachable)
    }

    pub fn settings(&self, settings: &mut RunSettings) {
        settings.insert("server".to_owned(), "started".to_owned());
        if self.processes > 1 {
            settings.insert(format!("server.{PROCESSES}"), self.processes.to_string());
        }
        for (key, value) in &self.settings.0 {
            settings.insert(format!("server.{key}"), value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_take_the_listed_addresses_in_turn() {
        let of = |words: &str| ServerSpec::parse("memcached", words);
        let spec = of(r#"processes=3,listen=["10.0.0.2", "10.0.1.2"]"#).unwrap();
        let listens = |process| match spec.settings_of(process).0.as_slice() {
            [(_, listen)] => listen.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!([0, 1, 2].map(listens), ["10.0.0.2", "10.0.1.2", "10.0.0.2"]);
        assert!(spec.is_reachable());
        assert!(!of(r#"processes=2,listen=["10.0.0.2", "127.0.0.1"]"#).unwrap().is_reachable());
        for (words, why) in [
            (r#"processes=2,listen=["10.0.0.2", "card"]"#, "an IP address"),
            ("listen=[]", "takes a text"),
        ] {
            let error = of(words).unwrap_err();
            assert!(error.contains(why), "{words}: {error}");
        }
    }
}
