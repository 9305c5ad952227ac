//! The rate that one machine holds.

use crate::describe::median;
use crate::search::{RateTrial, TrialOutcome, highest_held};
use crate::slo::ConditionResult;

/// Rates closer than this share are not interpolated: the search's own resolution is finer.
const RESOLVED: f64 = 0.05;

/// The rate at which one machine still holds the objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    pub rate_ops_s: f64,
    pub basis: CapacityBasis,
}

/// What a capacity follows from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CapacityBasis {
    /// The rate itself was measured and held; the next one above did not, if there is one.
    Measured { not_held_ops_s: Option<f64> },
    /// Straight between the upper ends of the latency's intervals at two measured rates, of which
    /// the lower one held and the higher one broke the objective.
    Interpolated { held_ops_s: f64, broke_ops_s: f64 },
}

impl Capacity {
    /// The median of repeats; None without one.
    pub fn median_ops_s(repeats: &[Capacity]) -> Option<f64> {
        let rates: Vec<f64> = repeats.iter().map(|capacity| capacity.rate_ops_s).collect();
        (!rates.is_empty()).then(|| median(&rates))
    }

    /// From the trials of one machine, whatever chose their rates; None if none held.
    ///
    /// Between a rate that held and one that broke the objective, more than 5 % above, the rate is
    /// where the chord of each condition's upper bound passes its limit, and the lowest of these.
    /// Latency rises ever faster with load, so the chord lies above it and the rate is not too high.
    /// Nothing is extrapolated.
    pub fn of_trials(trials: &[RateTrial]) -> Option<Capacity> {
        let highest = highest_held(trials)?;
        let held_ops_s = highest.held.rate_ops_s;
        let above = highest.not_held;
        let basis = CapacityBasis::Measured { not_held_ops_s: above.map(|it| it.rate_ops_s) };
        let measured = Capacity { rate_ops_s: held_ops_s, basis };
        let broke = above.filter(|trial| {
            trial.outcome() == TrialOutcome::Broke
                && trial.rate_ops_s > held_ops_s * (1.0 + RESOLVED)
        });
        let between = broke.and_then(|broke| {
            let rate_ops_s = crossing(highest.held, broke)?;
            let basis = CapacityBasis::Interpolated { held_ops_s, broke_ops_s: broke.rate_ops_s };
            Some(Capacity { rate_ops_s, basis })
        });
        Some(between.unwrap_or(measured))
    }
}

/// Where the first condition passes its limit; None where an interval is missing.
fn crossing(held: &RateTrial, broke: &RateTrial) -> Option<f64> {
    let span = broke.rate_ops_s - held.rate_ops_s;
    let pairs = held.judgement.results.iter().zip(&broke.judgement.results);
    let rates = pairs.map(|(low, high)| {
        let (limit, low, high) = (low.condition.limit_ns(), upper(low)?, upper(high)?);
        let share = if high > limit { (limit - low) / (high - low) } else { 1.0 };
        Some(held.rate_ops_s + share.clamp(0.0, 1.0) * span)
    });
    let lowest = rates.collect::<Option<Vec<f64>>>()?.into_iter().fold(f64::INFINITY, f64::min);
    // A trial that broke has a condition that passes its limit.
    (lowest < broke.rate_ops_s).then_some(lowest)
}

fn upper(result: &ConditionResult) -> Option<f64> {
    result.interval.as_ref().ok().map(|interval| interval.high)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::interval::{Interval, IntervalMethod};
    use crate::search::ClientHealth;
    use crate::slo::{Judgement, Objective, ObjectiveVerdict};

    /// A trial whose p99 has an interval up to `high_us`; the limit is 1 ms.
    pub(in crate::fleet_plan) fn trial(
        rate_ops_s: f64,
        achieved_ops_s: f64,
        high_us: f64,
    ) -> RateTrial {
        let objective: Objective = "p99<1ms".parse().unwrap();
        let (low, high) = (high_us * 900.0, high_us * 1e3);
        let method = IntervalMethod::OrderStatistics { low_rank: 1, high_rank: 2 };
        let result = ConditionResult {
            condition: objective.conditions()[0],
            measured_ns: Some(low),
            samples: 10_000,
            interval: Ok(Interval { low, high, method }),
            verdict: match high < 1e6 {
                true => ObjectiveVerdict::Holds,
                false => ObjectiveVerdict::Breaks,
            },
        };
        RateTrial {
            rate_ops_s,
            achieved_ops_s,
            judgement: Judgement { results: vec![result] },
            client: ClientHealth::default(),
            failed: None,
            hit_ratio: None,
            disturbed: None,
        }
    }

    #[test]
    fn interpolates_between_measured_rates_alone() {
        let trials =
            [trial(10e3, 10e3, 400.0), trial(20e3, 20e3, 800.0), trial(30e3, 30e3, 1_600.0)];
        let capacity = Capacity::of_trials(&trials).unwrap();
        // A quarter of the way from 0.8 to 1.6 ms.
        assert!((capacity.rate_ops_s - 22_500.0).abs() < 1e-6, "{capacity:?}");
        let basis = CapacityBasis::Interpolated { held_ops_s: 20e3, broke_ops_s: 30e3 };
        assert_eq!(capacity.basis, basis);
        // Above the highest that was measured nothing is known.
        let capacity = Capacity::of_trials(&trials[..2]).unwrap();
        let basis = CapacityBasis::Measured { not_held_ops_s: None };
        assert_eq!(capacity, Capacity { rate_ops_s: 20e3, basis });
        assert_eq!(Capacity::of_trials(&trials[2..]), None);
        assert_eq!(Capacity::of_trials(&[]), None);
    }

    #[test]
    fn a_rate_that_was_not_achieved_is_no_point_of_a_curve() {
        let behind = [trial(20e3, 20e3, 800.0), trial(40e3, 25e3, 9_000.0)];
        let basis = CapacityBasis::Measured { not_held_ops_s: Some(40e3) };
        let expected = Capacity { rate_ops_s: 20e3, basis };
        assert_eq!(Capacity::of_trials(&behind), Some(expected));
        let close = [trial(20e3, 20e3, 800.0), trial(20.5e3, 20.5e3, 1_200.0)];
        assert_eq!(Capacity::of_trials(&close).unwrap().rate_ops_s, 20e3);
    }
}
