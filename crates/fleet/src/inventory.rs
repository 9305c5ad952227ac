//! Ansible's inventory in its INI form, where Ansible is not installed: groups, `ansible_host`, `ansible_user`, `ansible_port`.
//! Source: Ansible's documentation, "How to build your inventory".

use std::collections::BTreeMap;

use crate::error::FleetError;
use crate::target::{FleetHost, request};

/// A longer file is a mistake.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// The hosts of a group, or of all groups.
pub(crate) fn hosts(text: &str, group: Option<&str>) -> Result<Vec<FleetHost>, FleetError> {
    let mut groups: BTreeMap<String, Vec<FleetHost>> = BTreeMap::new();
    let mut children: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut section = Section::Hosts("ungrouped".to_owned());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            section = Section::of(name, number)?;
            continue;
        }
        match &section {
            Section::Hosts(group) => {
                groups.entry(group.clone()).or_default().push(host(line, number)?);
            }
            Section::Children(group) => {
                children.entry(group.clone()).or_default().push(line.to_owned());
            }
            Section::Variables => refuse_variables(line, number)?,
        }
    }
    let wanted = match group {
        None | Some("all") => groups.keys().cloned().collect(),
        Some(group) => below(group, &children, 0),
    };
    let mut all: Vec<FleetHost> = Vec::new();
    for host in wanted.iter().filter_map(|group| groups.get(group)).flatten() {
        match all.iter_mut().find(|other| other.name == host.name) {
            // A host may stand in several groups, with its address in one of them.
            Some(other) if other.address == other.name => *other = host.clone(),
            Some(_) => {}
            None => all.push(host.clone()),
        }
    }
    if all.is_empty() {
        let known: Vec<_> = groups.keys().map(String::as_str).collect();
        return Err(no_host(group, &known));
    }
    Ok(all)
}

pub(crate) fn no_host(group: Option<&str>, known: &[&str]) -> FleetError {
    request(match group {
        Some(group) => format!("group `{group}` has no host; groups are {}", known.join(", ")),
        None => "has no host".to_owned(),
    })
}

/// Refuses variables of a group that say how its hosts are reached; others do not matter here.
fn refuse_variables(line: &str, number: usize) -> Result<(), FleetError> {
    let key = line.split(['=', ':']).next().unwrap_or_default().trim();
    if ["ansible_host", "ansible_user", "ansible_port"].contains(&key) || is_of_ssh(key) {
        return Err(request(format!(
            "line {number}: `{key}` of a group is not read; give it to each host, or to your ssh \
             configuration"
        )));
    }
    Ok(())
}

/// Variables for Ansible's own calls of ssh.
fn is_of_ssh(key: &str) -> bool {
    key.starts_with("ansible_ssh_") || key == "ansible_connection"
}

/// A group and the groups in it.
pub(crate) fn below(
    group: &str,
    children: &BTreeMap<String, Vec<String>>,
    depth: u32,
) -> Vec<String> {
    // Groups that contain each other.
    if depth > 20 {
        return Vec::new();
    }
    let inner = children.get(group).into_iter().flatten();
    let mut all = vec![group.to_owned()];
    all.extend(inner.flat_map(|inner| below(inner, children, depth + 1)));
    all
}

enum Section {
    Hosts(String),
    Children(String),
    Variables,
}

impl Section {
    fn of(text: &str, line: usize) -> Result<Section, FleetError> {
        let name = text.strip_suffix(']').ok_or_else(|| {
            request(format!("line {line}: `[{text}` has no end; a group is `[NAME]`"))
        })?;
        Ok(match name.rsplit_once(':') {
            Some((_, "vars")) => Section::Variables,
            Some((group, "children")) => Section::Children(group.to_owned()),
            Some((_, other)) => {
                return Err(request(format!(
                    "line {line}: `{other}` is neither `vars` nor `children`"
                )));
            }
            None => Section::Hosts(name.to_owned()),
        })
    }
}

fn host(line: &str, number: usize) -> Result<FleetHost, FleetError> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    if name.contains(['[', ',']) || name.ends_with(':') {
        return Err(request(format!(
            "line {number}: `{name}` is no host; ranges and YAML are read where Ansible is \
             installed, else write one host a line"
        )));
    }
    let pairs = words.filter_map(|word| word.split_once('='));
    let pairs = pairs.map(|(key, value)| (key, value.trim_matches(['"', '\'']).to_owned()));
    reached(name, pairs).map_err(|why| request(format!("line {number}: {why}")))
}

/// A host that is reached as its variables say.
pub(crate) fn reached<'v>(
    name: &str,
    variables: impl Iterator<Item = (&'v str, String)>,
) -> Result<FleetHost, String> {
    let mut host = FleetHost::at(name);
    let (mut user, mut port) = (None, None);
    for (key, value) in variables {
        match key {
            "ansible_host" => host.address = value,
            "ansible_user" => user = Some(value),
            "ansible_port" => port = Some(value),
            "ansible_connection" if value == "ssh" => {}
            _ if is_of_ssh(key) => {
                return Err(format!("`{key}` is not read; put it into your ssh configuration"));
            }
            _ => {}
        }
    }
    if let Some(user) = user {
        host.address = format!("{user}@{}", host.address);
    }
    if let Some(port) = port {
        host.address = format!("ssh://{}:{port}", host.address);
    }
    Ok(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# machines\nlone ansible_host=10.0.0.1\n\n[arm]\n\
        a1 ansible_host=10.0.0.7 ansible_user=root ansible_port=2222\na2\n[x86]\nx1\n\
        [servers:children]\narm\nx86\n[servers:vars]\nrack=7\n";

    fn named(group: Option<&str>) -> Vec<(String, String)> {
        let hosts = hosts(TEXT, group).expect("hosts");
        hosts.into_iter().map(|host| (host.name, host.address)).collect()
    }

    #[test]
    fn groups_and_addresses_are_ansibles() {
        assert_eq!(named(Some("arm"))[0], ("a1".into(), "ssh://root@10.0.0.7:2222".into()));
        assert_eq!(named(Some("servers")).len(), 3);
        assert_eq!(named(None).len(), 4);
        assert_eq!(named(Some("all")).len(), 4);
    }

    #[test]
    fn what_is_not_read_is_named_with_its_line() {
        for (text, words) in [
            ("[arm\n", "line 1"),
            ("ok\nweb[1:9]\n", "line 2"),
            ("all:\n  hosts:\n", "line 1"),
            ("[a:what]\n", "neither `vars` nor `children`"),
            ("m1\n[all:vars]\nansible_user=root\n", "line 3: `ansible_user` of a group"),
            ("m1 ansible_ssh_private_key_file=~/k\n", "line 1: `ansible_ssh_private_key_file`"),
            ("# none\n", "has no host"),
        ] {
            let error = hosts(text, None).expect_err("refused").to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(hosts(TEXT, Some("gpu")).expect_err("no group").to_string().contains("arm"));
    }
}
