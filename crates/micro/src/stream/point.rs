//! The result of one measurement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::StreamSpec;
use super::kernels::{Stores, StreamKernel, Vectors};
use super::threads::Timed;
use crate::region::{PageSize, Placement, Region};

/// The four kernels at one number of threads and size of arrays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamPoint {
    pub threads: usize,
    /// Of each thread.
    pub cpus: Vec<u32>,
    /// Of each of the three arrays.
    pub array_bytes: u64,
    pub stores: Stores,
    /// Of the loops with plain stores; `copy` is the C library's memcpy.
    pub vectors: Vectors,
    pub pages: PageSize,
    pub placement: Placement,
    /// Bytes of all three arrays on huge pages, or why that is not known.
    pub huge_bytes: Result<u64, String>,
    /// Sampled pages on each NUMA node; empty where the kernel does not say.
    pub pages_on_node: BTreeMap<u32, usize>,
    /// Rounds that count.
    pub rounds: usize,
    /// Passes over the arrays in one timing.
    pub passes: usize,
    /// The largest relative error of any element.
    pub worst_error: f64,
    pub kernels: Vec<KernelResult>,
}

/// Bytes that a kernel reads and writes, each array once as STREAM counts, over its time for one
/// pass. A GB is 10^9 bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelResult {
    pub kernel: StreamKernel,
    /// Of the shortest round: what STREAM reports.
    pub best_gb_s: f64,
    /// Of the mean time.
    pub mean_gb_s: f64,
    /// Of the longest round.
    pub worst_gb_s: f64,
    pub min_s: f64,
    pub mean_s: f64,
    pub max_s: f64,
}

impl StreamPoint {
    pub(super) fn of(
        spec: &StreamSpec,
        cpus: Vec<u32>,
        array_bytes: u64,
        arrays: &[Region; 3],
        timed: &Timed,
    ) -> StreamPoint {
        let mut pages_on_node = BTreeMap::new();
        for (node, pages) in arrays.iter().flat_map(Region::nodes) {
            *pages_on_node.entry(node).or_default() += pages;
        }
        let kernels = StreamKernel::ALL.into_iter().zip(&timed.seconds);
        StreamPoint {
            threads: spec.threads,
            cpus,
            array_bytes,
            stores: spec.stores,
            vectors: timed.vectors,
            pages: spec.pages,
            placement: spec.placement,
            huge_bytes: arrays.iter().map(Region::huge_bytes).sum(),
            pages_on_node,
            rounds: timed.seconds[0].len(),
            passes: timed.passes,
            worst_error: timed.worst_error,
            kernels: kernels.map(|(k, s)| KernelResult::of(k, array_bytes, s)).collect(),
        }
    }
}

impl KernelResult {
    fn of(kernel: StreamKernel, array_bytes: u64, seconds: &[f64]) -> KernelResult {
        let gigabytes = (kernel.arrays() * array_bytes) as f64 / 1e9;
        let min_s = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let max_s = seconds.iter().copied().fold(0.0, f64::max);
        let mean_s = seconds.iter().sum::<f64>() / seconds.len() as f64;
        KernelResult {
            kernel,
            best_gb_s: gigabytes / min_s,
            mean_gb_s: gigabytes / mean_s,
            worst_gb_s: gigabytes / max_s,
            min_s,
            mean_s,
            max_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bytes_as_stream_counts_them_over_time() {
        let result = KernelResult::of(StreamKernel::Triad, 1_000_000_000, &[3.0, 1.0, 2.0]);
        assert_eq!((result.best_gb_s, result.mean_gb_s, result.worst_gb_s), (3.0, 1.5, 1.0));
        assert_eq!((result.min_s, result.mean_s, result.max_s), (1.0, 2.0, 3.0));
        assert_eq!(KernelResult::of(StreamKernel::Scale, 1 << 30, &[1.0]).best_gb_s, 2.147_483_648);
    }
}
