//! Latency of dependent loads over the size of the working set, as `lat_mem_rd` of LMBench measures
//! it (L. McVoy and C. Staelin, "lmbench: Portable Tools for Performance Analysis", USENIX 1996),
//! but in random order, so that no prefetcher helps. [`levels`] finds the caches in the curve.

mod chain;
pub mod levels;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use model::random::mix;
use serde::{Deserialize, Serialize};

use crate::batches::{self, BatchSpread};
use crate::error::MicroError;
use crate::pin;
use crate::region::{PageSize, Placement, Region};
use chain::Chain;

/// Slots of the smallest ring.
const MIN_SLOTS: u64 = 16;
/// Longest time without a result: one round of the largest ring takes seconds.
const MAX_SILENCE: Duration = Duration::from_secs(300);

#[derive(Debug, Clone)]
pub struct LatencySpec {
    pub cpu: u32,
    /// Bytes of each ring, in any order.
    pub sizes: Vec<u64>,
    /// Bytes from one slot of the ring to the next in memory; a multiple of a word.
    pub stride: usize,
    /// How long each size is measured.
    pub time: Duration,
    pub pages: PageSize,
    pub placement: Placement,
    pub seed: u64,
}

/// One point of the curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    pub bytes: u64,
    /// Nanoseconds from one load to the next.
    pub load: BatchSpread,
}

/// The curve, and the memory it was measured on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyCurve {
    pub cpu: u32,
    pub stride_bytes: usize,
    pub pages: PageSize,
    pub placement: Placement,
    /// Bytes of the largest ring on huge pages, or why that is not known.
    pub huge_bytes: Result<u64, String>,
    /// By size.
    pub points: Vec<CurvePoint>,
}

/// Sizes from `least` to `most`: each power of two and each quarter of the way to the next one, so
/// that caches of 48 KiB and 1.25 MiB are among them.
pub fn sizes(least: u64, most: u64) -> Vec<u64> {
    let powers = (0..u64::BITS - 1).map(|shift| 1_u64 << shift);
    let quarters = powers.flat_map(|power| (4..8).map(move |part| power / 4 * part));
    quarters.filter(|size| (least..=most).contains(size) && *size >= 1024).collect()
}

/// Measures every size on one pinned thread and calls `each` with every point. When `stop` returns
/// true, the points until then count.
///
/// # Errors
/// A setting cannot be met, or it was stopped before the first point.
pub fn run(
    spec: &LatencySpec,
    stop: &(dyn Fn() -> bool + Sync),
    each: &mut dyn FnMut(&CurvePoint),
) -> Result<LatencyCurve, MicroError> {
    let mut sizes = spec.sizes.clone();
    sizes.sort_unstable();
    let least = MIN_SLOTS * spec.stride as u64;
    let word = size_of::<usize>();
    if spec.stride == 0 || !spec.stride.is_multiple_of(word) {
        return Err(MicroError::request("stride", format!("must be a multiple of {word} B")));
    }
    let (Some(first), Some(most)) = (sizes.first().copied(), sizes.last().copied()) else {
        return Err(MicroError::request("size", "is an empty list"));
    };
    if first < least {
        return Err(MicroError::request(
            "size",
            format!("{first} B is less than {MIN_SLOTS} strides; begin at {least} B"),
        ));
    }
    if most / spec.stride as u64 > u64::from(u32::MAX) {
        return Err(MicroError::request("size", "has more than 2^32 slots; use a longer stride"));
    }
    let (to_us, from_thread) = mpsc::channel();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("latency".to_owned());
        let thread = thread.spawn_scoped(scope, move || {
            pin::pin(spec.cpu)?;
            let mut region = Region::map(most, spec.pages, spec.placement)?;
            for bytes in sizes {
                let Some(load) = measure(&mut region, bytes, spec, stop) else { break };
                if to_us.send(CurvePoint { bytes, load }).is_err() {
                    break;
                }
            }
            Ok(region.huge_bytes())
        });
        let thread = thread.map_err(|error| MicroError::Failed(format!("latency: {error}")))?;
        let mut points = Vec::new();
        while let Ok(point) = from_thread.recv_timeout(MAX_SILENCE) {
            each(&point);
            points.push(point);
        }
        let huge_bytes =
            thread.join().map_err(|_| MicroError::Failed("the thread panicked".to_owned()))??;
        if points.is_empty() {
            return Err(MicroError::Stopped);
        }
        Ok(LatencyCurve {
            cpu: spec.cpu,
            stride_bytes: spec.stride,
            pages: spec.pages,
            placement: spec.placement,
            huge_bytes,
            points,
        })
    })
}

fn measure(
    region: &mut Region,
    bytes: u64,
    spec: &LatencySpec,
    stop: &dyn Fn() -> bool,
) -> Option<BatchSpread> {
    if stop() {
        return None;
    }
    let count = (bytes / spec.stride as u64) as u32;
    let mut chain = Chain::build(region, count, spec.stride, mix(spec.seed ^ bytes));
    // One round warms the caches and page tables.
    let begun = Instant::now();
    let mut warmed = 0;
    while warmed < u64::from(count) && begun.elapsed() < spec.time.max(Duration::from_secs(1)) {
        warmed += chain.follow(1 << 14);
    }
    let follow = |calls: u64| {
        chain.follow(calls * chain::UNROLLED);
        Ok::<(), MicroError>(())
    };
    let spread = batches::measure(spec.time, stop, follow).ok().flatten()?;
    Some(spread.per(chain::UNROLLED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::LINE;

    fn spec(sizes: &[u64]) -> LatencySpec {
        LatencySpec {
            cpu: affinity::current_cpu().unwrap(),
            sizes: sizes.to_vec(),
            stride: LINE,
            time: Duration::ZERO,
            pages: PageSize::System,
            placement: Placement::FirstTouch,
            seed: 1,
        }
    }

    #[test]
    fn sizes_are_quarters_of_each_octave() {
        assert_eq!(sizes(4096, 8192), [4096, 5120, 6144, 7168, 8192]);
        assert!(sizes(1, 64 << 20).contains(&(48 << 10)));
        assert!(sizes(1, 64 << 20).contains(&(5 << 18)));
        assert!(sizes(8192, 4096).is_empty());
        assert_eq!(sizes(1, 1 << 40).last(), Some(&(1 << 40)));
    }

    #[test]
    fn every_size_is_measured_in_order() {
        let mut reported = Vec::new();
        let curve =
            run(&spec(&[16 << 10, 4 << 10]), &|| false, &mut |point| reported.push(point.clone()));
        let curve = curve.unwrap();
        assert_eq!(curve.points, reported);
        assert_eq!(curve.points.iter().map(|p| p.bytes).collect::<Vec<_>>(), [4 << 10, 16 << 10]);
        for point in &curve.points {
            assert!(point.load.min_ns > 0.0 && point.load.min_ns <= point.load.median_ns);
            assert!(point.load.calls.is_multiple_of(chain::UNROLLED));
        }
    }

    #[test]
    fn refuses_impossible_settings() {
        let key = |spec: LatencySpec| match run(&spec, &|| false, &mut |_| {}) {
            Err(MicroError::Request { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        assert_eq!(key(spec(&[])), "size");
        assert_eq!(key(spec(&[512])), "size");
        assert_eq!(key(LatencySpec { stride: 12, ..spec(&[4096]) }), "stride");
        assert_eq!(key(LatencySpec { stride: 0, ..spec(&[4096]) }), "stride");
        assert_eq!(key(LatencySpec { cpu: 1 << 20, ..spec(&[4096]) }), "cpus");
        assert_eq!(run(&spec(&[4096]), &|| true, &mut |_| {}), Err(MicroError::Stopped));
    }
}
