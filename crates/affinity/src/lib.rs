//! The CPUs on which threads and processes may run (`sched_setaffinity(2)`).
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

/// Why CPUs cannot be used or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AffinityError {
    #[error("CPU numbers end at {}", CpuSet::count() - 1)]
    OutOfRange,
    #[error("{}", .0.desc())]
    Kernel(#[from] Errno),
}

/// Restricts the calling thread to one CPU; threads and processes that it starts inherit that.
///
/// # Errors
/// The machine has no such CPU, or this process may not use it.
pub fn pin(cpu: u32) -> Result<(), AffinityError> {
    restrict(&[cpu])
}

/// Restricts the calling thread to these CPUs. The kernel leaves out absent ones, and refuses if
/// none is left.
///
/// # Errors
/// As of [`pin`].
pub fn restrict(cpus: &[u32]) -> Result<(), AffinityError> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize).map_err(|_| AffinityError::OutOfRange)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// The CPUs that the calling thread may use, in order.
///
/// # Errors
/// The kernel refuses to answer.
pub fn of_thread() -> Result<Vec<u32>, AffinityError> {
    of_process(0)
}

/// The CPUs that the first thread of a process may use, in order.
///
/// # Errors
/// There is no such process, or the kernel refuses to answer.
pub fn of_process(pid: u32) -> Result<Vec<u32>, AffinityError> {
    let set = sched_getaffinity(Pid::from_raw(pid.cast_signed()))?;
    let cpus = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
    Ok(cpus.map(|cpu| cpu as u32).collect())
}

/// The CPU on which the calling thread runs now.
///
/// # Errors
/// The kernel refuses to answer.
pub fn current_cpu() -> Result<u32, AffinityError> {
    Ok(sched_getcpu()? as u32)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_runs_where_it_was_pinned() {
        let cpu = *of_thread().unwrap().last().unwrap();
        let seen = thread::spawn(move || {
            pin(cpu).unwrap();
            (of_thread().unwrap(), current_cpu().unwrap())
        });
        assert_eq!(seen.join().unwrap(), (vec![cpu], cpu));
    }

    #[test]
    fn refuses_absent_cpus() {
        let absent = |cpu| thread::spawn(move || pin(cpu)).join().unwrap().unwrap_err();
        assert_eq!(absent(1023), AffinityError::Kernel(Errno::EINVAL));
        assert_eq!(absent(1_000_000).to_string(), "CPU numbers end at 1023");
    }

    #[test]
    fn a_process_may_use_the_cpus_of_its_first_thread() {
        let all = of_process(std::process::id()).unwrap();
        assert!(!all.is_empty());
        thread::spawn(move || {
            restrict(&all[..1]).unwrap();
            assert_eq!(of_process(std::process::id()).unwrap(), all);
        })
        .join()
        .unwrap();
        assert_eq!(of_process(u32::MAX >> 1), Err(AffinityError::Kernel(Errno::ESRCH)));
    }
}
