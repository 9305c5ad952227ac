use model::cpu_list;

use super::Facts;
use super::topology::online;
use crate::format;
use crate::parse::kilobytes;
use crate::root::{Root, RootError};

const NODES: &str = "/sys/devices/system/node";

/// One NUMA node.
pub(crate) struct NumaNode {
    pub number: u32,
    pub cpu_list: String,
    pub cpus: usize,
    pub memory: u64,
}

pub(crate) fn nodes(root: &Root) -> Result<Vec<NumaNode>, RootError> {
    let numbers = root.numbered(NODES, "node")?;
    if numbers.is_empty() {
        return Err(RootError::Missing { path: format!("{NODES}/node0") });
    }
    numbers.into_iter().map(|number| node(root, number)).collect()
}

/// The CPUs of a NUMA node such as `node0`; `None` without such a node. A kernel without nodes is
/// one.
///
/// # Errors
/// The CPUs of the machine or its nodes cannot be read.
pub fn node_cpus(root: &Root, name: &str) -> Result<Option<Vec<u32>>, RootError> {
    let nodes = match nodes(root) {
        Err(RootError::Missing { .. }) if name == "node0" => return online(root).map(Some),
        nodes => nodes?,
    };
    let node = nodes.into_iter().find(|node| name == format!("node{}", node.number));
    Ok(node.and_then(|node| cpu_list::parse(&node.cpu_list)).filter(|cpus| !cpus.is_empty()))
}

fn node(root: &Root, number: u32) -> Result<NumaNode, RootError> {
    let path = format!("{NODES}/node{number}/cpulist");
    // A node may hold memory only: then its list is empty.
    let list = root.text(&path)?.trim().to_owned();
    let cpus = cpu_list::parse(&list)
        .ok_or_else(|| RootError::malformed(&path, &list, "a list of CPUs"))?;
    let path = format!("{NODES}/node{number}/meminfo");
    let text = root.text(&path)?;
    let memory = text.lines().find_map(|line| {
        let at = line.find("MemTotal")?;
        kilobytes(&line[at..], "MemTotal")
    });
    let memory =
        memory.ok_or_else(|| RootError::malformed(&path, &text, "a list with a MemTotal in kB"))?;
    Ok(NumaNode { number, cpus: cpus.len(), cpu_list: list, memory })
}

pub(super) fn add(root: &Root, facts: &mut Facts) {
    match nodes(root) {
        Ok(nodes) => {
            facts.known("numa.nodes", NODES, nodes.len().to_string());
            for node in nodes {
                let cpus = if node.cpus == 0 { "none" } else { &node.cpu_list };
                let text = format!("CPUs {cpus}; {}", format::bytes(node.memory));
                let name = format!("numa.node{}", node.number);
                facts.known(name, format!("{NODES}/node{}", node.number), text);
            }
        }
        Err(error) => facts.unknown("numa.nodes", NODES, error),
    }
    facts.file(root, "numa.balancing", "/proc/sys/kernel/numa_balancing");
}
