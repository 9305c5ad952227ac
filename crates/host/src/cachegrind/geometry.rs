use std::fmt;

use model::Unavailable;

use crate::facts::topology::online;
use crate::format;
use crate::parse::cache_size;
use crate::root::{Root, RootError};

const CPUS: &str = "/sys/devices/system/cpu";

/// One simulated cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulatedCache {
    pub bytes: u64,
    pub ways: u64,
    /// Bytes of a line.
    pub line: u64,
}

impl SimulatedCache {
    /// A cache of the same size and line whose number of sets is a power of
    /// two, as cachegrind demands: where it is not (an LLC of eleven slices),
    /// the ways are increased. `None` where no such cache exists.
    pub fn simulable(self) -> Option<SimulatedCache> {
        let lines = self.bytes.checked_div(self.line)?;
        if !self.line.is_power_of_two() || self.line < 16 || self.ways == 0 || lines < self.ways {
            return None;
        }
        if lines * self.line != self.bytes {
            return None;
        }
        let mut sets = 1 << lines.trailing_zeros();
        while sets > lines / self.ways {
            sets /= 2;
        }
        Some(SimulatedCache { ways: lines / sets, ..self })
    }
}

impl fmt::Display for SimulatedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} ways, {} B lines", format::bytes(self.bytes), self.ways, self.line)
    }
}

/// The caches that cachegrind simulates: two first ones and the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheGeometry {
    pub i1: SimulatedCache,
    pub d1: SimulatedCache,
    pub ll: SimulatedCache,
}

impl CacheGeometry {
    /// Given caches, made simulable.
    ///
    /// # Errors
    /// One of them cannot be simulated.
    pub fn new(
        i1: SimulatedCache,
        d1: SimulatedCache,
        ll: SimulatedCache,
    ) -> Result<CacheGeometry, Unavailable> {
        let checked = |name: &str, cache: SimulatedCache| {
            cache.simulable().ok_or_else(|| {
                Unavailable::new(
                    format!("{name} of {cache} cannot be simulated"),
                    "give bytes, ways and line size; the line size is a power of two from 16 on, \
                     the bytes a multiple of ways times line size",
                )
            })
        };
        Ok(CacheGeometry { i1: checked("I1", i1)?, d1: checked("D1", d1)?, ll: checked("LL", ll)? })
    }

    /// The caches of the first CPU. If a hypervisor states wrong ones, give the
    /// real ones to [`CacheGeometry::new`].
    ///
    /// # Errors
    /// The machine does not state one of them.
    pub fn of(root: &Root) -> Result<CacheGeometry, Unavailable> {
        let cpu = online(root)?.first().copied().unwrap_or(0);
        let folder = format!("{CPUS}/cpu{cpu}/cache");
        let mut caches: Vec<(u32, String, Result<SimulatedCache, RootError>)> = Vec::new();
        for index in root.numbered(&folder, "index")? {
            let file = |name: &str| format!("{folder}/index{index}/{name}");
            let cache = || {
                let path = file("size");
                let text = root.value(&path)?;
                let bytes = cache_size(&text)
                    .ok_or_else(|| RootError::malformed(&path, &text, "a size such as 32K"))?;
                let ways = root.number(&file("ways_of_associativity"))?;
                Ok(SimulatedCache { bytes, ways, line: root.number(&file("coherency_line_size"))? })
            };
            caches.push((root.number(&file("level"))?, root.value(&file("type"))?, cache()));
        }
        let pick =
            |what: &str, cache: Option<&(u32, String, Result<SimulatedCache, RootError>)>| {
                let remedy = "give the cache's bytes, ways and line yourself";
                match cache {
                    Some((.., Ok(cache))) => Ok(*cache),
                    Some((.., Err(error))) => Err(Unavailable::new(error.to_string(), remedy)),
                    None => Err(Unavailable::new(format!("{folder} states no {what}"), remedy)),
                }
            };
        let first = |kind: &str| caches.iter().find(|(level, of, _)| *level == 1 && of == kind);
        let i1 = pick("first-level instruction cache", first("Instruction"))?;
        let d1 = pick("first-level data cache", first("Data"))?;
        let last = caches.iter().filter(|(level, ..)| *level > 1).max_by_key(|(level, ..)| *level);
        CacheGeometry::new(i1, d1, pick("last-level cache", last)?)
    }

    /// The options that tell cachegrind.
    pub(super) fn options(&self) -> [String; 3] {
        [("I1", self.i1), ("D1", self.d1), ("LL", self.ll)]
            .map(|(name, cache)| format!("--{name}={},{},{}", cache.bytes, cache.ways, cache.line))
    }
}

impl fmt::Display for CacheGeometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "I1 {}; D1 {}; LL {}", self.i1, self.d1, self.ll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_become_a_power_of_two_and_the_size_stays() {
        let cache = |bytes: u64, ways: u64| SimulatedCache { bytes, ways, line: 64 };
        for (real, ways) in [
            (cache(32 << 10, 8), 8),
            (cache(48 << 10, 12), 12),
            // 13.75 MiB of eleven ways have 20480 sets.
            (cache(14_080 << 10, 11), 55),
            (cache(384 << 20, 1), 3),
        ] {
            let simulated = real.simulable().unwrap();
            assert_eq!((simulated.bytes, simulated.ways), (real.bytes, ways));
            assert!((simulated.bytes / simulated.line / simulated.ways).is_power_of_two());
        }
        assert_eq!(cache(32 << 10, 0).simulable(), None);
        assert_eq!(SimulatedCache { bytes: 1000, ways: 1, line: 64 }.simulable(), None);
        assert_eq!(SimulatedCache { bytes: 4096, ways: 1, line: 0 }.simulable(), None);
    }
}
