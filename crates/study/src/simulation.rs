//! Simulated counters, for machines without a PMU: the workload runs under valgrind's cachegrind with
//! two numbers of operations. Start-up and loading cancel out in the difference.

use std::time::Duration;

use host::cachegrind::{CacheGeometry, SimulatedCache};
use model::{Bytes, Count, Span};
use serde::Deserialize;

/// Under cachegrind everything takes 20 to 100 times as long.
const OPERATIONS: (u64, u64) = (100_000, 1_100_000);
const LIMIT: Duration = Duration::from_secs(600);

/// The configuration of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulation {
    /// Of the short pass, which is made twice, and of the long one.
    pub operations: (u64, u64),
    /// Of each pass.
    pub limit: Duration,
    /// Level 1 for instructions and data, and the last level; those of the machine if not given.
    pub caches: Option<(SimulatedCache, SimulatedCache, SimulatedCache)>,
}

impl Default for Simulation {
    fn default() -> Self {
        Simulation { operations: OPERATIONS, limit: LIMIT, caches: None }
    }
}

/// `[probes.cachegrind]`.
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

impl Simulation {
    pub(crate) fn of(table: &SimulationTable) -> Result<Simulation, String> {
        let operations = table.operations.map_or(OPERATIONS, |[few, many]| (few.0, many.0));
        if operations.0 == 0 || operations.1 <= operations.0 {
            let (few, many) = operations;
            return Err(format!(
                "`operations` are of the short pass and of the long one, and {many} are not more \
                 than {few}"
            ));
        }
        let limit = table.limit.map_or(LIMIT, |limit| limit.0);
        let cache = |cache: CacheTable| SimulatedCache {
            bytes: cache.size.0,
            ways: cache.ways,
            line: cache.line.0,
        };
        let caches = match (table.i1, table.d1, table.ll) {
            (None, None, None) => None,
            (Some(i1), Some(d1), Some(ll)) => Some((cache(i1), cache(d1), cache(ll))),
            _ => return Err("give all of `i1`, `d1` and `ll`, or none of them".to_owned()),
        };
        if let Some((i1, d1, ll)) = caches {
            CacheGeometry::new(i1, d1, ll).map_err(|why| why.to_string())?;
        }
        Ok(Simulation { operations, limit, caches })
    }
}
