//! The settings of a microbenchmark and its results.
//!
//! A type declares flags of the command, keys of a study's table, their defaults and their help in
//! one place. A study's value goes as a [`MicroJob`] to a process of its own, and comes back as a
//! [`MicroOutcome`]. Each value of a key is one text, as on the command line.

mod as_text;
mod cells;
mod lists;
mod memory;
mod net;

use clap::{Args, Command, FromArgMatches};
use serde::{Deserialize, Serialize};

use crate::latency::LatencyCurve;
use crate::net::MeasuredCell;
use crate::region::{PageSize, Placement};
use crate::stream::StreamPoint;

pub use cells::NetCells;
pub use lists::{CpuList, Sizes};
pub use memory::{HogArgs, LatencyArgs, StreamArgs};
pub use net::{DPDK_KEYS, FlowArgs, InnerFlags, KERNEL_KEYS, NetFlags, PORT, PingpongArgs};

/// A microbenchmark that a study can run, or a hog beside its runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum MicroBench {
    Pingpong(Box<PingpongArgs>),
    Flow(Box<FlowArgs>),
    Stream(StreamArgs),
    Latency(LatencyArgs),
    Hog(HogArgs),
}

/// What the hidden `kvmeter micro job` is given.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MicroJob {
    pub bench: MicroBench,
    /// Socket that is notified when the measured window opens and closes.
    pub window: Option<String>,
}

/// What it answers, but for a hog.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MicroOutcome {
    pub results: MicroResults,
    /// Share of all CPUs' time that the hypervisor took, where that was reported.
    pub steal: Option<f64>,
    pub warnings: Vec<String>,
}

/// The results of all cells.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum MicroResults {
    Net(Vec<MeasuredCell>),
    Stream(Vec<StreamPoint>),
    Latency(LatencyCurve),
}

#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
pub struct PlacementFlags {
    /// The CPUs, such as 0-3,8 [default: those that kvmeter may use, one thread of a core first]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Print one JSON object
    #[arg(long)]
    #[serde(skip)]
    pub json: bool,
    /// The socket of a study's job.
    #[arg(skip)]
    #[serde(skip)]
    pub window: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryFlags {
    /// Pages of the memory: as the system gives them, huge or small ones by request, or reserved
    /// huge ones
    #[arg(
        long,
        value_name = "system|huge|small|reserved",
        default_value_t,
        hide_default_value = true
    )]
    #[serde(with = "as_text")]
    pub pages: PageSize,
    /// Placement of the memory: at the thread that touches it first, on one NUMA node, or
    /// interleaved over all
    #[arg(
        long,
        value_name = "first-touch|node:N|interleave",
        default_value_t,
        hide_default_value = true
    )]
    #[serde(with = "as_text")]
    pub place: Placement,
}

/// The default of flags: every one left out.
macro_rules! left_out {
    ($($flags:ty)*) => {$(
        impl Default for $flags {
            fn default() -> Self {
                let matches = <$flags>::augment_args(Command::new("")).get_matches_from([""]);
                <$flags>::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
            }
        }
    )*};
}

left_out!(NetFlags FlowArgs StreamArgs LatencyArgs HogArgs);
