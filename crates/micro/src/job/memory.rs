//! The benchmarks of memory, and the hog.

use clap::Args;
use model::{ByteRate, Bytes, Span};
use serde::{Deserialize, Serialize};

use super::{MemoryFlags, PlacementFlags, Sizes, as_text};
use crate::hog::Traffic;
use crate::stream::{ROUNDS, Stores};

#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub at: PlacementFlags,
    /// Numbers of threads [default: one a CPU]
    #[arg(long, short = 'j', value_name = "N,...", value_delimiter = ',')]
    #[serde(with = "as_text::one")]
    pub threads: Vec<usize>,
    /// Bytes of each of the three arrays: 16KiB,1GiB, or 16KiB..1GiB for every power of two
    /// [default: four times the last-level caches]
    #[arg(long, value_name = "SIZES")]
    pub size: Option<Sizes>,
    /// Minimum number of rounds
    #[arg(long, value_name = "N", default_value_t = ROUNDS)]
    #[serde(with = "as_text")]
    pub rounds: usize,
    /// Time of the rounds, for each number of threads and size
    #[arg(long, short, value_name = "TIME", default_value = "1s")]
    pub time: Span,
    /// Through the caches, as compilers write STREAM's loops, or past them in all four kernels
    #[arg(long, value_name = "plain|streaming", default_value_t, hide_default_value = true)]
    #[serde(with = "as_text")]
    pub stores: Stores,
    #[command(flatten)]
    #[serde(flatten)]
    pub memory: MemoryFlags,
}

#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[command(after_help = "Examples:\n  \
    kvmeter micro latency --cpus 3 --pages huge           caches and memory\n  \
    kvmeter micro latency --size 32KiB..1GiB --place node:0")]
#[serde(default)]
pub struct LatencyArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub at: PlacementFlags,
    /// Sizes: 32KiB,1GiB, or 4KiB..1GiB for four an octave [default: 4KiB to eight times the
    /// last-level cache]
    #[arg(long, value_name = "SIZES")]
    pub size: Option<Sizes>,
    /// Distance of two loads in memory
    #[arg(long, value_name = "SIZE", default_value = "64")]
    pub stride: Bytes,
    /// Measured time of each size
    #[arg(long, short, value_name = "TIME", default_value = "50ms")]
    pub time: Span,
    /// Seed of the random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[serde(skip)]
    pub seed: u64,
    #[command(flatten)]
    #[serde(flatten)]
    pub memory: MemoryFlags,
}

#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[command(after_help = "Examples:\n  \
    kvmeter micro hog --rate 10GB/s --cpus 2,3 --time 1m\n  \
    kvmeter micro hog --traffic read --json               the highest rate of all CPUs")]
#[serde(default)]
pub struct HogArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub at: PlacementFlags,
    /// Bytes a second of all CPUs together [default: unlimited]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<ByteRate>,
    /// Length of the traffic
    #[arg(long, short, value_name = "TIME", default_value = "10s")]
    pub time: Span,
    /// Traffic on the memory bus
    #[arg(long, value_name = "read|update|write", default_value_t, hide_default_value = true)]
    #[serde(with = "as_text")]
    pub traffic: Traffic,
    /// Working set of each thread [default: four times the last-level caches]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    #[command(flatten)]
    #[serde(flatten)]
    pub memory: MemoryFlags,
}
