//! The CPU affinity of the calling thread as a target of knobs.

use model::cpu_list;

use crate::root::RootError;

pub(super) const CALL: &str = "sched_setaffinity(2) of this process";

pub(super) fn read(path: &str) -> Result<String, RootError> {
    let cpus = affinity::of_thread().map_err(|error| failed(path, error))?;
    Ok(cpu_list::show(&cpus))
}

pub(super) fn write(path: &str, value: &str) -> Result<(), RootError> {
    let cpus = cpu_list::parse(value)
        .ok_or_else(|| RootError::malformed(path, value, "a list of CPUs such as 0-3,8"))?;
    affinity::restrict(&cpus).map_err(|error| failed(path, error))
}

fn failed(path: &str, error: affinity::AffinityError) -> RootError {
    RootError::Io { path: path.to_owned(), why: error.to_string() }
}
