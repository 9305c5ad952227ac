//! The CPUs of load threads, and the order in which to use them.

use std::collections::BTreeMap;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use thiserror::Error;

use crate::facts::topology::{self, HardwareThread};
use crate::root::Root;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AffinityError {
    #[error("the CPUs of this process could not be read: {0}")]
    Unreadable(String),
    #[error("CPU {cpu} cannot be used: {why}; this process may use {allowed}")]
    Refused { cpu: u32, why: String, allowed: String },
}

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

/// The CPUs that this process may run on (`sched_getaffinity`; of a recorded machine all that
/// are online), in the order for pinning load threads. The cores are those of `root`.
pub fn cpus(root: &Root) -> Result<CpuOrder, AffinityError> {
    let allowed = match root.is_live() {
        true => allowed()?,
        false => {
            topology::online(root).map_err(|error| AffinityError::Unreadable(error.to_string()))?
        }
    };
    Ok(match topology::threads(root) {
        Ok(threads) => order(&allowed, &threads),
        Err(_) => CpuOrder { cores: allowed.len(), cpus: allowed, cores_known: false },
    })
}

/// Pins the calling thread to one CPU; threads that it starts inherit that.
pub fn pin_current(cpu: u32) -> Result<(), AffinityError> {
    let refused = |error: nix::Error| AffinityError::Refused {
        cpu,
        why: error.desc().to_owned(),
        allowed: allowed().map_or_else(|error| error.to_string(), |cpus| format!("{cpus:?}")),
    };
    let mut set = CpuSet::new();
    set.set(cpu as usize).map_err(refused)?;
    sched_setaffinity(Pid::from_raw(0), &set).map_err(refused)
}

/// The CPUs that another process may run on: those of its first thread.
pub fn cpus_of(process: u32) -> Result<Vec<u32>, AffinityError> {
    allowed_to(Pid::from_raw(process as i32))
}

/// Restricts the calling thread to these CPUs.
pub(crate) fn pin_current_to(cpus: &[u32]) -> Result<(), AffinityError> {
    let unusable = |error: nix::Error| AffinityError::Unreadable(error.desc().to_owned());
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize).map_err(unusable)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(unusable)
}

pub(crate) fn allowed() -> Result<Vec<u32>, AffinityError> {
    allowed_to(Pid::from_raw(0))
}

fn allowed_to(process: Pid) -> Result<Vec<u32>, AffinityError> {
    let set =
        sched_getaffinity(process).map_err(|error| AffinityError::Unreadable(error.to_string()))?;
    let cpus = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
    Ok(cpus.map(|cpu| cpu as u32).collect())
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

    #[test]
    fn a_thread_runs_where_it_was_pinned() {
        let cpu = *cpus(&Root::live()).unwrap().cpus.last().unwrap();
        let cpu_seen = std::thread::spawn(move || {
            pin_current(cpu).unwrap();
            allowed().unwrap()
        });
        assert_eq!(cpu_seen.join().unwrap(), [cpu]);
    }

    #[test]
    fn refuses_an_absent_cpu_by_number() {
        for cpu in [1023, 1_000_000] {
            let error = std::thread::spawn(move || pin_current(cpu)).join().unwrap().unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&format!("CPU {cpu} ")) && text.contains("may use ["), "{text}");
        }
    }
}
