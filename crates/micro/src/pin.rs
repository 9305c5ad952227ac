//! Pins threads to CPUs.
#![allow(unsafe_code, reason = "the affinity calls have no safe form in libc")]

use crate::error::MicroError;

/// Pins the calling thread to one CPU; threads that it starts inherit that.
///
/// # Errors
/// The kernel refuses that CPU to this process.
pub fn pin(cpu: u32) -> Result<(), MicroError> {
    let refused = |why: String| {
        MicroError::request("cpus", format!("CPU {cpu} cannot be used: {why}; name others"))
    };
    if cpu as usize >= libc::CPU_SETSIZE as usize {
        return Err(refused(format!("numbers end at {}", libc::CPU_SETSIZE - 1)));
    }
    // SAFETY: a set of CPUs is plain bits, of which none is a valid value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is smaller than the set, checked above.
    unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    // SAFETY: the set lives through the call, and its true size is given.
    let answer = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    match answer {
        0 => Ok(()),
        _ => Err(refused(std::io::Error::last_os_error().to_string())),
    }
}

/// The CPU on which the calling thread runs now.
pub fn current_cpu() -> Option<u32> {
    // SAFETY: a question that takes no pointer.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// More threads are taken for a mistake.
const MAX_THREADS: usize = 10_000;

/// The CPUs for `threads` threads: the given ones in order, repeated where they are fewer.
///
/// # Errors
/// There are no CPUs, or `threads` is zero or too large.
pub fn spread(cpus: &[u32], threads: usize) -> Result<Vec<u32>, MicroError> {
    if threads == 0 {
        return Err(MicroError::request("threads", "must be more than zero"));
    }
    if threads > MAX_THREADS {
        return Err(MicroError::request(
            "threads",
            format!("is at most {MAX_THREADS}, not {threads}"),
        ));
    }
    if cpus.is_empty() {
        return Err(MicroError::request("cpus", "is an empty list; name one CPU at least"));
    }
    Ok(cpus.iter().copied().cycle().take(threads).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_where_it_was_pinned() {
        let cpu = current_cpu().unwrap();
        let ran_on = std::thread::spawn(move || {
            pin(cpu).unwrap();
            current_cpu().unwrap()
        });
        assert_eq!(ran_on.join().unwrap(), cpu);
    }

    #[test]
    fn refuses_an_absent_cpu_by_number() {
        for cpu in [1023, 1_000_000] {
            let fault = std::thread::spawn(move || pin(cpu)).join().unwrap().unwrap_err();
            assert!(fault.is_request());
            assert!(fault.to_string().contains(&format!("CPU {cpu} ")), "{fault}");
        }
    }

    #[test]
    fn threads_go_around_the_cpus() {
        assert_eq!(spread(&[4, 6], 3), Ok(vec![4, 6, 4]));
        assert!(spread(&[], 1).is_err() && spread(&[0], 0).is_err());
        assert!(spread(&[0], usize::MAX).is_err());
    }
}
