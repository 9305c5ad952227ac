//! Cost against latency and power: what more machines at a lower rate each would buy.

use super::demand::{Demand, PurchaseTerms};
use super::error::PurchaseError;
use super::fleet::PlannedFleet;
use super::machine::{HeldPoint, MachineChoice, MachinePower};
use crate::cost::PowerCurve;

/// A fleet whose machines are run up to a measured rate that held.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontierPoint {
    pub at: HeldPoint,
    pub fleet: PlannedFleet,
    /// Another point is at least as good in cost, latency and power, and better in one.
    pub is_dominated: bool,
}

/// A point for each measured rate of each choice that held, by choice and rising rate. Measured rates
/// alone: nothing between them.
///
/// # Errors
/// Those of [`PlannedFleet::of`].
pub fn frontier(
    choices: &[MachineChoice],
    demand: &Demand,
    terms: &PurchaseTerms,
) -> Result<Vec<FrontierPoint>, PurchaseError> {
    let mut points = Vec::new();
    for (position, choice) in choices.iter().enumerate() {
        for at in &choice.held {
            let lower = MachineChoice { capacity_ops_s: at.rate_ops_s, ..choice.clone() };
            let lower = MachineChoice { power: power_at(choice, at.rate_ops_s), ..lower };
            let fleet = PlannedFleet::of((position, &lower), demand, terms)?;
            points.push(FrontierPoint { at: *at, fleet, is_dominated: false });
        }
    }
    let figures: Vec<[f64; 3]> = points.iter().map(figures).collect();
    for (point, own) in points.iter_mut().zip(&figures) {
        point.is_dominated = figures.iter().any(|other| dominates(other, own));
    }
    Ok(points)
}

/// The power of a machine whose capacity is taken to be lower: a line from idle up to there.
fn power_at(choice: &MachineChoice, rate_ops_s: f64) -> Option<MachinePower> {
    let power = choice.power.as_ref()?;
    let share = (rate_ops_s / choice.capacity_ops_s).min(1.0);
    let active_w = power.at(share).ok()?;
    let idle_w = power.curve.as_ref().map(PowerCurve::idle_w);
    let curve = idle_w.and_then(|idle| PowerCurve::line(idle, active_w).ok());
    Some(MachinePower { active_w, repeats_w: Vec::new(), curve })
}

/// Cost, latency, power; what is not known is no advantage.
fn figures(point: &FrontierPoint) -> [f64; 3] {
    let watts = point.fleet.watts.unwrap_or(f64::INFINITY);
    [point.fleet.cost.total_usd_per_h(), point.at.latency_ns, watts]
}

fn dominates(a: &[f64; 3], b: &[f64; 3]) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b) && a.iter().zip(b).any(|(a, b)| a < b)
}

#[cfg(test)]
mod tests {
    use super::super::test_machines::{TERMS, demand, machine};
    use super::*;

    #[test]
    fn points_that_another_beats_are_marked() {
        let held = |pairs: &[(f64, f64)]| -> Vec<HeldPoint> {
            let point = |(rate_ops_s, latency_ns): &(f64, f64)| HeldPoint {
                rate_ops_s: *rate_ops_s,
                latency_ns: *latency_ns,
            };
            pairs.iter().map(point).collect()
        };
        let quick = MachineChoice {
            held: held(&[(50e3, 200e3), (100e3, 900e3)]),
            ..machine("quick", 100e3)
        };
        let slow = MachineChoice { held: held(&[(50e3, 300e3)]), ..machine("slow", 50e3) };
        let points = frontier(&[quick, slow], &demand(100e3), &TERMS).unwrap();
        let machines: Vec<u64> = points.iter().map(|point| point.fleet.machines()).collect();
        assert_eq!(machines, [7, 4, 7]);
        let dominated: Vec<bool> = points.iter().map(|point| point.is_dominated).collect();
        // As many machines, and slower; the fastest and the cheapest remain.
        assert_eq!(dominated, [false, false, true]);
        // At half of its capacity the quick machine draws 100 W.
        let watts = points[0].fleet.machine_w.unwrap();
        assert!((watts - (50.0 + 50.0 * 100.0 / 350.0)).abs() < 1e-9, "{watts}");
    }
}
