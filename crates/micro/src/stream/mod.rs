//! Memory bandwidth as STREAM measures it: J. D. McCalpin, "Memory Bandwidth and Machine Balance
//! in Current High Performance Computers", IEEE TCCA Newsletter, December 1995.
//!
//! Three arrays of doubles are split among pinned threads, each of which touches its part first.
//! The four kernels follow each other; a kernel's time runs from before the barrier that starts
//! all threads until after the barrier that the last one reaches. The first round does not count.
//! Arrays that take less than [`MIN_TIMED`] are passed over several times within one timing
//! (STREAM itself only warns of them). Afterwards every element is checked.

mod check;
mod kernels;
mod point;
mod threads;

use std::time::Duration;

use crate::error::MicroError;
use crate::pin;
use crate::region::{PageSize, Placement, Region};

pub use kernels::{Stores, StreamKernel, Vectors};
pub use point::{KernelResult, StreamPoint};

/// Shortest timed interval: a thousand times the cost of the barriers and the clock.
pub const MIN_TIMED: Duration = Duration::from_micros(200);
/// STREAM's own number of rounds, the first of which does not count.
pub const ROUNDS: usize = 10;
/// Doubles on a line of the cache: parts end on lines, so no line has two writers.
const LINE: u64 = 8;
/// Doubles by which each array is offset against the one before, a third of 4 KiB: equal low
/// address bits would make processors mistake loads for loads of the preceding store.
const STAGGER: u64 = 21 * LINE;

/// One measurement.
#[derive(Debug, Clone)]
pub struct StreamSpec {
    pub threads: usize,
    /// Thread `i` is pinned to the `i`-th, modulo their number.
    pub cpus: Vec<u32>,
    /// Bytes of each of the three arrays, rounded down to whole lines a thread.
    pub array_bytes: u64,
    /// Counted rounds, at least.
    pub rounds: usize,
    /// Rounds go on until they have taken so long together.
    pub time: Duration,
    pub stores: Stores,
    pub pages: PageSize,
    pub placement: Placement,
}

/// Measures; `stop` is checked between rounds.
///
/// # Errors
/// A setting cannot be met, a result is wrong, or it was stopped before a round counted.
pub fn run(spec: &StreamSpec, stop: &(dyn Fn() -> bool + Sync)) -> Result<StreamPoint, MicroError> {
    let cpus = pin::spread(&spec.cpus, spec.threads)?;
    let threads = spec.threads as u64;
    let each = spec.array_bytes / 8 / LINE / threads * LINE;
    if each == 0 {
        return Err(MicroError::request(
            "size",
            format!("an array of {} B has no line for each of {threads} threads", spec.array_bytes),
        ));
    }
    if spec.rounds == 0 {
        return Err(MicroError::request("rounds", "must be more than zero"));
    }
    let bytes = each * 8 * threads;
    let room = bytes + 2 * STAGGER * 8;
    let map = || Region::map(room, spec.pages, spec.placement);
    let mut arrays = [map()?, map()?, map()?];
    let timed = threads::run(spec, &cpus, each as usize, &mut arrays, stop)?;
    Ok(StreamPoint::of(spec, cpus, bytes, &arrays, &timed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(threads: usize, array_bytes: u64) -> StreamSpec {
        StreamSpec {
            threads,
            cpus: vec![affinity::current_cpu().unwrap()],
            array_bytes,
            rounds: 3,
            time: Duration::ZERO,
            stores: Stores::Plain,
            pages: PageSize::System,
            placement: Placement::FirstTouch,
        }
    }

    #[test]
    fn every_kernel_is_timed_and_checked() {
        let ways = match cfg!(target_arch = "x86_64") {
            true => vec![Stores::Plain, Stores::Streaming],
            false => vec![Stores::Plain],
        };
        for stores in ways {
            for threads in [1, 3] {
                let point =
                    run(&StreamSpec { stores, ..spec(threads, 1 << 16) }, &|| false).unwrap();
                assert_eq!(point.threads, threads);
                // Whole lines for each thread.
                assert!(point.array_bytes <= 1 << 16 && point.array_bytes > (1 << 16) - 64 * 3);
                assert_eq!(point.rounds, 3);
                assert!(point.passes >= 1);
                assert!(point.worst_error < 1e-12);
                for (kernel, result) in StreamKernel::ALL.iter().zip(&point.kernels) {
                    assert_eq!(result.kernel, *kernel);
                    assert!(result.worst_gb_s <= result.mean_gb_s);
                    assert!(result.mean_gb_s <= result.best_gb_s);
                    let bytes = (kernel.arrays() * point.array_bytes) as f64;
                    assert!((result.best_gb_s * result.min_s - bytes / 1e9).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn refuses_impossible_settings() {
        let key = |spec: StreamSpec| match run(&spec, &|| false) {
            Err(MicroError::Request { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        assert_eq!(key(spec(0, 1 << 16)), "threads");
        assert_eq!(key(spec(2, 100)), "size");
        assert_eq!(key(StreamSpec { rounds: 0, ..spec(1, 1 << 16) }), "rounds");
        assert_eq!(key(StreamSpec { cpus: Vec::new(), ..spec(1, 1 << 16) }), "cpus");
        assert_eq!(key(StreamSpec { cpus: vec![1 << 20], ..spec(2, 1 << 16) }), "cpus");
    }

    #[test]
    fn a_stop_ends_it() {
        assert!(matches!(run(&spec(2, 1 << 16), &|| true), Err(MicroError::Stopped)));
    }
}
