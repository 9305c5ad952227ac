//! All choices, the cheapest first.

use super::demand::{Demand, PurchaseTerms};
use super::error::PurchaseError;
use super::fleet::PlannedFleet;
use super::machine::MachineChoice;

/// What serves the demand, the cheapest first.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetPlan {
    /// One a choice; at least one.
    pub fleets: Vec<PlannedFleet>,
}

impl FleetPlan {
    pub fn first(&self) -> &PlannedFleet {
        &self.fleets[0]
    }

    pub fn runner_up(&self) -> Option<&PlannedFleet> {
        self.fleets.get(1)
    }
}

/// The fleet of each choice, the cheapest first; of two at one cost the one of fewer machines, then
/// the one that was named first.
///
/// # Errors
/// No choice; those of [`PlannedFleet::of`].
pub fn plan(
    choices: &[MachineChoice],
    demand: &Demand,
    terms: &PurchaseTerms,
) -> Result<FleetPlan, PurchaseError> {
    let fleets = choices.iter().enumerate().map(|one| PlannedFleet::of(one, demand, terms));
    let mut fleets = fleets.collect::<Result<Vec<_>, _>>()?;
    if fleets.is_empty() {
        return Err(PurchaseError::NoChoice);
    }
    fleets.sort_by(|a, b| {
        let cost = a.cost.total_usd_per_h().total_cmp(&b.cost.total_usd_per_h());
        cost.then(a.machines().cmp(&b.machines()))
    });
    Ok(FleetPlan { fleets })
}

#[cfg(test)]
mod tests {
    use super::super::test_machines::{TERMS, demand, machine};
    use super::*;
    use crate::fleet_plan::PricingModel;

    #[test]
    fn the_cheapest_is_first_and_the_next_the_runner_up() {
        let mut choices = [machine("dear", 100e3), machine("cheap", 100e3), machine("fast", 400e3)];
        choices[0].pricing = PricingModel::Bought { price_usd: 9_000.0 };
        choices[2].pricing = PricingModel::Bought { price_usd: 2_500.0 };
        let plan = plan(&choices, &demand(200e3), &TERMS).unwrap();
        let order: Vec<usize> = plan.fleets.iter().map(|fleet| fleet.choice).collect();
        // Seven cheap ones against three fast ones: $7,000 and $7,500, but less power.
        assert_eq!(order, [2, 1, 0]);
        assert_eq!(plan.first().machines(), 3);
        assert_eq!(plan.runner_up().map(|fleet| fleet.choice), Some(1));
        assert_eq!(super::plan(&[], &demand(1.0), &TERMS), Err(PurchaseError::NoChoice));
    }
}
