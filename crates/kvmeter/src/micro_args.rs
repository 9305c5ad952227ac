//! The flags of `kvmeter micro`.

use std::str::FromStr;

use clap::{Args, Subcommand};
use micro::hog::Traffic;
use micro::region::{PageSize, Placement};
use micro::stream::Stores;
use model::{ByteRate, Bytes, Span};

use crate::micro_net_args::{Flow, Pingpong};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter micro stream                                 memory bandwidth with all cores\n  \
    kvmeter micro stream --threads 1,2,4 --size 16KiB..256MiB\n  \
    kvmeter micro hog --rate 10GB/s --cpus 2,3 --time 1m  consumes bandwidth\n  \
    kvmeter micro latency --cpus 3 --pages huge          caches and memory\n  \
    kvmeter micro pingpong --transport tcp,unix,udp       round trips over loopback\n  \
    kvmeter micro flow --stride 64,4096                   a stream, touched as it comes\n  \
    kvmeter micro clock                                  what reading the time costs\n\n\
    With --json each also reports the machine and whether it was quiet.")]
pub struct Micro {
    #[command(subcommand)]
    pub verb: MicroVerb,
}

#[derive(Debug, Subcommand)]
pub enum MicroVerb {
    /// Memory bandwidth by STREAM's four kernels: copy, scale, add, triad
    Stream(Stream),
    /// Consumes a given memory bandwidth, and reports the consumed one
    Hog(Hog),
    /// Latency of dependent loads, by size; finds the caches
    Latency(Latency),
    /// Cost and resolution of each clock
    Clock(Costs),
    /// Cost of simple system calls
    Syscall(Costs),
    /// Cost of handing work to another thread, on one CPU and between two
    Switch(Costs),
    /// Round trips between a client and a server, by message size, transport and connections
    Pingpong(Box<Pingpong>),
    /// A stream to a receiver that touches the data with a stride and a reuse distance
    Flow(Box<Flow>),
}

#[derive(Debug, Args)]
pub struct PlacementFlags {
    /// The CPUs, such as 0-3,8 [default: those that kvmeter may use, one thread of a core first]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    /// Ends when the process that started it ends
    #[arg(long, hide = true)]
    pub with_parent: bool,
    /// Socket that is notified when the measured window opens and closes
    #[arg(long, value_name = "NAME", hide = true)]
    pub tell_window: Option<String>,
}

#[derive(Debug, Args)]
pub struct MemoryFlags {
    /// Pages of the memory: as the system gives them, huge or small ones by request, or reserved
    /// huge ones
    #[arg(
        long,
        value_name = "system|huge|small|reserved",
        default_value_t,
        hide_default_value = true
    )]
    pub pages: PageSize,
    /// Placement of the memory: at the thread that touches it first, on one NUMA node, or
    /// interleaved over all
    #[arg(
        long,
        value_name = "first-touch|node:N|interleave",
        default_value_t,
        hide_default_value = true
    )]
    pub place: Placement,
}

#[derive(Debug, Args)]
pub struct Stream {
    #[command(flatten)]
    pub at: PlacementFlags,
    /// Numbers of threads [default: one a CPU]
    #[arg(long, short = 'j', value_name = "N,...", value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Bytes of each of the three arrays: 16KiB,1GiB, or 16KiB..1GiB for every power of two
    /// [default: four times the last-level caches]
    #[arg(long, value_name = "SIZES")]
    pub size: Option<Sizes>,
    /// The fewest rounds that count
    #[arg(long, value_name = "N", default_value_t = micro::stream::ROUNDS)]
    pub rounds: usize,
    /// Time of the rounds, for each number of threads and size
    #[arg(long, short, value_name = "TIME", default_value = "1s")]
    pub time: Span,
    /// Through the caches, as compilers write STREAM's loops, or past them in all four kernels
    #[arg(long, value_name = "plain|streaming", default_value_t, hide_default_value = true)]
    pub stores: Stores,
    #[command(flatten)]
    pub memory: MemoryFlags,
}

#[derive(Debug, Args)]
pub struct Hog {
    #[command(flatten)]
    pub at: PlacementFlags,
    /// Bytes a second of all CPUs together [default: unlimited]
    #[arg(long, value_name = "RATE")]
    pub rate: Option<ByteRate>,
    /// How long
    #[arg(long, short, value_name = "TIME", default_value = "10s")]
    pub time: Span,
    /// Traffic on the memory bus
    #[arg(long, value_name = "read|update|write", default_value_t, hide_default_value = true)]
    pub traffic: Traffic,
    /// Working set of each thread [default: four times the last-level caches]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Until standard input ends; each line of it is answered with what was moved so far
    #[arg(long, hide = true, conflicts_with = "json")]
    pub serve: bool,
    #[command(flatten)]
    pub memory: MemoryFlags,
}

#[derive(Debug, Args)]
pub struct Latency {
    #[command(flatten)]
    pub at: PlacementFlags,
    /// Sizes: 32KiB,1GiB, or 4KiB..1GiB for four an octave [default: 4KiB to eight times the
    /// last-level cache]
    #[arg(long, value_name = "SIZES")]
    pub size: Option<Sizes>,
    /// Distance of loads in memory
    #[arg(long, value_name = "SIZE", default_value = "64")]
    pub stride: Bytes,
    /// How long each size is measured
    #[arg(long, short, value_name = "TIME", default_value = "50ms")]
    pub time: Span,
    /// Seed of the random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub memory: MemoryFlags,
}

#[derive(Debug, Args)]
pub struct Costs {
    #[command(flatten)]
    pub at: PlacementFlags,
    /// How long each is measured
    #[arg(long, short, value_name = "TIME", default_value = "200ms")]
    pub time: Span,
}

/// CPUs by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<u32>);

impl FromStr for CpuList {
    type Err = String;
    fn from_str(text: &str) -> Result<CpuList, String> {
        host::cpu_list(text)
            .filter(|cpus| !cpus.is_empty())
            .map(CpuList)
            .ok_or_else(|| format!("`{text}` is not a list of CPUs such as `0-3,8`"))
    }
}

/// Sizes, and ranges of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes(Vec<(u64, Option<u64>)>);

impl Sizes {
    /// All of them, in order and once each; `range` says what is in a range.
    pub fn all(&self, range: impl Fn(u64, u64) -> Vec<u64>) -> Vec<u64> {
        let each = |(from, to): &(u64, Option<u64>)| to.map_or(vec![*from], |to| range(*from, to));
        let mut all: Vec<u64> = self.0.iter().flat_map(each).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl FromStr for Sizes {
    type Err = String;
    fn from_str(text: &str) -> Result<Sizes, String> {
        let size = |text: &str| {
            let size = text.parse::<Bytes>().map_err(|error| error.to_string())?;
            if size.0 == 0 { Err("a size of zero measures nothing".to_owned()) } else { Ok(size.0) }
        };
        let each = |part: &str| match part.split_once("..") {
            None => Ok((size(part)?, None)),
            Some((from, to)) => match (size(from)?, size(to)?) {
                (from, to) if from < to => Ok((from, Some(to))),
                _ => Err(format!("`{part}`: the second size must be above the first")),
            },
        };
        text.split(',').map(each).collect::<Result<_, String>>().map(Sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_sizes() {
        let double = |from: u64, to: u64| {
            std::iter::successors(Some(from), |size| Some(size * 2))
                .take_while(|size| *size <= to)
                .collect()
        };
        let all = |text: &str| text.parse::<Sizes>().map(|sizes| sizes.all(double));
        assert_eq!(all("4KiB"), Ok(vec![4096]));
        assert_eq!(all("1MiB,4KiB..16KiB,8KiB"), Ok(vec![4096, 8192, 16384, 1 << 20]));
        for text in ["", "0", "4KiB..", "8KiB..4KiB", "x"] {
            assert!(all(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_cpu_lists() {
        assert_eq!("0-2,8".parse(), Ok(CpuList(vec![0, 1, 2, 8])));
        for text in ["", "x", "3-1"] {
            assert!(text.parse::<CpuList>().is_err(), "{text}");
        }
    }
}
