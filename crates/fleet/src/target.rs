//! Which hosts, and how they are reached: `local`, `ssh:m1,m2`, a fleet file, an inventory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::FleetError;
use crate::fleet_file::FleetFile;
use crate::inventory;
use crate::launcher::Launcher;
use crate::local::Local;
use crate::ssh::Ssh;

/// More hosts are a mistake.
const MAX_HOSTS: usize = 1000;
const DEFAULT_LEASE: Duration = Duration::from_secs(60);

/// What starts commands on the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LauncherKind {
    Local,
    Ssh,
}

/// One host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetHost {
    /// Names its results; letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// Where it is: an `ssh` destination.
    pub address: String,
    /// Its price and power: a built-in platform or a file.
    pub platform: Option<String>,
    /// Values of the study that differ on it: `TABLE.KEY=VALUE`.
    pub set: Vec<String>,
    /// Where its agent listens, if other machines reach it at another address than `ssh` does.
    pub listen: Option<String>,
}

impl FleetHost {
    /// A host named by its address.
    pub(crate) fn at(address: &str) -> FleetHost {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        let name = address.trim_start_matches("ssh://").chars().map(plain).collect();
        FleetHost {
            name,
            address: address.to_owned(),
            platform: None,
            set: Vec::new(),
            listen: None,
        }
    }
}

/// The hosts, and what starts commands on them.
#[derive(Debug)]
pub struct FleetTarget {
    pub launcher: Arc<dyn Launcher>,
    pub hosts: Vec<FleetHost>,
    /// A host ends its command when it has not heard from here for so long.
    pub lease: Duration,
    /// Where a host has its folder; None: in the user's cache.
    pub folder: Option<String>,
}

impl FleetTarget {
    /// Reads the value of `--on`.
    ///
    /// # Errors
    /// It names no host, one twice, or a file that cannot be used.
    pub fn parse(text: &str) -> Result<FleetTarget, FleetError> {
        if text == "local" {
            let host = FleetHost::at("local");
            return FleetTarget::new(LauncherKind::Local, vec![host], FleetFile::default());
        }
        if let Some(list) = text.strip_prefix("ssh:") {
            let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
            let hosts = names.map(FleetHost::at).collect();
            return FleetTarget::new(LauncherKind::Ssh, hosts, FleetFile::default());
        }
        if let Some(scheme) = ["slurm", "kubernetes"].iter().find(|name| {
            text.strip_prefix(**name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        }) {
            return Err(request(format!(
                "{scheme} is not supported yet; use `ssh:HOST,...` within an allocation"
            )));
        }
        let (path, group) = match text.rsplit_once(':') {
            Some((path, group)) if !Path::new(text).exists() => (path, Some(group)),
            _ => (text, None),
        };
        if !Path::new(path).exists() {
            return Err(request(format!(
                "{text} is no file; give `local`, `ssh:HOST,...`, a fleet file (fleet.toml) or an \
                 Ansible inventory"
            )));
        }
        let content = safe_file::read_text(Path::new(path), inventory::MAX_BYTES)
            .map_err(|error| request(error.to_string()))?;
        let in_file = |error: FleetError| match error {
            FleetError::Request(why) => request(format!("{path}: {why}")),
            other => other,
        };
        if path.ends_with(".toml") {
            let file = FleetFile::parse(&content).map_err(in_file)?;
            let hosts = file.hosts();
            return FleetTarget::new(file.launcher, hosts, file).map_err(in_file);
        }
        let hosts = inventory::hosts(&content, group).map_err(in_file)?;
        FleetTarget::new(LauncherKind::Ssh, hosts, FleetFile::default()).map_err(in_file)
    }

    fn new(
        kind: LauncherKind,
        hosts: Vec<FleetHost>,
        file: FleetFile,
    ) -> Result<FleetTarget, FleetError> {
        check(&hosts)?;
        let launcher: Arc<dyn Launcher> = match kind {
            LauncherKind::Local => Arc::new(Local),
            LauncherKind::Ssh => {
                let destinations: BTreeMap<_, _> =
                    hosts.iter().map(|host| (host.name.clone(), host.address.clone())).collect();
                Arc::new(Ssh::new(destinations, file.ssh_options())?)
            }
        };
        let lease = file.lease.map_or(DEFAULT_LEASE, |lease| lease.0);
        if lease < Duration::from_secs(5) {
            return Err(request(
                "lease: is at least 5s, so that a short pause ends nothing".to_owned(),
            ));
        }
        Ok(FleetTarget { launcher, hosts, lease, folder: file.folder })
    }
}

fn check(hosts: &[FleetHost]) -> Result<(), FleetError> {
    if hosts.is_empty() {
        return Err(request("names no host; give at least one, as in `ssh:m1,m2`".to_owned()));
    }
    if hosts.len() > MAX_HOSTS {
        return Err(request(format!("{} hosts are more than {MAX_HOSTS}", hosts.len())));
    }
    let mut names = BTreeSet::new();
    for host in hosts {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let name = &host.name;
        if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(plain) {
            return Err(request(format!(
                "host `{name}`: a name has letters, digits, `.`, `_` and `-`, and begins with a \
                 letter or digit; give the rest as `address`"
            )));
        }
        let address = &host.address;
        if address.starts_with('-') || address.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            return Err(request(format!("host `{name}`: `{address}` is no address for ssh")));
        }
        let no_host = |c: char| !c.is_ascii_alphanumeric() && !"._:-".contains(c);
        if let Some(listen) = host.listen.as_ref().filter(|text| text.contains(no_host)) {
            return Err(request(format!(
                "host `{name}`: listen: `{listen}` is no name or IP address of it"
            )));
        }
        if !names.insert(name) {
            return Err(request(format!("host `{name}` is named twice; name each once")));
        }
    }
    Ok(())
}

pub(crate) fn request(words: String) -> FleetError {
    FleetError::Request(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        FleetTarget::parse(text).map(|target| target.hosts.len()).expect_err("refused").to_string()
    }

    #[test]
    fn hosts_of_ssh_are_named_by_their_addresses() {
        let target = FleetTarget::parse("ssh:m1, root@m2,ssh://m3:2222").expect("three hosts");
        let hosts: Vec<_> = target.hosts.iter().map(|host| (&*host.name, &*host.address)).collect();
        assert_eq!(hosts, [("m1", "m1"), ("root-m2", "root@m2"), ("m3-2222", "ssh://m3:2222")]);
    }

    #[test]
    fn bad_hosts_are_refused_with_the_way_out() {
        for (text, words) in [
            ("ssh:", "names no host"),
            ("ssh:m1,m1", "named twice"),
            ("ssh:-oProxyCommand=reboot", "begins with a letter or digit"),
            ("ssh:.m1", "begins with a letter or digit"),
            ("nowhere.toml", "is no file"),
            ("slurm:partition=arm", "not supported yet"),
        ] {
            assert!(why(text).contains(words), "{text}: {}", why(text));
        }
    }
}
