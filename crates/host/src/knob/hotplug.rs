//! Values that the kernel loses when a CPU goes offline, and that must be written back.

use model::cpu_list;

use super::target::KnobTarget;
use super::write::KnobWrite;
use crate::root::Root;

pub(super) const CPUS: &str = "/sys/devices/system/cpu";
const CPUSETS: &str = "/sys/fs/cgroup/cpuset";
/// Deeper groups are of services in containers.
const DEPTH: usize = 6;

pub(super) fn online_file(cpu: u32) -> String {
    format!("{CPUS}/cpu{cpu}/online")
}

/// Values that are lost with these CPUs: disabled idle states (some drivers register a CPU anew),
/// and CPU sets of version 1 control groups, from which the kernel removes a CPU for good.
pub(super) fn lost_with(root: &Root, cpus: &[u32]) -> Vec<KnobWrite> {
    let mut writes = Vec::new();
    if cpus.is_empty() {
        return writes;
    }
    for cpu in cpus {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        for state in root.numbered(&folder, "state").unwrap_or_default() {
            let place = KnobTarget::file(format!("{folder}/state{state}/disable"));
            match place.read(root) {
                Ok(value) if value != "0" => writes.push(KnobWrite::keep(place, value)),
                _ => {}
            }
        }
    }
    cpu_sets(root, CPUSETS, 0, cpus, &mut writes);
    // They are put back in reverse, and a group may hold only CPUs of its parent.
    writes.reverse();
    writes
}

fn cpu_sets(root: &Root, folder: &str, depth: usize, cpus: &[u32], writes: &mut Vec<KnobWrite>) {
    // The root group always has every CPU.
    if depth > 0 {
        let place = KnobTarget::file(format!("{folder}/cpuset.cpus"));
        let Ok(value) = place.read(root) else { return };
        let set = cpu_list::parse(&value).unwrap_or_default();
        if set.iter().any(|cpu| cpus.contains(cpu)) {
            writes.push(KnobWrite::keep(place, value));
        }
    }
    if depth == DEPTH {
        return;
    }
    for name in root.list(folder).unwrap_or_default() {
        let group = format!("{folder}/{name}");
        if root.exists(&format!("{group}/cpuset.cpus")) {
            cpu_sets(root, &group, depth + 1, cpus, writes);
        }
    }
}
