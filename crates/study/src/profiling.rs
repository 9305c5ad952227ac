//! The pass after the measured runs that says where the time goes.

use std::collections::BTreeMap;

use model::RunSettings;

/// Samples a second of CPU time. No multiple of the timers' frequencies, so that samples do not
/// fall in with what happens at every tick.
const FREQUENCY: u64 = 499;
/// More would cost more than it shows.
const MOST_FREQUENT: u64 = 10_000;

/// Which cells are profiled, and how often a second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profiling {
    /// Samples a second of CPU time of each thread.
    pub frequency: u64,
    /// Settings that a cell must have; all cells where there are none.
    pub only: BTreeMap<String, String>,
}

impl Default for Profiling {
    fn default() -> Self {
        Profiling { frequency: FREQUENCY, only: BTreeMap::new() }
    }
}

impl Profiling {
    /// Samples so many times a second.
    ///
    /// # Errors
    /// In words, which frequencies there are.
    pub fn with_frequency(self, frequency: u64) -> Result<Profiling, String> {
        match frequency {
            1..=MOST_FREQUENT => Ok(Profiling { frequency, ..self }),
            _ => Err(format!("a frequency is 1 to {MOST_FREQUENT} samples a second")),
        }
    }

    /// Whether the cell of these settings is profiled.
    pub fn includes(&self, settings: &RunSettings) -> bool {
        self.only.iter().all(|(key, value)| settings.get(key) == Some(value))
    }
}
