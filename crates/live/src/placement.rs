//! The server's thread stays out of the load's way.

use rustix::process::setpriority_process;

/// The least share of a CPU that the kernel gives (`nice(1)`).
const LOWEST_PRIORITY: i32 = 19;

/// Lowers the priority of the calling thread; on Linux it is a thread's own. A refusal leaves it
/// as it is.
pub(crate) fn lower_priority() {
    let _ = setpriority_process(None, LOWEST_PRIORITY);
}

/// Moves the calling thread to those of its `first` CPUs that the load does not use; to all of them
/// where the load uses all, or may run anywhere.
pub(crate) fn avoid(first: &[u32], load: &[u32]) {
    let free: Vec<u32> = first.iter().copied().filter(|cpu| !load.contains(cpu)).collect();
    let _ = affinity::restrict(if free.is_empty() { first } else { &free });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_the_load_are_avoided_where_others_are_left() {
        let seen = std::thread::spawn(|| {
            let first = affinity::of_thread().unwrap();
            avoid(&first, &first[..1]);
            let beside = affinity::of_thread().unwrap();
            avoid(&first, &first);
            (first, beside, affinity::of_thread().unwrap())
        });
        let (first, beside, all) = seen.join().unwrap();
        assert_eq!(all, first, "there is no other");
        if first.len() > 1 {
            assert_eq!(beside, first[1..]);
        }
    }
}
