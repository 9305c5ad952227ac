//! `[mbwu]` as it is written: work units are to be found with the study's store and workload.

use analyse::mbwu::DeviceLoad;
use model::{Bytes, Rate};
use serde::Deserialize;
use toml::Spanned;

/// `[mbwu]`. Every key has a default.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MbwuTable {
    /// Threads for each device, from the least to the most, as the load is raised.
    pub threads: Spanned<Vec<u32>>,
    /// Stores on each device, each with the whole data: more are tried where fewer leave it idle.
    pub databases: Spanned<Vec<u32>>,
    /// Rates for each device instead of a closed loop, from the least to the most.
    pub rate: Spanned<Vec<Rate>>,
    /// The most rounds until the steady state.
    pub rounds: Spanned<u32>,
    /// Minimum increase, as a share, that counts as more throughput.
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
            databases: Spanned::new(0..0, vec![1]),
            rate: Spanned::new(0..0, Vec::new()),
            rounds: Spanned::new(0..0, 25),
            gain: Spanned::new(0..0, 0.05),
            reload: false,
            unit: None,
            memory_bandwidth: None,
            precondition: None,
        }
    }
}

impl MbwuTable {
    /// The loads of a device, in order: the rates, else the threads, with the fewest databases first.
    pub fn loads(&self) -> Vec<DeviceLoad> {
        let (threads, rates) = (self.threads.get_ref(), self.rate.get_ref());
        let with = |databases: u32| -> Vec<DeviceLoad> {
            let load = |threads, rate| DeviceLoad { threads, databases, rate };
            match threads.last() {
                Some(most) if !rates.is_empty() => {
                    rates.iter().map(|rate| load(*most, Some(rate.0))).collect()
                }
                // Each database has a thread.
                _ => threads.iter().filter(|t| **t >= databases).map(|t| load(*t, None)).collect(),
            }
        };
        self.databases.get_ref().iter().flat_map(|databases| with(*databases)).collect()
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
