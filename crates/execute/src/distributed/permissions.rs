//! The resources of an agent's machine that a coordinator may use.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use host::ProbeChoice;
use host::knob::Knobs;
use model::Address;
use store::{MachineResource, StoreUrl};

use super::MachineAssignment;

/// The environment variables, files and servers that an agent's command line allows. Coordinators
/// name them in store URLs; without this check they could have any secret of the agent's machine
/// sent to a server of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentPermissions {
    pub variables: Vec<String>,
    pub files: Vec<PathBuf>,
    /// Without any, all servers behind TCP may be loaded, but nothing of the agent's is sent there.
    pub servers: Vec<AllowedServer>,
    pub knobs: Vec<AllowedKnob>,
    pub probes: Vec<AllowedProbe>,
}

/// A knob that may be turned, to one level or to any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedKnob {
    knob: String,
    level: Option<String>,
}

impl AllowedKnob {
    /// Reads `KNOB` or `KNOB=LEVEL`.
    ///
    /// # Errors
    /// There is no such knob.
    pub fn parse(text: &str) -> Result<AllowedKnob, String> {
        let (knob, level) = match text.split_once('=') {
            Some((knob, level)) => (knob, Some(level.to_owned())),
            None => (text, None),
        };
        Knobs::find(knob).map_err(|error| error.to_string())?;
        Ok(AllowedKnob { knob: knob.to_owned(), level })
    }
}

/// A probe that may be read, by its name; `energy` stands for all its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedProbe(String);

impl AllowedProbe {
    /// # Errors
    /// There is no such probe.
    pub fn parse(text: &str) -> Result<AllowedProbe, String> {
        ProbeChoice::Off.take(text).map_err(|error| error.to_string())?;
        Ok(AllowedProbe(text.to_owned()))
    }
}

/// A server that may be loaded, at one port of it or at all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedServer(Address);

/// The port that stands for all of them; no server has it.
const ANY_PORT: u16 = 0;

/// The flags that allow more.
const ALLOW_VARIABLE: &str = "--allow-env";
const ALLOW_FILE: &str = "--allow-file";
const ALLOW_SERVER: &str = "--allow-server";
const ALLOW_KNOB: &str = "--allow-knob";
const ALLOW_PROBE: &str = "--allow-probe";

impl AllowedServer {
    /// Reads `HOST`, `HOST:PORT` or the path of a unix socket.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<AllowedServer, String> {
        Address::parse(text, ANY_PORT).map(AllowedServer).map_err(|error| error.to_string())
    }

    fn is(&self, server: &Address) -> bool {
        match (&self.0, server) {
            (Address::Unix(own), Address::Unix(path)) => own == path,
            (Address::Tcp { host: own, port: own_port }, Address::Tcp { host, port }) => {
                same_host(own, host) && (*own_port == ANY_PORT || own_port == port)
            }
            _ => false,
        }
    }
}

/// Compares hosts as written: names are not resolved.
fn same_host(own: &str, other: &str) -> bool {
    match (own.parse::<IpAddr>(), other.parse::<IpAddr>()) {
        (Ok(own), Ok(other)) => own == other,
        _ => own.eq_ignore_ascii_case(other),
    }
}

impl AgentPermissions {
    /// Opens nothing, so that the existence of a file is not revealed to a coordinator without
    /// permission.
    ///
    /// # Errors
    /// What is not allowed, and the flag of the agent that would allow it.
    pub(super) fn check(&self, store: &StoreUrl) -> Result<(), PermissionDenied> {
        let named = store.local().map_err(|error| PermissionDenied(error.to_string()))?;
        for (option, local, value) in &named {
            let (allowed, what, flag) = match local {
                MachineResource::Variable => {
                    (self.variables.iter().any(|own| own == value), "variable", ALLOW_VARIABLE)
                }
                MachineResource::File => {
                    (self.files.iter().any(|own| own == Path::new(value)), "file", ALLOW_FILE)
                }
            };
            if !allowed {
                return Err(PermissionDenied(format!(
                    "this agent may not use the {what} `{value}` that `{option}` names; start it \
                     with `{flag} {value}` to allow it"
                )));
            }
        }
        let is_cluster = |(name, value): &(String, String)| {
            name == "cluster" && matches!(value.as_str(), "on" | "true")
        };
        if store.options.iter().any(is_cluster) && !(self.servers.is_empty() && named.is_empty()) {
            return Err(PermissionDenied(
                "a cluster names servers of its own, and this agent may load only those that it \
                 allows; start it without `--allow-server`, and the cluster without a login"
                    .to_owned(),
            ));
        }
        for server in &store.servers {
            let why = match server {
                _ if self.servers.iter().any(|own| own.is(server)) => continue,
                _ if !self.servers.is_empty() => "it may load only the servers that it allows",
                _ if !named.is_empty() => {
                    "its variables and files are only for servers that it allows"
                }
                Address::Unix(_) => "a unix socket of its machine must be allowed",
                Address::Tcp { .. } => continue,
            };
            return Err(PermissionDenied(format!(
                "this agent may not load {server}: {why}; start it with `{ALLOW_SERVER} {server}` \
                 to allow it"
            )));
        }
        Ok(())
    }

    /// # Errors
    /// A knob or probe that is not allowed, and the flag of the agent that would allow it.
    pub(super) fn check_machine(&self, wanted: &MachineAssignment) -> Result<(), PermissionDenied> {
        for (knob, level) in &wanted.knobs {
            let allows = |own: &AllowedKnob| {
                own.knob == *knob && own.level.as_ref().is_none_or(|own| own == level)
            };
            if !self.knobs.iter().any(allows) {
                return Err(PermissionDenied(format!(
                    "this agent may not turn `{knob}={level}`; start it with `{ALLOW_KNOB} \
                     {knob}={level}`, or `{ALLOW_KNOB} {knob}` for every level"
                )));
            }
        }
        match wanted.probes.iter().find(|probe| !self.probes.iter().any(|own| own.0 == **probe)) {
            None => Ok(()),
            Some(probe) => Err(PermissionDenied(format!(
                "this agent may not read the probe `{probe}`; start it with `{ALLOW_PROBE} {probe}`"
            ))),
        }
    }
}

/// A message for the coordinator's user.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PermissionDenied(String);

impl fmt::Display for PermissionDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(allowed: &AgentPermissions, url: &str) -> Result<(), String> {
        allowed.check(&url.parse().unwrap()).map_err(|refused| refused.to_string())
    }

    fn servers(texts: &[&str]) -> Vec<AllowedServer> {
        texts.iter().map(|text| AllowedServer::parse(text).unwrap()).collect()
    }

    #[test]
    fn variables_and_files_need_permission() {
        let none = AgentPermissions::default();
        assert_eq!(check(&none, "redis://h"), Ok(()));
        for (option, flag) in [
            ("password_env=AWS_SECRET_ACCESS_KEY", "--allow-env AWS_SECRET_ACCESS_KEY"),
            ("password_file=/root/secret", "--allow-file /root/secret"),
            ("tls=on&ca=/root/ca.pem", "--allow-file /root/ca.pem"),
            ("tls=on&cert=/c&key=/k", "--allow-file /c"),
        ] {
            for scheme in ["redis", "memcached"] {
                let error = check(&none, &format!("{scheme}://h?user=u&{option}")).unwrap_err();
                assert!(error.contains(flag), "{error}");
            }
        }
        let some = AgentPermissions {
            variables: vec!["ONE".to_owned()],
            files: vec!["/etc/one".into()],
            servers: servers(&["h"]),
            ..AgentPermissions::default()
        };
        assert_eq!(check(&some, "redis://h?password_env=ONE"), Ok(()));
        assert_eq!(check(&some, "redis://h:1?password_file=/etc/one&tls=on"), Ok(()));
        for url in [
            "redis://h?password_env=TWO",
            "redis://h?password_env=one",
            "redis://h?password_file=/etc/one/",
            "redis://h?password_file=/etc/../etc/one",
            "redis://h?password_file=/etc/two",
        ] {
            let allowed = check(&some, url);
            // A slash at the end is the same path, and no other file.
            assert_eq!(allowed.is_ok(), url.ends_with("one/"), "{url}: {allowed:?}");
        }
    }

    #[test]
    fn a_cluster_cannot_name_servers_that_are_not_allowed() {
        let url = "redis://h:7?cluster=on";
        assert_eq!(check(&AgentPermissions::default(), url), Ok(()));
        let mut allowed = AgentPermissions { servers: servers(&["h:7"]), ..Default::default() };
        let error = check(&allowed, url).unwrap_err();
        assert!(error.contains("a cluster names servers of its own"), "{error}");
        allowed.variables = vec!["ONE".to_owned()];
        assert!(check(&allowed, "redis://h:7?password_env=ONE&cluster=true").is_err());
    }

    #[test]
    fn secrets_go_to_allowed_servers_only() {
        let mut allowed =
            AgentPermissions { variables: vec!["ONE".to_owned()], ..AgentPermissions::default() };
        let error = check(&allowed, "redis://h:7?password_env=ONE").unwrap_err();
        assert!(error.contains("--allow-server h:7"), "{error}");
        allowed.servers = servers(&["h:7", "[::1]", "/run/one.sock", "Name"]);
        for (servers, good) in [
            ("h:7", true),
            ("h:7,[::1]:9", true),
            ("[0:0::1]:9", true),
            ("/run/one.sock", true),
            ("nAME:1", true),
            ("h:8", false),
            ("h:7,evil", false),
            ("127.0.0.1", false),
            ("/run/two.sock", false),
        ] {
            for options in ["?password_env=ONE", ""] {
                let url = format!("redis://{servers}{options}");
                assert_eq!(check(&allowed, &url).is_ok(), good, "{url}");
            }
        }
    }

    #[test]
    fn knobs_and_probes_need_permission() {
        let wanted = |knob: (&str, &str), probe: &str| MachineAssignment {
            knobs: vec![(knob.0.to_owned(), knob.1.to_owned())],
            probes: vec![probe.to_owned()],
        };
        let check = |allowed: &AgentPermissions, wanted: &MachineAssignment| {
            allowed.check_machine(wanted).map_err(|denied| denied.to_string())
        };
        let mut allowed = AgentPermissions::default();
        assert_eq!(check(&allowed, &MachineAssignment::default()), Ok(()));
        let off = wanted(("ddio", "off"), "counters");
        assert!(check(&allowed, &off).unwrap_err().contains("--allow-knob ddio=off"));
        allowed.knobs = vec![AllowedKnob::parse("ddio=off").unwrap()];
        assert!(check(&allowed, &off).unwrap_err().contains("--allow-probe counters"));
        allowed.probes = vec![AllowedProbe::parse("counters").unwrap()];
        assert_eq!(check(&allowed, &off), Ok(()));
        for (knob, probe) in [
            (("ddio", "on"), "counters"),
            (("turbo", "off"), "counters"),
            (("ddio", "off"), "rapl"),
        ] {
            assert!(check(&allowed, &wanted(knob, probe)).is_err(), "{knob:?} {probe}");
        }
        allowed.knobs.push(AllowedKnob::parse("ddio").unwrap());
        assert_eq!(check(&allowed, &wanted(("ddio", "on"), "counters")), Ok(()));
        assert!(AllowedKnob::parse("volume=11").unwrap_err().contains("no knob `volume`"));
        // Settings of probes could name programs and devices.
        assert!(AllowedProbe::parse("command=sh").unwrap_err().contains("no probe"));
    }

    #[test]
    fn sockets_of_the_machine_need_permission() {
        let error = check(&AgentPermissions::default(), "redis:///run/docker.sock").unwrap_err();
        assert!(error.contains("--allow-server /run/docker.sock"), "{error}");
    }
}
