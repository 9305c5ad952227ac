//! A machine with a store and its configuration, as a choice.

use super::capacity::Capacity;
use crate::cost::{CostError, PowerCurve};
use crate::search::RateTrial;

/// A kind of machine that runs one store in one configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineChoice {
    /// Store, configuration and machine.
    pub name: String,
    /// The highest rate of one machine at which the objective holds.
    pub capacity_ops_s: f64,
    /// The capacities that each repeat found; [`MachineChoice::capacity_ops_s`] is their median.
    /// Empty where it is given.
    pub repeats_ops_s: Vec<f64>,
    /// The trials of each repeat; empty where the capacity is given.
    pub trials: Vec<Vec<RateTrial>>,
    /// Rates that held, with the latency there, rising.
    pub held: Vec<HeldPoint>,
    /// Share of the operations that write, between 0 and 1.
    pub write_share: f64,
    pub pricing: PricingModel,
    /// None where it is unknown.
    pub power: Option<MachinePower>,
    pub rack_units: Option<f64>,
    pub data_room: DataRoom,
    /// None where the network is not known, and not taken to limit.
    pub network: Option<NetworkRoom>,
    /// CO2 equivalent of making one, in kg.
    pub embodied_kg: Option<f64>,
}

impl MachineChoice {
    /// The capacity if all limits of the objective were so many times as high, from the same trials;
    /// None where none held then.
    pub fn capacity_at(&self, factor: f64) -> Option<f64> {
        let repeats = self.trials.iter().filter_map(|trials| {
            let moved = trials.iter().map(|trial| {
                let mut moved = trial.clone();
                for result in &mut moved.judgement.results {
                    *result = result.with_limit_times(factor);
                }
                moved
            });
            Capacity::of_trials(&moved.collect::<Vec<_>>())
        });
        Capacity::median_ops_s(&repeats.collect::<Vec<_>>())
    }
}

/// A rate that held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldPoint {
    pub rate_ops_s: f64,
    /// The measured value of the objective's first condition, in nanoseconds.
    pub latency_ns: f64,
}

/// How a machine is paid for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PricingModel {
    /// Power and room in a rack are paid beside the price.
    Bought { price_usd: f64 },
    /// Power and room are in the price.
    Rented { usd_per_h: f64 },
}

impl PricingModel {
    pub fn is_bought(self) -> bool {
        matches!(self, PricingModel::Bought { .. })
    }
}

/// Power of one machine.
#[derive(Debug, Clone, PartialEq)]
pub struct MachinePower {
    /// At its capacity, in watts.
    pub active_w: f64,
    /// That of each repeat there, of which `active_w` is the median; empty where it is one number.
    pub repeats_w: Vec<f64>,
    /// Power over the share of its capacity; None where the idle power is not known, and then
    /// `active_w` is its power at every load.
    pub curve: Option<PowerCurve>,
}

impl MachinePower {
    /// With another power at the capacity, the curve scaled to it.
    ///
    /// # Errors
    /// A power of zero or below.
    pub fn scaled_to(&self, active_w: f64) -> Result<MachinePower, CostError> {
        let scaled = |curve: &PowerCurve| curve.scaled(active_w / self.active_w);
        let curve = self.curve.as_ref().map(scaled).transpose()?;
        Ok(MachinePower { active_w, repeats_w: self.repeats_w.clone(), curve })
    }

    /// Watts at a share of the capacity.
    ///
    /// # Errors
    /// A share outside 0 to 1.
    pub fn at(&self, utilisation: f64) -> Result<f64, CostError> {
        match &self.curve {
            Some(curve) => curve.at(utilisation),
            None => Ok(self.active_w),
        }
    }
}

/// Where a machine keeps its data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataRoom {
    /// In memory; else in storage.
    pub in_memory: bool,
    /// Bytes for data; None where that is not known.
    pub bytes: Option<f64>,
    /// Bytes taken for each byte of keys and values.
    pub taken_per_byte: f64,
}

/// What the network of a machine carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NetworkRoom {
    /// In each direction.
    pub bytes_per_s: f64,
    /// Keys and values of an operation, in the direction with more of them.
    pub bytes_per_op: f64,
}
