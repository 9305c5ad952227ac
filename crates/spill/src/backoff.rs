//! Backoff for very short waits: spin, then sleep.

use std::time::Duration;

use crate::schedule::{hint, thread};

/// Spins before the first sleep, about 5 us.
const MAX_SPINS: u32 = 200;
/// Length of a sleep, without the kernel's own overhead. After the spins the other thread probably
/// lost its CPU, perhaps to this thread, so give it away.
const SLEEP: Duration = Duration::from_micros(20);

/// One wait.
///
/// A thread that only spins or yields would keep its CPU from a background thread, which has lower
/// priority, for tens of milliseconds.
#[derive(Default)]
pub(crate) struct Backoff {
    spins: u32,
}

impl Backoff {
    /// Waits until it is time to check again.
    #[inline]
    pub(crate) fn wait(&mut self) {
        if self.spins < MAX_SPINS {
            self.spins += 1;
            return hint::spin_loop();
        }
        thread::sleep(SLEEP);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn long_wait_sleeps() {
        let mut backoff = Backoff::default();
        (0..MAX_SPINS).for_each(|_| backoff.wait());
        let begin = Instant::now();
        (0..10).for_each(|_| backoff.wait());
        assert!(begin.elapsed() >= 10 * SLEEP);
    }
}
