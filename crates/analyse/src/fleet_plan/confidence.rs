//! Confidence in the first choice, from the repeats of each capacity and power.

use model::random::{Draws, below};

use super::demand::{Demand, PurchaseTerms};
use super::error::PurchaseError;
use super::fleet::PlannedFleet;
use super::machine::MachineChoice;
use crate::describe::median;
use crate::interval::TAIL;

/// The standard error of a share is then below 1.2 %.
const RESAMPLES: u32 = 2000;
/// Fixed, so that the same repeats always give the same answer.
const SEED: u64 = 0x666c_6565_7400_0001;

/// The plan under resampling of the repeats of capacities and powers.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanConfidence {
    /// In the order of the choices.
    pub choices: Vec<ChoiceConfidence>,
    pub resamples: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChoiceConfidence {
    /// The 95 % interval of dollars a month; None where there is one capacity and one power, which
    /// are taken as certain.
    pub usd_per_month: Option<(f64, f64)>,
    /// The share of resamples in which it is the cheapest.
    pub cheapest_share: f64,
}

/// Draws the repeats of every choice anew with replacement, takes their median as its capacity and
/// its power, and plans again: the percentile bootstrap (Efron and Tibshirani 1993, ch. 13).
///
/// Choices with the same repeats, one machine at several prices, get the same draw. Capacity and
/// power are drawn apart, since they are of different runs. Prices are not varied. With few repeats
/// the interval is too short. None where no choice has two repeats.
///
/// # Errors
/// Those of [`PlannedFleet::of`].
pub fn confidence(
    choices: &[MachineChoice],
    demand: &Demand,
    terms: &PurchaseTerms,
) -> Result<Option<PlanConfidence>, PurchaseError> {
    if !choices.iter().any(is_repeated) {
        return Ok(None);
    }
    let mut random = Draws::from(SEED);
    let mut drawn = choices.to_vec();
    let mut costs = vec![Vec::with_capacity(RESAMPLES as usize); choices.len()];
    let mut cheapest = vec![0_u32; choices.len()];
    for _ in 0..RESAMPLES {
        for at in 0..choices.len() {
            let (own, watts) = (&choices[at].repeats_ops_s, repeats_w(&choices[at]));
            let twin = choices[..at]
                .iter()
                .position(|other| other.repeats_ops_s == *own && repeats_w(other) == watts);
            if let Some(twin) = twin.filter(|_| is_repeated(&choices[at])) {
                drawn[at].capacity_ops_s = drawn[twin].capacity_ops_s;
                drawn[at].power = drawn[twin].power.clone();
                continue;
            }
            if own.len() > 1 {
                drawn[at].capacity_ops_s = resampled_median(own, &mut random);
            }
            if let Some(power) = choices[at].power.as_ref().filter(|_| watts.len() > 1) {
                let scaled = power.scaled_to(resampled_median(watts, &mut random));
                drawn[at].power = Some(scaled?);
            }
        }
        let mut least: Option<(f64, usize)> = None;
        for (at, choice) in drawn.iter().enumerate() {
            let cost = PlannedFleet::of((at, choice), demand, terms)?.usd_per_month();
            costs[at].push(cost);
            if least.is_none_or(|(known, _)| cost < known) {
                least = Some((cost, at));
            }
        }
        if let Some((_, at)) = least {
            cheapest[at] += 1;
        }
    }
    let of_choice = |(at, mut costs): (usize, Vec<f64>)| {
        costs.sort_by(f64::total_cmp);
        let end = |share: f64| costs[((share * costs.len() as f64) as usize).min(costs.len() - 1)];
        ChoiceConfidence {
            usd_per_month: is_repeated(&choices[at]).then(|| (end(TAIL), end(1.0 - TAIL))),
            cheapest_share: f64::from(cheapest[at]) / f64::from(RESAMPLES),
        }
    };
    let choices = costs.into_iter().enumerate().map(of_choice).collect();
    Ok(Some(PlanConfidence { choices, resamples: RESAMPLES }))
}

/// The repeats of its power; none where one of them is no power.
fn repeats_w(choice: &MachineChoice) -> &[f64] {
    let repeats = choice.power.as_ref().map_or(&[][..], |power| &power.repeats_w);
    if repeats.iter().all(|watts| *watts > 0.0) { repeats } else { &[] }
}

/// Whether its capacity or its power is of several repeats.
fn is_repeated(choice: &MachineChoice) -> bool {
    choice.repeats_ops_s.len() > 1 || repeats_w(choice).len() > 1
}

fn resampled_median(repeats: &[f64], random: &mut Draws) -> f64 {
    let draw = |_| repeats[below(random.next(), repeats.len() as u64) as usize];
    median(&(0..repeats.len()).map(draw).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::test_machines::{TERMS, demand, machine};
    use super::*;
    use crate::fleet_plan::PricingModel;

    fn repeated(name: &str, repeats: &[f64], price_usd: f64) -> MachineChoice {
        let choice = machine(name, median(repeats));
        let pricing = PricingModel::Bought { price_usd };
        MachineChoice { repeats_ops_s: repeats.to_vec(), pricing, ..choice }
    }

    #[test]
    fn the_share_is_that_of_all_possible_draws() {
        // The median of three draws of 50, 100 and 200 is 50 in 7 of 27, 200 in 7 of 27.
        let varied = repeated("varied", &[50e3, 100e3, 200e3], 1_000.0);
        let fixed = machine("fixed", 110e3);
        let shares = confidence(&[varied, fixed], &demand(1e6), &TERMS).unwrap().unwrap();
        // Only at 200k it needs fewer machines than the other one.
        let share = shares.choices[0].cheapest_share;
        assert!((share - 7.0 / 27.0).abs() < 0.03, "{share}");
        assert!((shares.choices[1].cheapest_share + share - 1.0).abs() < 1e-12);
        let of = |capacity| {
            let choice = MachineChoice { capacity_ops_s: capacity, ..machine("", 1.0) };
            PlannedFleet::of((0, &choice), &demand(1e6), &TERMS).unwrap().usd_per_month()
        };
        assert_eq!(shares.choices[0].usd_per_month, Some((of(200e3), of(50e3))));
        assert_eq!(shares.choices[1].usd_per_month, None);
    }

    #[test]
    fn power_is_drawn_as_well() {
        let mut varied = machine("varied", 100e3);
        let watts = [100.0, 150.0, 300.0];
        varied.power.as_mut().expect("a power").repeats_w = watts.to_vec();
        let alone = confidence(&[varied.clone()], &demand(1e6), &TERMS).unwrap().unwrap();
        let of = |active_w: f64| {
            let power = varied.power.as_ref().and_then(|power| power.scaled_to(active_w).ok());
            let choice = MachineChoice { power, ..varied.clone() };
            PlannedFleet::of((0, &choice), &demand(1e6), &TERMS).unwrap().usd_per_month()
        };
        assert_eq!(alone.choices[0].usd_per_month, Some((of(100.0), of(300.0))));
        // It draws less than the other one in 7 of 27 draws.
        let mut fixed = machine("fixed", 100e3);
        fixed.power = varied.power.as_ref().and_then(|power| power.scaled_to(120.0).ok());
        fixed.power.as_mut().expect("a power").repeats_w.clear();
        let shares = confidence(&[varied, fixed], &demand(1e6), &TERMS).unwrap().unwrap();
        let share = shares.choices[0].cheapest_share;
        assert!((share - 7.0 / 27.0).abs() < 0.03, "{share}");
    }

    #[test]
    fn one_machine_at_two_prices_is_drawn_once() {
        let prices = [900.0, 1_000.0].map(|usd| repeated("a", &[50e3, 100e3, 200e3], usd));
        let shares = confidence(&prices, &demand(1e6), &TERMS).unwrap().unwrap();
        assert_eq!(shares.choices[0].cheapest_share, 1.0);
        let single = [machine("a", 1e5)];
        assert_eq!(confidence(&single, &demand(1e6), &TERMS), Ok(None));
    }
}
