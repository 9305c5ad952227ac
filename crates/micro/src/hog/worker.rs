//! A thread of a hog: waits until a piece is due, moves and counts it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::traffic::move_piece;
use super::{HogSpec, Shared, Traffic};
use crate::error::MicroError;
use crate::pin;
use crate::region::Region;

/// Bytes of the buffer in a piece: microseconds of traffic, so that the rate is even.
pub(super) const PIECE: u64 = 64 << 10;
const PIECE_WORDS: usize = PIECE as usize / 8;
/// Shorter waits spin, as a wake-up takes about as long.
const SPIN_NS: u64 = 100_000;
/// How long a thread may go without checking the stop flag.
const MAX_SLEEP_NS: u64 = 20_000_000;

/// Bytes that one thread has moved, on a line of the cache of its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Tally(AtomicU64);

impl Tally {
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) {
        // Only the thread that owns it adds.
        self.0.store(self.bytes() + bytes, Ordering::Relaxed);
    }
}

pub(super) struct Worker {
    region: Region,
    traffic: Traffic,
}

impl Worker {
    /// Pins the calling thread and touches its buffer.
    pub(super) fn prepare(cpu: u32, spec: &HogSpec) -> Result<Worker, MicroError> {
        pin::pin(cpu)?;
        let mut region = Region::map(spec.buffer, spec.pages, spec.placement)?;
        // Pages that were only read would all map to the kernel's zero page.
        region.as_mut_slice::<u64>().fill(1);
        Ok(Worker { region, traffic: spec.traffic })
    }

    /// Moves pieces until the stop flag is set.
    pub(super) fn run(mut self, tally: &Tally, shared: &Shared) {
        let now = || shared.begun.elapsed().as_nanos() as u64;
        let mut pieces = 0;
        let stopped = || shared.stop.load(Ordering::Relaxed);
        let count = self.region.as_mut_slice::<u64>().len() / PIECE_WORDS;
        while !stopped() {
            let at = now();
            let Some(due) = shared.schedule.claim(at, at + MAX_SLEEP_NS) else {
                std::thread::sleep(Duration::from_nanos(MAX_SLEEP_NS / 2));
                continue;
            };
            wait(due, now);
            let start = pieces % count * PIECE_WORDS;
            let words = self.region.as_mut_slice::<u64>();
            move_piece(self.traffic, &mut words[start..start + PIECE_WORDS]);
            pieces += 1;
            tally.add(PIECE * self.traffic.crossings());
        }
    }
}

fn wait(due: u64, now: impl Fn() -> u64) {
    let remaining = due.saturating_sub(now());
    if remaining > SPIN_NS {
        std::thread::sleep(Duration::from_nanos(remaining - SPIN_NS / 2));
    }
    while now() < due {
        std::hint::spin_loop();
    }
}
