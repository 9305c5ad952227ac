//! Pins threads to CPUs.

use crate::error::MicroError;

/// Pins the calling thread to one CPU; threads that it starts inherit that.
///
/// # Errors
/// The kernel refuses that CPU to this process.
pub fn pin(cpu: u32) -> Result<(), MicroError> {
    affinity::pin(cpu).map_err(|why| {
        MicroError::request("cpus", format!("CPU {cpu} cannot be used: {why}; name others"))
    })
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
