//! Waits for what another thread is done with in a moment, unless it has lost its processor.

use std::time::Duration;

use crate::schedule::{hint, thread};

/// So often is looked again at once: for 5 us on an EPYC.
const MAX_SPINS: u32 = 200;
/// Then the other thread has no processor, and may wait for this very one: it gets it for so long,
/// and some 50 us that the kernel adds.
const SLEEP: Duration = Duration::from_micros(20);

/// Such a wait.
///
/// Who only looked again and again, or yielded, would keep the processor from a background thread,
/// which is nicer, for tens of milliseconds.
#[derive(Default)]
pub(crate) struct Backoff {
    spins: u32,
}

impl Backoff {
    /// Waits until it is time to look again.
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
