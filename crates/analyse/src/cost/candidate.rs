//! The servers that are compared, and the assumptions for all of them.

use super::error::{CostError, share};
use super::fleet::{Assumptions, ServedLoad};
use super::power::PowerCurve;

/// A server under one workload.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerCandidate {
    pub name: String,
    pub workload: String,
    /// None where only energy is compared.
    pub price_usd: Option<f64>,
    pub throughput_ops_s: f64,
    /// Power P_a while it serves that, in watts.
    pub active_w: f64,
    /// U of its own, where that was measured; else that of the terms.
    pub utilisation: Option<f64>,
    /// Power over utilisation, up to `active_w`; None where the idle power is not known.
    pub curve: Option<PowerCurve>,
    pub rack_units: Option<f64>,
    pub footprint_m2: Option<f64>,
}

/// The assumptions for all candidates; see [`Assumptions`].
#[derive(Debug, Clone, PartialEq)]
pub struct CostTerms {
    pub target_ops_s: f64,
    /// At least one.
    pub years: Vec<f64>,
    /// At least one.
    pub usd_per_kwh: Vec<f64>,
    pub pue: f64,
    pub usd_per_rack_unit_month: f64,
    /// Grams of CO2 equivalent for a kWh.
    pub carbon_g_per_kwh: Option<f64>,
    /// U, the share of its full load at which a server works on average. 1: `active_w` is its
    /// average power.
    pub utilisation: f64,
    /// Assumed price of the other server for break-even prices, if it has none.
    pub at_price_usd: f64,
    /// Relative range of assumptions without several levels, for the sensitivity: 0.2 is 20 % up
    /// and down.
    pub spread: f64,
}

impl ServerCandidate {
    /// Its average power at its own utilisation, else at this one, in watts.
    ///
    /// Errors: a utilisation outside 0 to 1, or below 1 where the curve is not known.
    pub fn watts(&self, utilisation: f64) -> Result<f64, CostError> {
        let u = share("utilisation", self.utilisation.unwrap_or(utilisation))?;
        match &self.curve {
            Some(curve) => curve.at(u),
            None if u == 1.0 => Ok(self.active_w),
            None => Err(CostError::NoIdlePower { name: self.name.clone() }),
        }
    }

    pub(super) fn server(&self, utilisation: f64) -> Result<ServedLoad, CostError> {
        Ok(ServedLoad {
            price_usd: self.price_usd.unwrap_or(0.0),
            throughput_ops_s: self.throughput_ops_s,
            power_w: self.watts(utilisation)?,
            rack_units: self.rack_units.unwrap_or(0.0),
        })
    }
}

impl CostTerms {
    pub(super) fn at(&self, years: f64, usd_per_kwh: f64) -> Assumptions {
        Assumptions {
            target_ops_s: self.target_ops_s,
            years,
            usd_per_kwh,
            pue: self.pue,
            usd_per_rack_unit_month: self.usd_per_rack_unit_month,
        }
    }

    /// Every lifetime with every price of electricity.
    pub(super) fn all(&self) -> impl Iterator<Item = Assumptions> {
        self.years.iter().flat_map(|years| {
            self.usd_per_kwh.iter().map(|usd_per_kwh| self.at(*years, *usd_per_kwh))
        })
    }
}
