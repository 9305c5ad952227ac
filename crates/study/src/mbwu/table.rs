//! `[mbwu]` of a study: the procedure is to find work units with its store and its one workload.

use model::{Bytes, Rate};
use serde::Deserialize;
use toml::Spanned;

/// `[mbwu]`. Every key has a default.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MbwuTable {
    /// Threads for each device, from the least to the most, as the load is raised.
    pub threads: Spanned<Vec<u32>>,
    /// The most rounds until the steady state.
    pub rounds: Spanned<u32>,
    /// Less than this share more is nothing more.
    pub gain: Spanned<f64>,
    /// Load the data anew before every round.
    pub reload: bool,
    /// A unit that another platform gave with the same device and workload.
    pub unit: Option<Spanned<Rate>>,
    /// What the platform's memory moves in a second at most.
    pub memory_bandwidth: Option<Spanned<Bytes>>,
    /// How a block device is brought to a known state before it gets a file system.
    pub precondition: Option<PreconditionTable>,
}

impl Default for MbwuTable {
    fn default() -> Self {
        // At most 25 rounds, as in the published tool.
        MbwuTable {
            threads: Spanned::new(0..0, vec![1, 2, 4, 8, 16, 32, 64, 128]),
            rounds: Spanned::new(0..0, 25),
            gain: Spanned::new(0..0, 0.05),
            reload: false,
            unit: None,
            memory_bandwidth: None,
            precondition: None,
        }
    }
}

/// `precondition = { share = 0.75, random = true }`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreconditionTable {
    /// Of the device's addresses, from the first on.
    pub share: f64,
    /// Random writes until the steady state behind the sequential ones.
    #[serde(default)]
    pub random: bool,
}
