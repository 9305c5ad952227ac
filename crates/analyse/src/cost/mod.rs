//! The cost of serving a load in money, energy, space and carbon: the model of S. Mikrou's thesis
//! (2019, chapter 5), with extensions.
//!
//! Everything here is modelled from measured throughput and power. Money is in US dollars, power in
//! watts, time in hours unless a name says otherwise.

mod answer;
mod break_even;
mod candidate;
mod error;
mod fleet;
mod load_power;
mod platform;
mod power;
mod sensitivity;
mod sourced;
mod unit_cost;
mod usd_per_gop;
mod verdict;
mod work_unit;

pub use answer::{
    BreakEven, CandidateCosts, CandidatePair, CostAnswer, CostAt, PricedPair, WorkloadCosts, answer,
};
pub use break_even::{
    CostLine, break_even_electricity, break_even_price, break_even_years, cost_line, equal_price,
};
pub use candidate::{CostTerms, ServerCandidate};
pub(crate) use error::above_zero;
pub use error::{CandidateError, CostError};
pub use fleet::{
    Assumptions, HOURS_PER_YEAR, RACK_UNITS_PER_RACK, ServedLoad, ServerFleet, energy_usd_per_h,
    lifetime_energy_usd, power_of_cost_w, servers_for, total_usd,
};
pub use load_power::{LoadPower, absence_note, source_text};
pub use platform::{
    GivenLevels, GivenValue, LoadPoint, Platform, PlatformError, PlatformValue, RentalOffer,
    RentalTerm, published,
};
pub use power::{PowerCurve, average_power_w};
pub use sensitivity::{Assumption, SensitivityRange, tornado};
pub use sourced::{AVERAGE, GivenNumbers, RequiredNumbers, SourcedCandidate, note_other_work};
pub use unit_cost::{PlatformUnits, UnitComparison, UnitCost, UnitSaving};
pub use usd_per_gop::usd_per_gop;
pub use work_unit::{equivalent, kwh_per_mbwu, m2_per_mbwu, saving, usd_per_mbwu, watts_per_mbwu};

#[cfg(test)]
mod properties;
