//! `[probes.cachegrind]` as it is written.

use model::{Bytes, Count, Span};
use serde::Deserialize;

/// The simulated counters of a study.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulationTable {
    /// Of the short pass and of the long one.
    pub operations: Option<[Count; 2]>,
    /// The most time of each pass.
    pub limit: Option<Span>,
    /// The caches that are simulated, all three or none.
    pub i1: Option<CacheTable>,
    pub d1: Option<CacheTable>,
    pub ll: Option<CacheTable>,
}

/// `{ size = "32KiB", ways = 8, line = 64 }`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheTable {
    pub size: Bytes,
    pub ways: u64,
    #[serde(default = "line")]
    pub line: Bytes,
}

fn line() -> Bytes {
    Bytes(64)
}
