//! The CPU affinity of the calling thread as a target of knobs.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use super::level::cpu_text;
use crate::parse::cpu_list;
use crate::root::RootError;

pub(super) const CALL: &str = "sched_setaffinity(2) of this process";

pub(super) fn read(path: &str) -> Result<String, RootError> {
    let cpus = crate::affinity::allowed()
        .map_err(|error| RootError::Io { path: path.to_owned(), why: error.to_string() })?;
    Ok(cpu_text(&cpus))
}

pub(super) fn write(path: &str, value: &str) -> Result<(), RootError> {
    let failed = |why: String| RootError::Io { path: path.to_owned(), why };
    let cpus = cpu_list(value)
        .ok_or_else(|| RootError::malformed(path, value, "a list of CPUs such as 0-3,8"))?;
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(cpu as usize).map_err(|error| failed(format!("CPU {cpu}: {}", error.desc())))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|error| failed(error.desc().to_owned()))
}
