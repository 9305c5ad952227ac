//! Lists of CPUs and of sizes.

use std::str::FromStr;

use model::{Bytes, cpu_list};
use serde::{Deserialize, Serialize};

/// CPUs by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuList {
    text: String,
    pub cpus: Vec<u32>,
}

impl FromStr for CpuList {
    type Err = String;
    fn from_str(text: &str) -> Result<CpuList, String> {
        match cpu_list::parse(text).filter(|cpus| !cpus.is_empty()) {
            Some(cpus) => Ok(CpuList { text: text.to_owned(), cpus }),
            None => Err(format!("`{text}` is not a list of CPUs such as `0-3,8`")),
        }
    }
}

impl From<Vec<u32>> for CpuList {
    fn from(cpus: Vec<u32>) -> CpuList {
        let text = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        CpuList { text, cpus }
    }
}

impl TryFrom<String> for CpuList {
    type Error = String;
    fn try_from(text: String) -> Result<CpuList, String> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> String {
        list.text
    }
}

/// As it was written.
impl std::fmt::Display for CpuList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Sizes, and ranges of them. A job has one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Bytes", into = "Bytes")]
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

impl From<Bytes> for Sizes {
    fn from(Bytes(size): Bytes) -> Sizes {
        Sizes(vec![(size, None)])
    }
}

impl From<Sizes> for Bytes {
    fn from(Sizes(all): Sizes) -> Bytes {
        Bytes(all.first().map_or(0, |(size, _)| *size))
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
        assert_eq!("0-2,8".parse().map(|list: CpuList| list.cpus), Ok(vec![0, 1, 2, 8]));
        for text in ["", "x", "3-1"] {
            assert!(text.parse::<CpuList>().is_err(), "{text}");
        }
    }
}
