//! Checks of virtualisation, stolen time, and limits of control groups.

use super::CheckGroup;
use crate::facts::cgroup;
use crate::facts::virtualisation::{Virtualisation, container, hypervisor};
use crate::format;
use crate::root::Root;
use crate::stat::cpu_ticks;

/// A larger share of stolen time since boot gives a note.
const MUCH_STEAL: f64 = 0.005;

pub(super) fn add(root: &Root, group: &mut CheckGroup) {
    let virtual_machine = hypervisor(root);
    let why = "a hypervisor decides when the CPUs run, hides counters and energy, and may report \
               wrong caches and topology";
    let remedy = "repeat at another hour and on another instance, watch steal, and prefer a \
                  dedicated or bare-metal instance for final numbers";
    let is_virtual = match &virtual_machine {
        Virtualisation::Yes(signs) => {
            group.note("virtual_machine", format!("yes: {signs}"), why, remedy);
            true
        }
        Virtualisation::NoSign(found) => {
            group.ok("virtual_machine", format!("no sign of one: {found}"), why);
            false
        }
        Virtualisation::Unknown(reason) => {
            group.unavailable("virtual_machine", reason, why, "ask the operator of the machine");
            false
        }
    };
    steal(root, is_virtual, group);
    let why = "a container may hide devices and limits, and its overlay file system copies a \
               file before its first change";
    match container(root) {
        Ok(None) => group.ok("container", "no sign of one", why),
        Ok(Some(sign)) => group.note(
            "container",
            sign,
            why,
            "put the store on a volume of a disk, not on the container's overlay",
        ),
        Err(reason) => group.unavailable("container", reason, why, "mount /proc"),
    }
    limits(root, group);
}

fn steal(root: &Root, is_virtual: bool, group: &mut CheckGroup) {
    let why = "while the hypervisor runs other machines, an operation waits, and its latency \
               includes that";
    match cpu_ticks(root) {
        Ok(ticks) if ticks.total() > 0 => {
            let share = ticks.steal as f64 / ticks.total() as f64;
            let mut found = format!("{} of all CPU time since boot", format::percent(share));
            if is_virtual && ticks.steal == 0 {
                found += "; some hypervisors take time without reporting it";
            }
            let remedy = "use an instance with its own CPUs; each run states its own steal";
            group.judge("steal", share <= MUCH_STEAL, found, why, remedy);
        }
        Ok(_) => group.unavailable("steal", "the machine has not run a tick yet", why, "wait"),
        Err(error) => group.unavailable("steal", error, why, "mount /proc"),
    }
}

fn limits(root: &Root, group: &mut CheckGroup) {
    let why = "a process that has used its quota is stopped until the next period, which looks \
               like a slow store";
    let remedy = "lift the limit of the control group, or use fewer threads than it allows";
    match cgroup::cpu_limit(root) {
        Ok(None) => group.ok("cpu_limit", "none", why),
        Ok(Some((cpus, file))) => {
            let found = format!("{} CPUs ({file})", format::short(cpus));
            group.note("cpu_limit", found, why, remedy);
        }
        Err(reason) => group.unavailable("cpu_limit", reason, why, "mount the control groups"),
    }
    let why = "the page cache counts towards the limit, so reads that would be hits are misses";
    let remedy = "lift the limit, or count it as the machine's memory when sizing the data";
    match cgroup::memory_limit(root) {
        Ok(None) => group.ok("memory_limit", "none", why),
        Ok(Some((bytes, file))) => {
            group.note("memory_limit", format!("{} ({file})", format::bytes(bytes)), why, remedy);
        }
        Err(reason) => group.unavailable("memory_limit", reason, why, "mount the control groups"),
    }
}
