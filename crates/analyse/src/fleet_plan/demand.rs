//! What is to be served, and on which terms.

use crate::cost::{Assumptions, CostError, above_zero};

/// What is to be served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Operations a second of all clients, on average.
    pub rate_ops_s: f64,
    /// The highest rate over the average one, 1 or more.
    pub peak_over_mean: f64,
    /// Keys and values, each counted once; None where room for them does not matter.
    pub data_bytes: Option<f64>,
    /// Copies of each record, 1 or more, each on a machine of its own.
    pub replicas: u64,
    /// Machines that may fail at the peak while the objective still holds: 1 is N+1.
    pub spares: u64,
}

/// Prices and assumptions for all machines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PurchaseTerms {
    /// The life over which a machine that is bought is written off.
    pub years: f64,
    pub usd_per_kwh: f64,
    /// Power usage effectiveness: watts of the building for each watt of a machine.
    pub pue: f64,
    pub usd_per_rack_unit_month: f64,
    /// Watts that a rack may draw; None where that does not limit.
    pub rack_w: Option<f64>,
    /// Grams of CO2 equivalent for a kWh.
    pub carbon_g_per_kwh: Option<f64>,
}

impl Demand {
    /// The rate that must be held.
    pub fn peak_ops_s(&self) -> f64 {
        self.rate_ops_s * self.peak_over_mean
    }

    /// Operations of machines for each one of the clients: `1 + w (R - 1)`, as each of R replicas
    /// does every write, a share w of the operations, and one of them each read.
    pub fn work_per_operation(&self, write_share: f64) -> f64 {
        1.0 + write_share * (self.replicas as f64 - 1.0)
    }

    /// # Errors
    /// A rate of zero or below, a peak below the mean, no replica.
    pub fn check(&self) -> Result<(), CostError> {
        above_zero("rate", self.rate_ops_s)?;
        let (what, must) = ("peak over mean", "1 or more");
        if !(self.peak_over_mean.is_finite() && self.peak_over_mean >= 1.0) {
            return Err(CostError::Impossible { what, value: self.peak_over_mean, must });
        }
        if let Some(bytes) = self.data_bytes {
            above_zero("size of the data", bytes)?;
        }
        above_zero("number of replicas", self.replicas as f64).map(drop)
    }
}

impl PurchaseTerms {
    /// In the form of the cost model, whose target does not matter here.
    pub(super) fn assumptions(&self) -> Assumptions {
        Assumptions {
            target_ops_s: 1.0,
            years: self.years,
            usd_per_kwh: self.usd_per_kwh,
            pue: self.pue,
            usd_per_rack_unit_month: self.usd_per_rack_unit_month,
        }
    }
}
