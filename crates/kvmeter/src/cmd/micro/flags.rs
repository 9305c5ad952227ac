//! Flags that microbenchmarks have in common.

use std::str::FromStr;

use clap::Args;
use micro::region::{PageSize, Placement};
use model::{Bytes, Span, cpu_list};

#[derive(Debug, Args)]
pub struct PlacementFlags {
    /// The CPUs, such as 0-3,8 [default: those that kvmeter may use, one thread of a core first]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// Print one JSON object
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
pub struct TimedArgs {
    #[command(flatten)]
    pub at: PlacementFlags,
    /// Length of each measurement
    #[arg(long, short, value_name = "TIME", default_value = "200ms")]
    pub time: Span,
}

/// CPUs by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<u32>);

impl FromStr for CpuList {
    type Err = String;
    fn from_str(text: &str) -> Result<CpuList, String> {
        cpu_list::parse(text)
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
