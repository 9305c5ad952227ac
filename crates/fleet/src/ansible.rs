//! Any inventory of Ansible, as its own `ansible-inventory` reads it: YAML, ranges, variables of
//! groups, plug-ins. Source: Ansible's documentation, "ansible-inventory", `--list`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::error::FleetError;
use crate::inventory::{below, no_host, reached};
use crate::limited::output;
use crate::target::{FleetHost, request};

const PROGRAM: &str = "ansible-inventory";
/// Plug-ins may ask a cloud for its machines.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
struct Listed {
    #[serde(rename = "_meta")]
    meta: Meta,
    #[serde(flatten)]
    groups: BTreeMap<String, Group>,
}

#[derive(Deserialize)]
struct Meta {
    hostvars: BTreeMap<String, BTreeMap<String, Value>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Group {
    hosts: Vec<String>,
    children: Vec<String>,
}

/// The hosts of a group, or of all groups; None where Ansible is not installed.
pub(crate) fn hosts(
    path: &Path,
    group: Option<&str>,
) -> Result<Option<Vec<FleetHost>>, FleetError> {
    let path_variable = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path_variable).any(|folder| folder.join(PROGRAM).is_file()) {
        return Ok(None);
    }
    let mut command = Command::new(PROGRAM);
    command.arg("--list").arg("-i").arg(std::path::absolute(path).unwrap_or_else(|_| path.into()));
    // Otherwise what it cannot read is an empty inventory.
    command.env("ANSIBLE_INVENTORY_UNPARSED_FAILED", "True").env("ANSIBLE_NOCOLOR", "1");
    let printed = output(command, io::empty(), LIMIT, PROGRAM, "reading an inventory")?;
    if printed.code != Some(0) {
        let words: Vec<&str> = printed.stderr.split_whitespace().collect();
        return Err(request(format!("{PROGRAM}: {}", words.join(" "))));
    }
    let listed: Listed = serde_json::from_str(&printed.stdout)
        .map_err(|error| request(format!("{PROGRAM}: its output is not understood: {error}")))?;
    listed.hosts(group).map(Some)
}

impl Listed {
    fn hosts(&self, group: Option<&str>) -> Result<Vec<FleetHost>, FleetError> {
        let children =
            self.groups.iter().map(|(name, own)| (name.clone(), own.children.clone())).collect();
        let mut all: Vec<FleetHost> = Vec::new();
        for group in below(group.unwrap_or("all"), &children, 0) {
            for name in self.groups.get(&group).into_iter().flat_map(|group| &group.hosts) {
                if all.iter().all(|known| known.name != FleetHost::at(name).name) {
                    all.push(self.host(name)?);
                }
            }
        }
        if all.is_empty() {
            let known: Vec<_> = self.groups.keys().map(String::as_str).collect();
            return Err(no_host(group, &known));
        }
        Ok(all)
    }

    fn host(&self, name: &str) -> Result<FleetHost, FleetError> {
        let variables = self.meta.hostvars.get(name).into_iter().flatten();
        let words = variables.map(|(key, value)| match value {
            Value::String(text) => (key.as_str(), text.clone()),
            other => (key.as_str(), other.to_string()),
        });
        reached(name, words).map_err(|why| request(format!("{name}: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = r#"{
        "_meta": {"hostvars": {
            "a1": {"ansible_host": "10.0.0.1", "ansible_port": 2200, "ansible_user": "bench"},
            "x1": {"ansible_ssh_pipelining": true, "rack": {"row": 7}},
            "db": {"ansible_connection": "docker"}
        }},
        "all": {"children": ["ungrouped", "both", "boxes"]},
        "both": {"children": ["arm", "x86"]},
        "arm": {"hosts": ["a1", "a2"]}, "x86": {"hosts": ["a2", "x1"]}, "boxes": {"hosts": ["db"]}
    }"#;

    fn of(group: Option<&str>) -> Result<Vec<String>, String> {
        let listed: Listed = serde_json::from_str(LISTED).expect("an inventory");
        let hosts = listed.hosts(group).map_err(|error| error.to_string())?;
        Ok(hosts.into_iter().map(|host| format!("{}={}", host.name, host.address)).collect())
    }

    #[test]
    fn hosts_stand_once_in_the_order_of_their_groups() {
        let arm = ["a1=ssh://bench@10.0.0.1:2200", "a2=a2"];
        assert_eq!(of(Some("arm")).expect("hosts"), arm);
        assert_eq!(
            of(Some("x86")).unwrap_err(),
            "x1: `ansible_ssh_pipelining` is not read; put \
            it into your ssh configuration"
        );
        assert!(of(None).unwrap_err().contains("x1"));
        assert!(of(Some("boxes")).unwrap_err().starts_with("db: `ansible_connection`"));
        let none = of(Some("gpu")).unwrap_err();
        assert!(none.contains("group `gpu` has no host; groups are all, arm"), "{none}");
    }

    #[test]
    fn what_ansible_reads_is_read() {
        let place = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            std::fs::write(&path, text).expect("written");
            path
        };
        let yaml = "arm:\n  hosts:\n    arm[1:3]:\n  vars: {ansible_user: bench}\n";
        let Some(hosts) = hosts(&write("hosts.yml", yaml), Some("arm")).expect("hosts") else {
            eprintln!("SKIPPED: {PROGRAM} is not installed");
            return;
        };
        let addresses: Vec<&str> = hosts.iter().map(|host| &*host.address).collect();
        assert_eq!(addresses, ["bench@arm1", "bench@arm2", "bench@arm3"]);
        let bad = super::hosts(&write("bad.yml", ": : bad\n"), None).unwrap_err().to_string();
        assert!(bad.contains("Failed to parse"), "{bad}");
    }
}
