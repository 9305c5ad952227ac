//! The CPUs of load threads, and the order in which to use them.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::facts::topology::{self, HardwareThread};
use crate::root::Root;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the CPUs of this process could not be read: {0}")]
pub struct CpuOrderError(String);

/// The CPUs that this process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuOrder {
    /// In the order for pinning threads: one hardware thread of each physical
    /// core first, then the cores' other threads.
    pub cpus: Vec<u32>,
    /// Physical cores of these CPUs; the number of CPUs where the kernel does
    /// not show which share a core.
    pub cores: usize,
    /// Whether the kernel says which CPUs share a core. Where it does not, the
    /// order is the CPUs' own.
    pub cores_known: bool,
}

/// The CPUs that this thread may run on (of a recorded machine all that are online), in the order
/// for pinning load threads. The cores are those of `root`.
pub fn cpus(root: &Root) -> Result<CpuOrder, CpuOrderError> {
    let allowed = match root.is_live() {
        true => affinity::of_thread().map_err(|error| CpuOrderError(error.to_string()))?,
        false => topology::online(root).map_err(|error| CpuOrderError(error.to_string()))?,
    };
    Ok(match topology::threads(root) {
        Ok(threads) => order(&allowed, &threads),
        Err(_) => CpuOrder { cores: allowed.len(), cpus: allowed, cores_known: false },
    })
}

fn order(allowed: &[u32], threads: &[HardwareThread]) -> CpuOrder {
    // A core is identified by its lowest thread, allowed or not.
    let core_of = |cpu: u32| {
        let thread = threads.iter().find(|thread| thread.cpu == cpu);
        thread.and_then(|thread| thread.siblings.first().copied()).unwrap_or(cpu)
    };
    let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
    let mut ranked: Vec<(u32, u32)> = Vec::new();
    for cpu in allowed {
        let rank = taken.entry(core_of(*cpu)).or_default();
        ranked.push((*rank, *cpu));
        *rank += 1;
    }
    ranked.sort_unstable();
    let cpus = ranked.into_iter().map(|(_, cpu)| cpu).collect();
    CpuOrder { cpus, cores: taken.len(), cores_known: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(cpu: u32, siblings: &[u32]) -> HardwareThread {
        HardwareThread { cpu, socket: 0, siblings: siblings.to_vec() }
    }

    #[test]
    fn one_thread_of_each_core_comes_first() {
        // Neighbouring numbers share a core.
        let paired: Vec<HardwareThread> =
            (0..4).map(|cpu| thread(cpu, &[cpu / 2 * 2, cpu / 2 * 2 + 1])).collect();
        let order_found = order(&[0, 1, 2, 3], &paired);
        assert_eq!((order_found.cpus.as_slice(), order_found.cores), ([0, 2, 1, 3].as_slice(), 2));
        // Thread 0 is not allowed, so thread 1 stands for its core.
        assert_eq!(order(&[1, 2, 3], &paired).cpus, [1, 2, 3]);
        // Numbers of the same core lie far apart.
        let split: Vec<HardwareThread> =
            (0..4).map(|cpu| thread(cpu, &[cpu % 2, cpu % 2 + 2])).collect();
        assert_eq!(order(&[0, 1, 2, 3], &split).cpus, [0, 1, 2, 3]);
    }
}
