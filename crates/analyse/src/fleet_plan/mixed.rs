//! Machines of several kinds for one load.

use super::cover::{CoverItem, cheapest_cover};
use super::demand::{Demand, PurchaseTerms};
use super::error::PurchaseError;
use super::fleet::{PlannedFleet, hourly};
use super::machine::MachineChoice;
use crate::cost::{CostError, HOURS_PER_YEAR};
use crate::fleet_plan::MONTHS_PER_YEAR;

/// A fleet of several kinds must be this share cheaper than one of a kind, or it is rounding.
const LEAST_SAVING: f64 = 1e-9;

/// Machines of several kinds that serve the demand together.
#[derive(Debug, Clone, PartialEq)]
pub struct MixedFleet {
    /// Choices and machines of each, spares included.
    pub machines: Vec<(usize, u64)>,
    pub usd_per_h: f64,
    /// With PUE; None where a machine's power is not known.
    pub watts: Option<f64>,
    /// How much cheaper another fleet might be at most, as a share; 0: this one is optimal.
    pub gap: f64,
}

impl MixedFleet {
    /// A twelfth of a year.
    pub fn usd_per_month(&self) -> f64 {
        self.usd_per_h * HOURS_PER_YEAR / MONTHS_PER_YEAR
    }
}

/// The cheapest fleet of several kinds, where it is cheaper than `best`, the cheapest of one kind.
///
/// Keys are spread by hash: a machine with a share s of the data has a share s of the load, whatever
/// its kind. Kind i serves at most `s = min(capacity / (peak k), link / (peak k b), room / (data R t))`.
/// The shares of all machines, without the largest ones that may fail, add up to 1 or more. Of all
/// such fleets the cheapest one is found, at the power of machines with their full shares; then its
/// cost is that of the shares as they are.
///
/// # Errors
/// Those of [`PlannedFleet::of`].
pub fn mixed_fleet(
    choices: &[MachineChoice],
    demand: &Demand,
    terms: &PurchaseTerms,
    best: &PlannedFleet,
) -> Result<Option<MixedFleet>, PurchaseError> {
    let mut items = Vec::with_capacity(choices.len());
    for choice in choices {
        let weight = full_share(choice, demand);
        let cost = usd_per_h(choice, demand, terms, weight)?;
        items.push(CoverItem { weight, cost });
    }
    let least = demand.replicas.saturating_add(demand.spares);
    let Some(cover) = cheapest_cover(&items, 1.0, demand.spares, least) else { return Ok(None) };
    let taken = || cover.counts.iter().enumerate().filter(|(_, machines)| **machines > 0);
    if taken().count() < 2 {
        return Ok(None);
    }
    let covered: f64 = taken().map(|(at, machines)| items[at].weight * *machines as f64).sum();
    let (mut usd, mut watts) = (0.0, Some(0.0));
    for (at, machines) in taken() {
        let (share, n) = (items[at].weight / covered, *machines as f64);
        usd += n * usd_per_h(&choices[at], demand, terms, share)?;
        let own = machine_w(&choices[at], demand, share)?.map(|watts| n * watts * terms.pue);
        watts = watts.zip(own).map(|(sum, own)| sum + own);
    }
    let fleet = MixedFleet {
        machines: taken().map(|(at, machines)| (at, *machines)).collect(),
        usd_per_h: usd,
        watts,
        gap: cover.gap,
    };
    Ok((usd < best.cost.total_usd_per_h() * (1.0 - LEAST_SAVING)).then_some(fleet))
}

/// The largest share of the load and the data that one machine serves.
fn full_share(choice: &MachineChoice, demand: &Demand) -> f64 {
    let peak = demand.peak_ops_s() * demand.work_per_operation(choice.write_share);
    let network = choice.network.filter(|network| network.bytes_per_op > 0.0);
    let network = network.map(|it| it.bytes_per_s / (peak * it.bytes_per_op));
    let room = demand.data_bytes.zip(choice.data_room.bytes).map(|(data, room)| {
        room / (data * demand.replicas as f64 * choice.data_room.taken_per_byte)
    });
    let limits = [Some(choice.capacity_ops_s / peak), network, room];
    limits.into_iter().flatten().fold(f64::INFINITY, f64::min)
}

/// Watts of a machine with this share of the mean load, without PUE.
fn machine_w(
    choice: &MachineChoice,
    demand: &Demand,
    share: f64,
) -> Result<Option<f64>, PurchaseError> {
    let rate = demand.rate_ops_s * demand.work_per_operation(choice.write_share);
    let utilisation = (share * rate / choice.capacity_ops_s).min(1.0);
    let watts = choice.power.as_ref().map(|power| power.at(utilisation)).transpose();
    watts.map_err(|error| named(choice, error))
}

fn usd_per_h(
    choice: &MachineChoice,
    demand: &Demand,
    terms: &PurchaseTerms,
    share: f64,
) -> Result<f64, PurchaseError> {
    let watts = machine_w(choice, demand, share)?;
    let cost = hourly(choice, 1, watts, terms).map_err(|error| named(choice, error))?;
    Ok(cost.total_usd_per_h())
}

fn named(choice: &MachineChoice, error: CostError) -> PurchaseError {
    PurchaseError::Cost { name: choice.name.clone(), error }
}

#[cfg(test)]
mod tests {
    use super::super::test_machines::{TERMS, demand, machine};
    use super::*;
    use crate::fleet_plan::{PricingModel, plan};

    fn mixed(choices: &[MachineChoice], demand: &Demand) -> Option<MixedFleet> {
        let plan = plan(choices, demand, &TERMS).unwrap();
        mixed_fleet(choices, demand, &TERMS, plan.first()).unwrap()
    }

    #[test]
    fn a_small_machine_serves_what_a_large_one_is_too_large_for() {
        let mut choices = [machine("large", 1e6), machine("small", 150e3)];
        choices[0].pricing = PricingModel::Bought { price_usd: 5_000.0 };
        // 2.1M: three large ones, or two and one small one for $4,000 less.
        let flat = Demand { peak_over_mean: 1.0, spares: 0, ..demand(2.1e6) };
        let fleet = mixed(&choices, &flat).unwrap();
        assert_eq!(fleet.machines, [(0, 2), (1, 1)]);
        assert_eq!(fleet.gap, 0.0);
        // Each at 2.1 of 2.15 of its capacity.
        let watts = 3.0 * (50.0 + 100.0 * 2.1 / 2.15) * 1.5;
        assert!((fleet.watts.unwrap() - watts).abs() < 1e-9, "{fleet:?}");
        let hours = 3.0 * 8_760.0;
        let usd = 11_000.0 / hours + watts / 1e3 * 0.2 + 3.0 * 10.0 * 12.0 / 8_760.0;
        assert!((fleet.usd_per_h - usd).abs() < 1e-9, "{fleet:?}");
        // 2M needs no small one.
        assert_eq!(mixed(&choices, &Demand { rate_ops_s: 2e6, ..flat }), None);
    }

    #[test]
    fn one_kind_has_nothing_to_mix() {
        assert_eq!(mixed(&[machine("a", 1e5)], &demand(2.1e6)), None);
    }
}
