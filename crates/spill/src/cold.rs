//! How records are read that may not be in memory.

use crate::inner::Inner;
use crate::log::Cold;
use crate::options::ColdReads;
use crate::version::Version;

impl Inner {
    /// What the options say, or what fits the memory of the machine.
    pub(crate) fn cold(&self, version: &Version) -> Cold {
        match self.options.cold_reads {
            ColdReads::Around => Cold::Around,
            ColdReads::Page => Cold::Page,
            ColdReads::Auto => match available_memory() {
                Some(available) if version.log_bytes() > available / 2 => Cold::Page,
                _ => Cold::Around,
            },
        }
    }
}

/// Bytes that can be had without swapping; None where the system does not tell.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}
