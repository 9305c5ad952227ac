//! A server that kvmeter is to start.

use std::net::IpAddr;
use std::sync::Arc;

use model::RunSettings;
use server::launch::{
    ClusterLayout, LaunchError, Launcher, LocalLauncher, Program, ServerSettings, SettingError,
    Value,
};
use store::StoreUrl;

/// Primaries of a cluster that is started.
const CLUSTER: &str = "cluster";
/// How many processes of a server are started: the one setting that is no program's own.
const PROCESSES: &str = "processes";
/// The address of each process; a list of them is shared out among the processes.
const LISTEN: &str = "listen";
/// The machines on which it was started, in a run's settings.
const HOSTS: &str = "hosts";
/// Maximum number of processes.
const MAX_PROCESSES: u32 = 1024;

/// Other machines on which servers are started.
#[derive(Debug, Clone)]
pub struct ServerHosts {
    /// The processes of a server are started on them in turn.
    pub names: Vec<String>,
    pub launcher: Arc<dyn Launcher>,
}

/// A server that is to be started for a segment.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub program: &'static dyn Program,
    settings: ServerSettings,
    /// All alike, each at a port of its own.
    pub processes: u32,
    /// The cluster that the processes form.
    pub cluster: Option<ClusterLayout>,
    /// None: on this machine.
    hosts: Option<ServerHosts>,
}

impl PartialEq for ServerSpec {
    fn eq(&self, other: &ServerSpec) -> bool {
        let ServerSpec { program, settings, processes, cluster, hosts } = self;
        let names = |hosts: &Option<ServerHosts>| hosts.as_ref().map(|hosts| hosts.names.clone());
        program.name() == other.program.name()
            && *settings == other.settings
            && *processes == other.processes
            && *cluster == other.cluster
            && names(hosts) == names(&other.hosts)
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
        let mut spec = ServerSpec { program, settings, processes, cluster: None, hosts: None };
        let is_cluster = spec.given(CLUSTER).is_some();
        // Each process needs a port of its own.
        let single = ["port", "socket"].into_iter().find(|key| spec.given(key).is_some());
        if let Some(other) = single.filter(|_| is_cluster || processes > 1) {
            let key = if is_cluster { CLUSTER } else { PROCESSES };
            let program = program.name();
            return Err(SettingError::Together { program, key, other }.into());
        }
        if is_cluster && at.is_some() {
            let (program, key, other) = (program.name(), CLUSTER, PROCESSES);
            return Err(SettingError::Together { program, key, other }.into());
        }
        let addresses = spec.addresses().count();
        for process in 0..addresses.max(1) {
            spec.cluster = server::launch::check(program, &spec.settings_of(process))?;
        }
        spec.processes = spec.cluster.map_or(processes, ClusterLayout::nodes);
        Ok(spec)
    }

    /// The same server on other machines.
    ///
    /// # Errors
    /// It would listen where other machines do not reach it.
    pub fn on(mut self, hosts: ServerHosts) -> Result<ServerSpec, String> {
        let name = self.program.name();
        if self.given("socket").is_some() {
            return Err(format!(
                "a `socket` of `server.{name}` is reached on its own machine alone; leave it out"
            ));
        }
        let listens = (0..self.processes as usize).map(|process| self.listen_of(process));
        if listens.flatten().any(|at| at.is_loopback()) {
            return Err(format!(
                "`listen` of `server.{name}` is reached on its own machine alone; leave it out"
            ));
        }
        self.hosts = Some(hosts);
        Ok(self)
    }

    /// The machines on which it is started, if it is not this one.
    pub fn hosts(&self) -> Option<&[String]> {
        self.hosts.as_ref().map(|hosts| hosts.names.as_slice())
    }

    /// What starts it.
    pub fn launcher(&self) -> &dyn Launcher {
        match &self.hosts {
            Some(hosts) => &*hosts.launcher,
            None => &LocalLauncher,
        }
    }

    /// The address at which a process is to listen, if one is given.
    fn listen_of(&self, process: usize) -> Option<IpAddr> {
        let settings = self.settings_of(process);
        let (_, at) = settings.0.iter().find(|(key, _)| key == LISTEN)?;
        at.to_string().parse().ok()
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
            self.listen_of(process).is_some_and(|at| !at.is_loopback() && !at.is_unspecified())
        };
        if self.hosts.is_some() {
            return true;
        }
        self.given("socket").is_none() && (0..self.processes as usize).all(reachable)
    }

    /// The store of this server: that of a cluster's nodes is told that they are one.
    ///
    /// # Errors
    /// The store denies it.
    pub fn store(&self, mut url: StoreUrl) -> Result<StoreUrl, String> {
        if self.cluster.is_some() {
            match url.options.iter().find(|(key, _)| key == CLUSTER) {
                None => url.options.push((CLUSTER.to_owned(), "on".to_owned())),
                Some((_, word)) if word == "on" => {}
                Some((_, word)) => {
                    return Err(format!(
                        "`cluster={word}` of the store, but its server starts a cluster; leave one out"
                    ));
                }
            }
        }
        Ok(url)
    }

    pub fn settings(&self, settings: &mut RunSettings) {
        settings.insert("server".to_owned(), "started".to_owned());
        if self.processes > 1 && self.cluster.is_none() {
            settings.insert(format!("server.{PROCESSES}"), self.processes.to_string());
        }
        if let Some(hosts) = self.hosts() {
            settings.insert(format!("server.{HOSTS}"), hosts.join(","));
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
    fn a_cluster_has_primaries_and_their_replicas() {
        let of = |words: &str| ServerSpec::parse("redis", words);
        let spec = of("cluster=3,replicas=1").unwrap();
        assert_eq!(spec.processes, 6);
        assert_eq!(of("cluster=1").unwrap().processes, 1);
        assert_eq!(of("memory=1GiB").unwrap().cluster, None);
        let url = spec.store("redis://h".parse().unwrap()).unwrap();
        assert_eq!(url.options, [("cluster".to_owned(), "on".to_owned())]);
        assert!(spec.store("redis://h?cluster=off".parse().unwrap()).is_err());
        for (words, why) in [
            ("replicas=1", "beside `cluster"),
            ("cluster=0", "from 1 to 1000"),
            ("cluster=600,replicas=1", "at most 1000 nodes"),
            ("cluster=3,processes=3", "`cluster` and `processes`"),
            ("cluster=3,port=7000", "`cluster` and `port`"),
            ("cluster=3,arguments=[\"--cluster-enabled\"]", "give `cluster` instead"),
        ] {
            let error = of(words).unwrap_err();
            assert!(error.contains(why), "{words}: {error}");
        }
    }

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
