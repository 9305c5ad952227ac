//! A number of machines of one kind: cost, power, room and carbon.

use super::demand::{Demand, PurchaseTerms};
use super::error::PurchaseError;
use super::machine::{MachineChoice, PricingModel};
use super::size::FleetSize;
use crate::cost::{CostError, HOURS_PER_YEAR, RACK_UNITS_PER_RACK, ServedLoad, ServerFleet};

pub const MONTHS_PER_YEAR: f64 = 12.0;
const WATTS_PER_KILOWATT: f64 = 1e3;
const GRAMS_PER_KILOGRAM: f64 = 1e3;

/// Machines of one kind that serve the demand.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedFleet {
    /// The machine, by its position among the choices.
    pub choice: usize,
    pub size: FleetSize,
    /// The average load of a machine as a share of its capacity, spares included.
    pub utilisation: f64,
    /// Average power of one machine, without PUE; None where it is not known.
    pub machine_w: Option<f64>,
    /// Average power of all, with PUE.
    pub watts: Option<f64>,
    /// None where the height is not known, or machines are rented.
    pub rack_units: Option<f64>,
    pub racks: Option<FleetRacks>,
    /// Dollars an hour; rent of machines is in `equipment_usd_per_h`.
    pub cost: ServerFleet,
    pub years: f64,
    pub carbon: FleetCarbon,
}

/// Racks of 42 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetRacks {
    pub racks: u64,
    /// What fills a rack.
    pub limit: RackLimit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RackLimit {
    Height,
    Power,
}

impl RackLimit {
    /// The name on the page and in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            RackLimit::Height => "height",
            RackLimit::Power => "power",
        }
    }
}

/// Kilograms of CO2 equivalent over the life; None where an input is not known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FleetCarbon {
    pub running_kg: Option<f64>,
    pub embodied_kg: Option<f64>,
}

impl PlannedFleet {
    /// The fleet that the demand needs of this choice.
    ///
    /// Average power is that at the average load: exact where power is a line over load.
    ///
    /// # Errors
    /// Those of [`FleetSize::of`] and of the cost model; a machine that draws more than a rack may.
    pub fn of(
        (at, choice): (usize, &MachineChoice),
        demand: &Demand,
        terms: &PurchaseTerms,
    ) -> Result<PlannedFleet, PurchaseError> {
        let size = FleetSize::of(choice, demand)?;
        let cannot = |error: CostError| PurchaseError::Cost { name: choice.name.clone(), error };
        let n = size.machines() as f64;
        let work = demand.rate_ops_s * demand.work_per_operation(choice.write_share);
        let utilisation = (work / (n * choice.capacity_ops_s)).min(1.0);
        let machine_w =
            choice.power.as_ref().map(|power| power.at(utilisation)).transpose().map_err(cannot)?;
        let cost = hourly(choice, size.machines(), machine_w, terms).map_err(cannot)?;
        let watts = machine_w.map(|watts| n * watts * terms.pue);
        let kilowatt_hours =
            watts.map(|watts| watts / WATTS_PER_KILOWATT * terms.years * HOURS_PER_YEAR);
        let grams = terms.carbon_g_per_kwh.zip(kilowatt_hours).map(|(each, all)| each * all);
        let height = choice.rack_units.filter(|_| choice.pricing.is_bought());
        Ok(PlannedFleet {
            choice: at,
            utilisation,
            machine_w,
            watts,
            rack_units: height.map(|units| n * units),
            racks: racks(choice, size.machines(), terms)?,
            cost,
            years: terms.years,
            carbon: FleetCarbon {
                running_kg: grams.map(|grams| grams / GRAMS_PER_KILOGRAM),
                embodied_kg: choice.embodied_kg.map(|each| n * each),
            },
            size,
        })
    }

    pub fn machines(&self) -> u64 {
        self.size.machines()
    }

    /// A twelfth of a year.
    pub fn usd_per_month(&self) -> f64 {
        self.cost.total_usd_per_h() * HOURS_PER_YEAR / MONTHS_PER_YEAR
    }

    pub fn usd_over_life(&self) -> f64 {
        self.cost.total_usd_per_h() * HOURS_PER_YEAR * self.years
    }
}

/// Dollars an hour of so many machines.
pub(super) fn hourly(
    choice: &MachineChoice,
    machines: u64,
    machine_w: Option<f64>,
    terms: &PurchaseTerms,
) -> Result<ServerFleet, CostError> {
    let (price_usd, usd_per_h) = match choice.pricing {
        PricingModel::Bought { price_usd } => (price_usd, 0.0),
        PricingModel::Rented { usd_per_h } => (0.0, usd_per_h),
    };
    // Power and room of a rented machine are in its price.
    let own = |value: Option<f64>| value.filter(|_| choice.pricing.is_bought()).unwrap_or(0.0);
    let machine = ServedLoad {
        price_usd,
        throughput_ops_s: choice.capacity_ops_s,
        power_w: own(machine_w),
        rack_units: own(choice.rack_units),
    };
    let mut cost = ServerFleet::of_servers(machines, &machine, &terms.assumptions())?;
    cost.equipment_usd_per_h += machines as f64 * usd_per_h;
    Ok(cost)
}

/// As many whole machines in a rack as its height and its power allow.
fn racks(
    choice: &MachineChoice,
    machines: u64,
    terms: &PurchaseTerms,
) -> Result<Option<FleetRacks>, PurchaseError> {
    if !choice.pricing.is_bought() {
        return Ok(None);
    }
    let by_height = choice.rack_units.map(|units| RACK_UNITS_PER_RACK / units);
    let by_power = match (terms.rack_w, &choice.power) {
        (Some(rack_w), Some(power)) if power.active_w > rack_w => {
            let (name, watts) = (choice.name.clone(), power.active_w);
            return Err(PurchaseError::AboveRackPower { name, watts, rack_w });
        }
        (Some(rack_w), Some(power)) => Some(rack_w / power.active_w),
        _ => None,
    };
    let limit = match (by_height, by_power) {
        (None, None) => return Ok(None),
        (Some(height), Some(power)) if power.floor() < height.floor() => RackLimit::Power,
        (None, Some(_)) => RackLimit::Power,
        (Some(_), _) => RackLimit::Height,
    };
    let fit = [by_height, by_power].into_iter().flatten().fold(f64::INFINITY, f64::min);
    let racks = match fit >= 1.0 {
        true => machines as f64 / fit.floor(),
        // Each is higher than a rack.
        false => machines as f64 * (1.0 / fit).ceil(),
    };
    Ok(Some(FleetRacks { racks: racks.ceil() as u64, limit }))
}

#[cfg(test)]
mod tests {
    use super::super::test_machines::{TERMS, demand, machine};
    use super::*;

    #[test]
    fn a_fleet_costs_what_it_does_by_hand() {
        // 600k at the peak of 200k: six machines and a spare, at 200/700 of their capacity.
        let fleet = PlannedFleet::of((0, &machine("a", 100e3)), &demand(200e3), &TERMS).unwrap();
        let near = |value: f64, wanted: f64| {
            assert!((value - wanted).abs() < 1e-9 * wanted.abs(), "{value} for {wanted}");
        };
        assert_eq!(fleet.machines(), 7);
        near(fleet.utilisation, 2.0 / 7.0);
        near(fleet.machine_w.unwrap(), 50.0 + 100.0 * 2.0 / 7.0);
        near(fleet.watts.unwrap(), (7.0 * 50.0 + 200.0) * 1.5);
        let hours = 3.0 * 8_760.0;
        near(fleet.usd_over_life(), 7_000.0 + 0.825 * 0.2 * hours + 7.0 * 10.0 * 36.0);
        near(fleet.usd_per_month() * 36.0, fleet.usd_over_life());
        near(fleet.carbon.running_kg.unwrap(), 0.825 * hours * 0.4);
        near(fleet.carbon.embodied_kg.unwrap(), 8_400.0);
        assert_eq!(fleet.rack_units, Some(7.0));
        assert_eq!(fleet.racks, Some(FleetRacks { racks: 1, limit: RackLimit::Height }));
    }

    #[test]
    fn a_rented_machine_costs_its_hours_alone() {
        let pricing = PricingModel::Rented { usd_per_h: 0.5 };
        let rented = MachineChoice { pricing, power: None, ..machine("a", 100e3) };
        let fleet = PlannedFleet::of((0, &rented), &demand(200e3), &TERMS).unwrap();
        assert!((fleet.usd_per_month() - 7.0 * 0.5 * 730.0).abs() < 1e-9);
        assert_eq!((fleet.watts, fleet.racks, fleet.rack_units), (None, None, None));
        assert_eq!(fleet.carbon.running_kg, None);
    }

    #[test]
    fn the_power_of_a_rack_limits_before_its_height() {
        let with = |rack_w| PurchaseTerms { rack_w: Some(rack_w), ..TERMS };
        let of =
            |rack_w| PlannedFleet::of((0, &machine("a", 100e3)), &demand(200e3), &with(rack_w));
        // Two of 150 W in 449 W.
        assert_eq!(
            of(449.0).unwrap().racks,
            Some(FleetRacks { racks: 4, limit: RackLimit::Power })
        );
        assert_eq!(of(1e6).unwrap().racks, Some(FleetRacks { racks: 1, limit: RackLimit::Height }));
        let error = of(149.0).unwrap_err().to_string();
        assert!(error.contains("150 W") && error.contains("--rack-power"), "{error}");
    }
}
