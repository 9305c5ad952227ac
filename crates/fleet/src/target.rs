//! Which hosts, and how they are reached: `local`, `ssh:m1,m2`, `slurm:nodes=2`,
//! `kubernetes:nodes=2`, a fleet file, an inventory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::ansible;
use crate::error::FleetError;
use crate::fleet_file::FleetFile;
use crate::host_request::{EarlierAttempt, HostRequest};
use crate::inventory;
use crate::kubernetes;
use crate::launcher::Launcher;
use crate::local::Local;
use crate::slurm::{self, Client, SlurmRequest};
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
    Slurm,
    Kubernetes,
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
    pub devices: HostDevices,
    /// Which of a scheduler's jobs it belongs to.
    pub job: Option<String>,
}

/// The devices of a host whose work units are measured: `--device`, `--confirm`, `--overwrite`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostDevices {
    pub device: Vec<String>,
    pub confirm: Vec<String>,
    pub overwrite: Vec<String>,
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
            devices: HostDevices::default(),
            job: None,
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
    /// What a scheduler is to allocate before there are hosts.
    queued: Option<Box<dyn HostRequest>>,
}

impl FleetTarget {
    /// Reads the value of `--on`.
    ///
    /// # Errors
    /// It names no host, one twice, or a file that cannot be used.
    pub fn parse(text: &str) -> Result<FleetTarget, FleetError> {
        if text == "local" {
            let host = FleetHost::at("local");
            return FleetTarget::local(vec![host], FleetFile::default());
        }
        if let Some(list) = text.strip_prefix("ssh:") {
            let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
            let hosts = names.map(FleetHost::at).collect();
            return FleetTarget::ssh(hosts, FleetFile::default());
        }
        if let Some(list) = after_scheme(text, "slurm") {
            return FleetTarget::scheduled(slurm::parse(list)?);
        }
        if let Some(list) = after_scheme(text, "kubernetes") {
            return FleetTarget::in_pods(kubernetes::parse(list)?);
        }
        let (path, group) = match text.rsplit_once(':') {
            Some((path, group)) if !Path::new(text).exists() => (path, Some(group)),
            _ => (text, None),
        };
        if !Path::new(path).exists() {
            return Err(request(format!(
                "{text} is no file; give `local`, `ssh:HOST,...`, `slurm:...`, `kubernetes:...`, \
                 a fleet file (fleet.toml) or an Ansible inventory"
            )));
        }
        let content = || {
            safe_file::read_text(Path::new(path), inventory::MAX_BYTES)
                .map_err(|error| request(error.to_string()))
        };
        let in_file = |error: FleetError| match error {
            FleetError::Request(why) => request(format!("{path}: {why}")),
            other => other,
        };
        if path.ends_with(".toml") {
            let file = FleetFile::parse(&content()?).map_err(in_file)?;
            let hosts = file.hosts();
            let target = match file.launcher {
                LauncherKind::Local => FleetTarget::local(hosts, file),
                LauncherKind::Ssh => FleetTarget::ssh(hosts, file),
                LauncherKind::Slurm => FleetTarget::scheduled(file),
                LauncherKind::Kubernetes => FleetTarget::in_pods(file),
            };
            return target.map_err(in_file);
        }
        let by_ansible = ansible::hosts(Path::new(path), group).map_err(in_file)?;
        let hosts = match by_ansible {
            Some(hosts) => hosts,
            None => inventory::hosts(&content()?, group).map_err(in_file)?,
        };
        FleetTarget::ssh(hosts, FleetFile::default()).map_err(in_file)
    }

    fn local(hosts: Vec<FleetHost>, file: FleetFile) -> Result<FleetTarget, FleetError> {
        check_named(&hosts, &file)?;
        FleetTarget::with(Arc::new(Local), hosts, file, None)
    }

    fn ssh(hosts: Vec<FleetHost>, file: FleetFile) -> Result<FleetTarget, FleetError> {
        check_named(&hosts, &file)?;
        let destinations: BTreeMap<_, _> =
            hosts.iter().map(|host| (host.name.clone(), host.address.clone())).collect();
        let ssh = Ssh::new(destinations, file.ssh_options())?;
        FleetTarget::with(Arc::new(ssh), hosts, file, None)
    }

    /// Hosts that Slurm has yet to allocate.
    fn scheduled(mut file: FleetFile) -> Result<FleetTarget, FleetError> {
        if !file.hosts().is_empty() {
            return Err(request(
                "[hosts]: Slurm allocates the hosts; describe them in `[jobs.NAME]`".to_owned(),
            ));
        }
        let client = Client { conf: file.slurm_conf.take() };
        let queued = SlurmRequest { client, jobs: std::mem::take(&mut file.jobs) };
        queued.check()?;
        FleetTarget::with(Arc::new(Local), Vec::new(), file, Some(Box::new(queued)))
    }

    /// Hosts that Kubernetes has yet to schedule.
    fn in_pods(mut file: FleetFile) -> Result<FleetTarget, FleetError> {
        if !file.hosts().is_empty() || !file.jobs.is_empty() || file.slurm_conf.is_some() {
            return Err(request(
                "Kubernetes schedules the hosts; describe them in `[pods.NAME]`, and nothing in \
                 `[hosts]` or `[jobs]`"
                    .to_owned(),
            ));
        }
        let queued = kubernetes::scheduled(&mut file)?;
        FleetTarget::with(Arc::new(Local), Vec::new(), file, Some(queued))
    }

    fn with(
        launcher: Arc<dyn Launcher>,
        hosts: Vec<FleetHost>,
        file: FleetFile,
        queued: Option<Box<dyn HostRequest>>,
    ) -> Result<FleetTarget, FleetError> {
        let lease = file.lease.map_or(DEFAULT_LEASE, |lease| lease.0);
        if lease < Duration::from_secs(5) {
            return Err(request(
                "lease: is at least 5s, so that a short pause ends nothing".to_owned(),
            ));
        }
        Ok(FleetTarget { launcher, hosts, lease, folder: file.folder, queued })
    }

    /// Whether a scheduler has yet to allocate the hosts.
    pub fn is_scheduled(&self) -> bool {
        self.queued.is_some()
    }

    /// The names of the hosts; numbers where a scheduler has yet to give them.
    ///
    /// # Errors
    /// The scheduler does not know an allocation that is named.
    pub fn names(&self) -> Result<Vec<String>, FleetError> {
        match &self.queued {
            Some(queued) => Ok((1..=queued.count()?).map(|at| format!("host{at}")).collect()),
            None => Ok(self.hosts.iter().map(|host| host.name.clone()).collect()),
        }
    }

    /// What would be created of a scheduler, as its own tools take it.
    pub fn manifest(&self) -> Option<serde_json::Value> {
        self.queued.as_ref()?.manifest(self.lease)
    }

    /// Gets the hosts from a scheduler, if there is one; `tell` shows how its jobs wait. They are
    /// given back by [`Launcher::release_all`], or when this process ends, however it ends.
    ///
    /// # Errors
    /// The scheduler refuses a job, or it does not start within its limit; `stop` was set.
    pub fn acquire(
        &mut self,
        earlier: EarlierAttempt<'_>,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), FleetError> {
        let Some(queued) = &self.queued else { return Ok(()) };
        let (launcher, hosts) = queued.acquire(self.lease, earlier, stop, tell)?;
        check(&hosts)?;
        self.launcher = launcher;
        self.hosts = hosts;
        Ok(())
    }
}

/// What follows `SCHEME:`; Some(None) for `SCHEME` alone.
fn after_scheme<'a>(text: &'a str, scheme: &str) -> Option<Option<&'a str>> {
    let rest = text.strip_prefix(scheme)?;
    match rest.strip_prefix(':') {
        Some(list) => Some(Some(list)),
        None => rest.is_empty().then_some(None),
    }
}

/// Checks hosts that the user names.
fn check_named(hosts: &[FleetHost], file: &FleetFile) -> Result<(), FleetError> {
    if !file.jobs.is_empty() || file.slurm_conf.is_some() {
        return Err(request(
            "`jobs` and `slurm_conf` need `launcher = \"slurm\"`; add it, or name `hosts`"
                .to_owned(),
        ));
    }
    if !file.pods.is_empty() || file.cluster != Default::default() {
        return Err(request(
            "`pods` and `cluster` need `launcher = \"kubernetes\"`; add it".to_owned(),
        ));
    }
    check(hosts)
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
    fn a_file_may_have_jobs_of_slurm_instead_of_hosts() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("fleet.toml");
        let parse = |text: &str| {
            std::fs::write(&file, text).expect("written");
            FleetTarget::parse(file.to_str().expect("a name"))
        };
        let jobs = "[jobs.arm]\npartition = \"arm\"\nnodes = 2\ntime = \"2h\"\n[jobs.x86]\n";
        let target = parse(&format!("launcher = \"slurm\"\n{jobs}")).expect("a fleet");
        assert!(target.hosts.is_empty());
        let request = format!("{:?}", target.queued.expect("jobs"));
        assert!(request.contains("\"x86\"") && request.contains("nodes: Some(2)"), "{request}");
        for (text, words) in [
            ("launcher = \"slurm\"", "names no job"),
            ("launcher = \"slurm\"\n[hosts.m1]\n[jobs.arm]", "Slurm allocates the hosts"),
            ("launcher = \"slurm\"\n[jobs.arm]\nnodes = 0", "arm: nodes: is at least 1"),
            ("[hosts.m1]\n[jobs.arm]", "need `launcher = \"slurm\"`"),
        ] {
            let error = parse(text).map(|target| target.hosts).expect_err("refused").to_string();
            assert!(error.contains("fleet.toml: ") && error.contains(words), "{text}: {error}");
        }
    }

    #[cfg(not(feature = "kubernetes"))]
    #[test]
    fn pods_are_refused_by_the_name_of_the_feature_that_is_off() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("fleet.toml");
        std::fs::write(&file, "launcher = \"kubernetes\"\n[pods.a]\nimage = \"a\"\n")
            .expect("written");
        for text in ["kubernetes", "kubernetes:nodes=2", file.to_str().expect("a name")] {
            let why = why(text);
            assert!(why.contains("built without it; take a released one"), "{text}: {why}");
            assert!(why.contains("--features kubernetes"), "{text}: {why}");
        }
    }

    #[test]
    fn bad_hosts_are_refused_with_the_way_out() {
        for (text, words) in [
            ("ssh:", "names no host"),
            ("ssh:m1,m1", "named twice"),
            ("ssh:-oProxyCommand=reboot", "begins with a letter or digit"),
            ("ssh:.m1", "begins with a letter or digit"),
            ("nowhere.toml", "is no file"),
            ("slurm:nodes=0", "nodes: is at least 1"),
        ] {
            assert!(why(text).contains(words), "{text}: {}", why(text));
        }
    }
}
