//! What would change the answer: the values of one input at which another choice is the cheapest.

use super::demand::{Demand, PurchaseTerms};
use super::error::PurchaseError;
use super::machine::{MachineChoice, PricingModel};
use super::options::{FleetPlan, plan};

/// How far an input is moved, as a factor up and down.
const FACTOR: f64 = 100.0;
/// Each step is this factor; a change that is undone within one step is missed.
const STEP: f64 = 1.02;
/// Halvings of a step, far below the precision of any input.
const HALVINGS: usize = 50;

/// One input, moved alone.
#[derive(Debug, Clone, PartialEq)]
pub struct TurningInput {
    pub input: PlanInput,
    /// Its value in the plan.
    pub base: f64,
    /// The nearest value below at which another choice is the cheapest, if there is one.
    pub below: Option<TurningPoint>,
    /// The nearest value above.
    pub above: Option<TurningPoint>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TurningPoint {
    pub at: f64,
    /// The choice that is the cheapest beyond.
    pub then: usize,
}

/// What is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanInput {
    /// Of a choice: dollars, or dollars an hour.
    Price(usize),
    Rate,
    PeakOverMean,
    Data,
    Electricity,
    Years,
    /// All limits of the objective, as a factor.
    Objective,
}

/// A plan's inputs.
#[derive(Debug, Clone)]
struct PlanCase {
    choices: Vec<MachineChoice>,
    demand: Demand,
    terms: PurchaseTerms,
}

/// Moves each input alone from its value by up to a factor of 100 down and up, in steps of 2 %, and
/// halves the step in which the cheapest choice changes: prices of the first and of the runner-up,
/// rate, peak over mean, data, electricity, lifetime, and the objective where all choices were
/// measured.
///
/// # Errors
/// Those of [`plan`] at the inputs as they are.
pub fn turning_points(
    choices: &[MachineChoice],
    demand: &Demand,
    terms: &PurchaseTerms,
) -> Result<Vec<TurningInput>, PurchaseError> {
    let case = PlanCase { choices: choices.to_vec(), demand: *demand, terms: *terms };
    let base = case.plan()?;
    let Some(second) = base.runner_up() else { return Ok(Vec::new()) };
    let first = base.first().choice;
    let mut inputs = vec![
        PlanInput::Price(first),
        PlanInput::Price(second.choice),
        PlanInput::Rate,
        PlanInput::PeakOverMean,
        PlanInput::Electricity,
        PlanInput::Years,
    ];
    inputs.extend(demand.data_bytes.map(|_| PlanInput::Data));
    if choices.iter().all(|choice| !choice.trials.is_empty()) {
        inputs.push(PlanInput::Objective);
    }
    let of_input = |input: PlanInput| {
        let base = case.value(input);
        let turn = |step: f64| case.turn(input, base, step, first);
        TurningInput { input, base, below: turn(1.0 / STEP), above: turn(STEP) }
    };
    Ok(inputs.into_iter().map(of_input).collect())
}

impl PlanCase {
    fn plan(&self) -> Result<FleetPlan, PurchaseError> {
        plan(&self.choices, &self.demand, &self.terms)
    }

    fn value(&self, input: PlanInput) -> f64 {
        match input {
            PlanInput::Price(choice) => match self.choices[choice].pricing {
                PricingModel::Bought { price_usd } => price_usd,
                PricingModel::Rented { usd_per_h } => usd_per_h,
            },
            PlanInput::Rate => self.demand.rate_ops_s,
            PlanInput::PeakOverMean => self.demand.peak_over_mean,
            PlanInput::Data => self.demand.data_bytes.unwrap_or(0.0),
            PlanInput::Electricity => self.terms.usd_per_kwh,
            PlanInput::Years => self.terms.years,
            PlanInput::Objective => 1.0,
        }
    }

    /// A choice that holds a moved objective at no rate has no capacity.
    fn with(&self, input: PlanInput, value: f64) -> PlanCase {
        let mut case = self.clone();
        match input {
            PlanInput::Price(choice) => {
                let pricing = &mut case.choices[choice].pricing;
                *pricing = match pricing {
                    PricingModel::Bought { .. } => PricingModel::Bought { price_usd: value },
                    PricingModel::Rented { .. } => PricingModel::Rented { usd_per_h: value },
                };
            }
            PlanInput::Rate => case.demand.rate_ops_s = value,
            PlanInput::PeakOverMean => case.demand.peak_over_mean = value,
            PlanInput::Data => case.demand.data_bytes = Some(value),
            PlanInput::Electricity => case.terms.usd_per_kwh = value,
            PlanInput::Years => case.terms.years = value,
            PlanInput::Objective => {
                for choice in &mut case.choices {
                    choice.capacity_ops_s = choice.capacity_at(value).unwrap_or(f64::NAN);
                }
            }
        }
        case
    }

    /// None where the input cannot have that value, or no choice serves it.
    fn cheapest(&self, input: PlanInput, value: f64) -> Option<usize> {
        let case = self.with(input, value);
        let serve = case.choices.iter().enumerate();
        let (at, able): (Vec<usize>, Vec<MachineChoice>) = serve
            .filter(|(_, choice)| choice.capacity_ops_s.is_finite())
            .map(|(at, choice)| (at, choice.clone()))
            .unzip();
        let plan = plan(&able, &case.demand, &case.terms).ok()?;
        Some(at[plan.first().choice])
    }

    fn turn(&self, input: PlanInput, base: f64, step: f64, first: usize) -> Option<TurningPoint> {
        let steps = (FACTOR.ln() / STEP.ln()).ceil() as i32;
        let mut same = base;
        for nth in 1..=steps {
            let next = base * step.powi(nth);
            let then = self.cheapest(input, next)?;
            if then == first {
                same = next;
                continue;
            }
            let (mut near, mut far) = (same, (next, then));
            for _ in 0..HALVINGS {
                let middle = near + (far.0 - near) / 2.0;
                match self.cheapest(input, middle) {
                    Some(other) if other != first => far = (middle, other),
                    _ => near = middle,
                }
            }
            return Some(TurningPoint { at: far.0, then: far.1 });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::capacity::tests::trial;
    use super::super::test_machines::{TERMS, demand, machine};
    use super::*;

    fn find(all: &[TurningInput], input: PlanInput) -> &TurningInput {
        all.iter().find(|one| one.input == input).unwrap()
    }

    #[test]
    fn break_evens_are_those_of_the_formula() {
        // Of 100 Mops/s: 297 of the small one and 84 of the large one, without spares or peaks.
        let flat = Demand { peak_over_mean: 1.0, spares: 0, ..demand(100e6) };
        let mut choices = [machine("small", 337e3), machine("large", 1.191e6)];
        choices[0].pricing = PricingModel::Bought { price_usd: 800.0 };
        choices[1].pricing = PricingModel::Bought { price_usd: 3_000.0 };
        for choice in &mut choices {
            choice.power.as_mut().unwrap().curve = None;
        }
        choices[0].power.as_mut().unwrap().active_w = 52.0;
        choices[1].power.as_mut().unwrap().active_w = 203.0;
        let terms = PurchaseTerms { usd_per_rack_unit_month: 0.0, ..TERMS };
        let all = turning_points(&choices, &flat, &terms).unwrap();
        let near = |turn: Option<TurningPoint>, wanted: f64| {
            let turn = turn.unwrap();
            assert!((turn.at - wanted).abs() < 1e-6 * wanted, "{turn:?} for {wanted}");
            assert_eq!(turn.then, 1);
        };
        let energy = |n: f64, watts: f64| n * watts / 1e3 * 1.5 * 0.2 * 3.0 * 8_760.0;
        let (small, large) = (energy(297.0, 52.0), energy(84.0, 203.0));
        let even = (84.0 * 3_000.0 + large - small) / 297.0;
        near(find(&all, PlanInput::Price(0)).above, even);
        assert_eq!(find(&all, PlanInput::Price(0)).below, None);
        near(find(&all, PlanInput::Price(1)).below, (297.0 * 800.0 + small - large) / 84.0);
        // Less power for more machines: electricity and life only turn it downwards or not at all.
        let electricity = find(&all, PlanInput::Electricity);
        assert!(electricity.above.is_none() && electricity.below.is_none(), "{electricity:?}");
    }

    #[test]
    fn growth_turns_whole_machines() {
        // One slow machine is cheaper than one fast one, and 10 slow ones are not.
        let flat = Demand { peak_over_mean: 1.0, spares: 0, ..demand(90e3) };
        let mut choices = [machine("slow", 100e3), machine("fast", 1e6)];
        choices[1].pricing = PricingModel::Bought { price_usd: 3_500.0 };
        let all = turning_points(&choices, &flat, &TERMS).unwrap();
        let rate = find(&all, PlanInput::Rate);
        assert_eq!((rate.base, rate.below), (90e3, None));
        let above = rate.above.unwrap();
        assert_eq!(above.then, 1);
        assert!(above.at > 100e3 && above.at < 400e3, "{above:?}");
        // At the turn the order is that of the plan there, and just below that of the plan as it is.
        let first = |rate_ops_s| {
            plan(&choices, &Demand { rate_ops_s, ..flat }, &TERMS).unwrap().first().choice
        };
        assert_eq!((first(above.at * (1.0 - 1e-9)), first(above.at)), (0, 1));
        assert!(turning_points(&choices[..1], &flat, &TERMS).unwrap().is_empty());
    }

    #[test]
    fn a_tighter_objective_that_one_machine_cannot_hold_turns_the_plan() {
        let measured = |name: &str, high_us: [f64; 2]| {
            let trials = vec![trial(50e3, 50e3, high_us[0]), trial(100e3, 100e3, high_us[1])];
            MachineChoice { trials: vec![trials], ..machine(name, 100e3) }
        };
        // Both hold 1 ms at 100k; 0.5 ms the cheap one holds at no rate, the other one at 50k.
        let mut choices = [measured("cheap", [600.0, 900.0]), measured("quick", [100.0, 900.0])];
        choices[1].pricing = PricingModel::Bought { price_usd: 1_300.0 };
        assert_eq!(choices[0].capacity_at(1.0), Some(100e3));
        assert_eq!(choices[0].capacity_at(0.5), None);
        let all = turning_points(&choices, &demand(1e6), &TERMS).unwrap();
        let objective = find(&all, PlanInput::Objective);
        let below = objective.below.unwrap();
        // Interpolated, the cheap one falls from 100k to 50k between 0.9 and 0.6 ms.
        assert!(below.then == 1 && below.at > 0.6 && below.at < 0.9, "{below:?}");
        assert_eq!(objective.above, None);
    }
}
