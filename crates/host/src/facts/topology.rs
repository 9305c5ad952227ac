use std::collections::BTreeMap;

use model::cpu_list;

use super::Facts;
use crate::root::{Root, RootError};

const CPUS: &str = "/sys/devices/system/cpu";
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The place of one hardware thread. A virtual machine shows what its
/// hypervisor chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HardwareThread {
    pub cpu: u32,
    pub socket: i64,
    /// The threads of the same core, this one included.
    pub siblings: Vec<u32>,
}

/// Every online hardware thread, in the kernel's order.
pub(crate) fn threads(root: &Root) -> Result<Vec<HardwareThread>, RootError> {
    online(root)?.into_iter().map(|cpu| thread(root, cpu)).collect()
}

pub(crate) fn online(root: &Root) -> Result<Vec<u32>, RootError> {
    let text = root.value(ONLINE)?;
    cpu_list::parse(&text)
        .filter(|cpus| !cpus.is_empty())
        .ok_or_else(|| RootError::malformed(ONLINE, &text, "a list of CPUs"))
}

fn thread(root: &Root, cpu: u32) -> Result<HardwareThread, RootError> {
    let file = |name: &str| format!("{CPUS}/cpu{cpu}/topology/{name}");
    let path = file("thread_siblings_list");
    let text = root.value(&path)?;
    let siblings = cpu_list::parse(&text)
        .ok_or_else(|| RootError::malformed(&path, &text, "a list of CPUs"))?;
    Ok(HardwareThread { cpu, socket: root.number(&file("physical_package_id"))?, siblings })
}

pub(super) fn add(root: &Root, facts: &mut Facts) {
    let source = format!("{CPUS}/cpu*/topology");
    match threads(root) {
        Ok(threads) => {
            let cores = cores(&threads);
            let mut sockets: Vec<i64> = threads.iter().map(|thread| thread.socket).collect();
            sockets.sort_unstable();
            sockets.dedup();
            facts.known("topology.sockets", &source, sockets.len().to_string());
            facts.known("topology.cores", &source, cores.to_string());
            facts.known("topology.threads", ONLINE, threads.len().to_string());
        }
        Err(error) => {
            facts.unknown("topology.sockets", &source, &error);
            facts.unknown("topology.cores", &source, &error);
            let online = online(root).map(|cpus| cpus.len().to_string());
            facts.add("topology.threads", ONLINE, online);
        }
    }
    facts.add("topology.smt", format!("{CPUS}/smt/active"), smt(root));
    // Usually empty: no CPU is isolated.
    let isolated = format!("{CPUS}/isolated");
    let value = root.text(&isolated).map(|text| match text.trim() {
        "" => "none".to_owned(),
        list => list.to_owned(),
    });
    facts.add("topology.isolated", isolated, value);
}

/// Distinct sets of siblings: one a core.
fn cores(threads: &[HardwareThread]) -> usize {
    let mut cores: BTreeMap<&[u32], usize> = BTreeMap::new();
    for thread in threads {
        *cores.entry(&thread.siblings).or_default() += 1;
    }
    cores.len()
}

/// `on`, or `off` with the reason.
pub(crate) fn smt(root: &Root) -> Result<String, RootError> {
    let active: u8 = root.number(&format!("{CPUS}/smt/active"))?;
    if active == 1 {
        return Ok("on".to_owned());
    }
    match root.value(&format!("{CPUS}/smt/control")) {
        Ok(control) if control != "on" => Ok(format!("off ({control})")),
        _ => Ok("off".to_owned()),
    }
}
