//! How many of which machine to buy or rent for a load: pure functions over capacities that were
//! measured, prices and a demand.
//!
//! Everything here is modelled. Money is in US dollars, power in watts, rates in operations a second,
//! sizes in bytes, unless a name says otherwise. Costs are those of [`crate::cost`].

mod capacity;
mod confidence;
mod cover;
mod demand;
mod error;
mod fleet;
mod frontier;
mod machine;
mod mixed;
mod options;
mod size;
mod turning;

pub use capacity::{Capacity, CapacityBasis};
pub use confidence::{ChoiceConfidence, PlanConfidence, confidence};
pub use demand::{Demand, PurchaseTerms};
pub use error::PurchaseError;
pub use fleet::{FleetCarbon, FleetRacks, MONTHS_PER_YEAR, PlannedFleet, RackLimit};
pub use frontier::{FrontierPoint, frontier};
pub use machine::{DataRoom, HeldPoint, MachineChoice, MachinePower, NetworkRoom, PricingModel};
pub use mixed::{MixedFleet, mixed_fleet};
pub use options::{FleetPlan, plan};
pub use size::{FleetSize, SizeLimit};
pub use turning::{PlanInput, TurningInput, TurningPoint, turning_points};

#[cfg(test)]
mod published_tests;
#[cfg(test)]
mod test_machines;
