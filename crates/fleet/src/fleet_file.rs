//! `fleet.toml`: the hosts with what differs between them.

use std::collections::BTreeMap;

use model::Span;
use serde::Deserialize;

use crate::error::FleetError;
use crate::kubernetes::{ClusterPlace, PodGroup};
use crate::slurm::SlurmJob;
use crate::target::{FleetHost, HostDevices, LauncherKind, request};

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FleetFile {
    #[serde(default = "ssh")]
    pub launcher: LauncherKind,
    pub lease: Option<Span>,
    pub folder: Option<String>,
    /// A file of `ssh -F`.
    ssh_config: Option<String>,
    /// Slurm's configuration, where it is not the machine's own.
    pub slurm_conf: Option<String>,
    #[serde(default)]
    hosts: BTreeMap<String, HostTable>,
    /// What Slurm allocates.
    #[serde(default)]
    pub jobs: BTreeMap<String, SlurmJob>,
    /// Which cluster of Kubernetes, and what it schedules.
    #[serde(default)]
    pub cluster: ClusterPlace,
    #[serde(default)]
    pub pods: BTreeMap<String, PodGroup>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostTable {
    address: Option<String>,
    platform: Option<String>,
    #[serde(default)]
    set: Vec<String>,
    listen: Option<String>,
    #[serde(default)]
    device: Vec<String>,
    #[serde(default)]
    confirm: Vec<String>,
    #[serde(default)]
    overwrite: Vec<String>,
}

fn ssh() -> LauncherKind {
    LauncherKind::Ssh
}

impl Default for FleetFile {
    fn default() -> Self {
        FleetFile {
            launcher: LauncherKind::Ssh,
            lease: None,
            folder: None,
            ssh_config: None,
            slurm_conf: None,
            hosts: BTreeMap::new(),
            jobs: BTreeMap::new(),
            cluster: ClusterPlace::default(),
            pods: BTreeMap::new(),
        }
    }
}

impl FleetFile {
    pub fn parse(text: &str) -> Result<FleetFile, FleetError> {
        toml::from_str(text).map_err(|error| request(error.to_string().trim_end().to_owned()))
    }

    pub fn hosts(&self) -> Vec<FleetHost> {
        let host = |(name, table): (&String, &HostTable)| FleetHost {
            name: name.clone(),
            address: table.address.clone().unwrap_or_else(|| name.clone()),
            platform: table.platform.clone(),
            set: table.set.clone(),
            listen: table.listen.clone(),
            devices: HostDevices {
                device: table.device.clone(),
                confirm: table.confirm.clone(),
                overwrite: table.overwrite.clone(),
            },
            job: None,
        };
        self.hosts.iter().map(host).collect()
    }

    pub fn ssh_options(&self) -> Vec<String> {
        self.ssh_config.iter().flat_map(|file| ["-F".to_owned(), file.clone()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_what_differs() {
        let file = FleetFile::parse(
            "lease = \"30s\"\nfolder = \"/mnt/nvme\"\n[hosts.arm]\naddress = \"root@10.0.0.7\"\n\
             platform = \"arm.toml\"\nset = [\"data.records=1M\"]\n[hosts.x86]\n",
        )
        .expect("a fleet");
        let hosts = file.hosts();
        assert_eq!((&*hosts[0].name, &*hosts[0].address), ("arm", "root@10.0.0.7"));
        assert_eq!(hosts[0].set, ["data.records=1M"]);
        assert_eq!((&*hosts[1].name, &*hosts[1].address), ("x86", "x86"));
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let error = FleetFile::parse("[hosts.m1]\nadress = \"m1\"\n").expect_err("refused");
        assert!(error.to_string().contains("line 2") && error.to_string().contains("adress"));
    }
}
