//! The resources of an agent's machine that a coordinator may use.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use model::Address;
use store::{MachineResource, StoreUrl};

/// The environment variables, files and servers that an agent's command line allows. Coordinators
/// name them in store URLs; without this check they could have any secret of the agent's machine
/// sent to a server of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentPermissions {
    pub variables: Vec<String>,
    pub files: Vec<PathBuf>,
    /// Without any, all servers behind TCP may be loaded, but nothing of the agent's is sent there.
    pub servers: Vec<AllowedServer>,
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
    fn sockets_of_the_machine_need_permission() {
        let error = check(&AgentPermissions::default(), "redis:///run/docker.sock").unwrap_err();
        assert!(error.contains("--allow-server /run/docker.sock"), "{error}");
    }
}
