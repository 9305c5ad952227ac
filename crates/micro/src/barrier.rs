//! A spinning barrier: threads leave it within one cache-line transfer of each other.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Spins before the thread yields, for when there are more threads than CPUs.
const SPINS: u32 = 10_000;

pub(crate) struct Barrier {
    parties: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    broken: AtomicBool,
}

impl Barrier {
    pub(crate) fn new(parties: usize) -> Barrier {
        let (arrived, generation) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Barrier { parties, arrived, generation, broken: AtomicBool::new(false) }
    }

    /// Waits for all parties. `false`: a party has ended, and none may go on.
    pub(crate) fn wait(&self) -> bool {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation + 1, Ordering::Release);
        }
        let mut spins = 0;
        while self.generation.load(Ordering::Acquire) == generation {
            if self.broken.load(Ordering::Relaxed) {
                return false;
            }
            spins += 1;
            match spins < SPINS {
                true => std::hint::spin_loop(),
                false => std::thread::yield_now(),
            }
        }
        !self.broken.load(Ordering::Relaxed)
    }

    /// Ends every wait, now and later.
    pub(crate) fn break_up(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    /// Breaks the barrier when it is dropped in a panic, so that no thread waits for this one.
    pub(crate) fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

pub(crate) struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_passes_before_all_have_arrived() {
        let (barrier, count) = (Barrier::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..=200 {
                        count.fetch_add(1, Ordering::Relaxed);
                        assert!(barrier.wait());
                        assert_eq!(count.load(Ordering::Relaxed), 3 * round);
                        assert!(barrier.wait());
                    }
                });
            }
        });
    }

    #[test]
    fn a_broken_barrier_releases_waiting_threads() {
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| barrier.wait());
            scope.spawn(|| barrier.break_up());
            assert!(!waits.join().unwrap());
        });
        assert!(!barrier.wait());
    }
}
