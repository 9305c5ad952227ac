//! Machines and demands of tests.

use super::{DataRoom, Demand, MachineChoice, MachinePower, PricingModel, PurchaseTerms};
use crate::cost::PowerCurve;

pub const GIB: f64 = 1_073_741_824.0;

/// 64 GiB of memory, 50 W idle and 150 W at its capacity, $1,000.
pub fn machine(name: &str, capacity_ops_s: f64) -> MachineChoice {
    MachineChoice {
        name: name.to_owned(),
        capacity_ops_s,
        repeats_ops_s: Vec::new(),
        trials: Vec::new(),
        held: Vec::new(),
        write_share: 0.0,
        pricing: PricingModel::Bought { price_usd: 1_000.0 },
        power: Some(MachinePower {
            active_w: 150.0,
            repeats_w: Vec::new(),
            curve: Some(PowerCurve::line(50.0, 150.0).unwrap()),
        }),
        rack_units: Some(1.0),
        data_room: DataRoom { in_memory: true, bytes: Some(64.0 * GIB), taken_per_byte: 1.25 },
        network: None,
        embodied_kg: Some(1_200.0),
    }
}

/// At a peak of three times the mean, with one spare machine.
pub fn demand(rate_ops_s: f64) -> Demand {
    Demand { rate_ops_s, peak_over_mean: 3.0, data_bytes: None, replicas: 1, spares: 1 }
}

/// Three years at 0.2 $/kWh, and half as much again for the building.
pub const TERMS: PurchaseTerms = PurchaseTerms {
    years: 3.0,
    usd_per_kwh: 0.2,
    pue: 1.5,
    usd_per_rack_unit_month: 10.0,
    rack_w: None,
    carbon_g_per_kwh: Some(400.0),
};
