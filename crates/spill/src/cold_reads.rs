//! How records that are not in memory are read.

use crate::engine::Engine;
use crate::options::ColdReads;
use crate::value_log::ColdReadMode;
use crate::version::Version;

impl Engine {
    /// The mode that the options choose, or that fits the machine's memory.
    pub(crate) fn cold_read_mode(&self, version: &Version) -> ColdReadMode {
        match self.options.cold_reads {
            ColdReads::Around => ColdReadMode::Around,
            ColdReads::Page => ColdReadMode::Page,
            ColdReads::Auto => match available_memory() {
                Some(available) if version.log_bytes() > available / 2 => ColdReadMode::Page,
                _ => ColdReadMode::Around,
            },
        }
    }
}

/// Bytes available without swapping; `None` if the system does not tell.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}
