use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How the content is erased first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purge {
    /// Discard, where the device can.
    Discard,
    /// NVMe sanitize: every namespace, and what is not addressable.
    Sanitize,
    /// NVMe format with erasure of the user data.
    Format,
    None,
}

/// The settings of a preconditioning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreconditionRequest {
    pub purge: Purge,
    /// Share of the addresses that is written, from the first on: more than 0, at most 1.
    pub share: f64,
    /// How many times the device's capacity is written sequentially, within that share.
    pub times: f64,
    /// Random writes of 4 KiB until the steady state, in rounds of this length, and at most so
    /// many.
    pub random: Option<(Duration, u32)>,
    /// Queue depth: writes in flight.
    pub depth: u32,
    /// Bytes per second at most.
    pub rate: Option<f64>,
}

impl Default for PreconditionRequest {
    fn default() -> Self {
        PreconditionRequest {
            purge: Purge::Discard,
            share: 1.0,
            times: 2.0,
            random: None,
            depth: 32,
            rate: None,
        }
    }
}
