//! The CPU time that this process may use.

use crate::cpu_order::{self, CpuOrderError};
use crate::facts::cgroup;
use crate::format;
use crate::root::Root;

/// A limit in CPUs, and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    pub cpus: f64,
    /// `2 CPUs by the mask`, `0.2 CPUs by /sys/fs/cgroup/cpu.max`.
    pub words: String,
}

/// The tighter of the CPU mask, which includes the control group's CPUs, and the CPU quotas.
/// `named`: the CPUs that its threads are pinned to, if any.
///
/// # Errors
/// The mask cannot be read.
pub fn capacity(root: &Root, named: &[u32]) -> Result<Capacity, CpuOrderError> {
    let mask = cpu_order::cpus(root)?.cpus;
    let usable = mask.iter().filter(|cpu| named.is_empty() || named.contains(cpu)).count();
    let by = if usable < mask.len() { "the CPUs that were named" } else { "the mask" };
    let quota = cgroup::cpu_limit(root).ok().flatten();
    Ok(match quota {
        Some((cpus, file)) if cpus < usable as f64 => {
            Capacity { cpus, words: format!("{} CPUs by {file}", format::short(cpus)) }
        }
        _ => {
            let cpus = if usable == 1 { "CPU" } else { "CPUs" };
            Capacity { cpus: usable as f64, words: format!("{usable} {cpus} by {by}") }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_counts() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let root = Root::at(dir.path());
        write("sys/devices/system/cpu/online", "0-3\n");
        let of = |named: &[u32]| {
            let Capacity { cpus, words } = capacity(&root, named).unwrap();
            (cpus, words)
        };
        assert_eq!(of(&[]), (4.0, "4 CPUs by the mask".to_owned()));
        assert_eq!(of(&[2]), (1.0, "1 CPU by the CPUs that were named".to_owned()));
        write("proc/self/cgroup", "0::/\n");
        write("proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        write("sys/fs/cgroup/cpu.max", "150000 100000\n");
        assert_eq!(of(&[]), (1.5, "1.5 CPUs by /sys/fs/cgroup/cpu.max".to_owned()));
        assert_eq!(of(&[2]).0, 1.0);
    }
}
