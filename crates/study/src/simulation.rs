//! Simulated counters, for machines without a PMU: the workload runs under valgrind's cachegrind with
//! two numbers of operations. Start-up and loading cancel out in the difference.

use std::time::Duration;

use host::cachegrind::SimulatedCache;

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
