//! Power over a graduated load: energy proportionality.

use thiserror::Error;

use crate::describe::median;

/// The valid repeats of one level of load.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredLevel {
    /// Target operations per second.
    pub target_ops_s: f64,
    /// Achieved operations per second, and watts, of each repeat.
    pub runs: Vec<(f64, f64)>,
}

/// One level of the graduated load; level 0 is the idle machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerLevel {
    /// Of the highest level's target: 1, 0.9 ... 0.1, and 0.
    pub share: f64,
    /// Medians over the repeats.
    pub ops_s: f64,
    pub power_w: f64,
    /// None of the idle machine.
    pub ops_per_joule: Option<f64>,
}

/// How a machine's power follows its load.
#[derive(Debug, Clone, PartialEq)]
pub struct Proportionality {
    /// The highest first, the idle machine last, where its power is known.
    pub levels: Vec<PowerLevel>,
    /// `sum of ops/s over all levels / sum of their watts`, the idle machine among them where
    /// its power is known: in ops/J.
    pub overall_ops_per_joule: f64,
    /// Whether the idle machine is included. Figures with and without it are not comparable.
    pub with_idle: bool,
    /// `1 - (A - A_ideal) / A_ideal`: 1 where power is proportional to load, 0 where it is
    /// constant. None without the idle machine.
    pub proportionality: Option<f64>,
    /// Idle watts over those of the highest level.
    pub idle_to_peak: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Error)]
pub enum ProportionalityError {
    #[error("a graduated load has two levels or more, got {0}")]
    TooFewLevels(usize),
    #[error("the level of {0} ops/s has no run")]
    Empty(f64),
    #[error("the level of {0} ops/s occurs twice")]
    Twice(f64),
    #[error("a level's rate and power must be positive numbers, got {ops_s} ops/s at {power_w} W")]
    NotPositive { ops_s: f64, power_w: f64 },
}

/// The figures of a graduated load: open loops at shares of a calibrated maximum, one boundary
/// of power. `idle_w` are the watts of the idle machine at the same boundary.
///
/// - Overall efficiency as SPECpower_ssj2008 has it: the sum of the throughputs of all levels
///   over the sum of all mean powers, active idle among them (SPEC, "Power and Performance
///   Benchmark Methodology", V2.2, 2014).
/// - Energy proportionality after Ryckbosch, Polfliet and Eeckhout, "Trends in Server Energy
///   Proportionality", IEEE Computer 44(9) (2011): with A the area below power over load, both
///   as shares of the highest level's, joined by straight lines from 0 to 1, and `A_ideal` =
///   1/2.
///
/// Errors: fewer than two levels, a level without a run or twice, rates or watts that are not
/// positive.
pub fn proportionality(
    loads: &[MeasuredLevel],
    idle_w: Option<f64>,
) -> Result<Proportionality, ProportionalityError> {
    if loads.len() < 2 {
        return Err(ProportionalityError::TooFewLevels(loads.len()));
    }
    let mut loads: Vec<&MeasuredLevel> = loads.iter().collect();
    loads.sort_by(|a, b| b.target_ops_s.total_cmp(&a.target_ops_s));
    if let Some(pair) = loads.windows(2).find(|p| p[0].target_ops_s == p[1].target_ops_s) {
        return Err(ProportionalityError::Twice(pair[0].target_ops_s));
    }
    let highest = loads[0].target_ops_s;
    let mut levels = Vec::new();
    for load in loads {
        if load.runs.is_empty() {
            return Err(ProportionalityError::Empty(load.target_ops_s));
        }
        let of =
            |pick: fn(&(f64, f64)) -> f64| median(&load.runs.iter().map(pick).collect::<Vec<_>>());
        let (ops_s, power_w) = (of(|run| run.0), of(|run| run.1));
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if !(positive(ops_s) && positive(power_w) && positive(load.target_ops_s)) {
            return Err(ProportionalityError::NotPositive { ops_s, power_w });
        }
        let share = load.target_ops_s / highest;
        levels.push(PowerLevel { share, ops_s, power_w, ops_per_joule: Some(ops_s / power_w) });
    }
    let idle_w = idle_w.filter(|watts| watts.is_finite() && *watts >= 0.0);
    levels.extend(idle_w.map(|power_w| PowerLevel {
        share: 0.0,
        ops_s: 0.0,
        power_w,
        ops_per_joule: None,
    }));
    let sum = |of: fn(&PowerLevel) -> f64| levels.iter().map(of).sum::<f64>();
    let peak = levels[0].power_w;
    Ok(Proportionality {
        overall_ops_per_joule: sum(|level| level.ops_s) / sum(|level| level.power_w),
        with_idle: idle_w.is_some(),
        proportionality: idle_w.map(|_| 2.0 - area(&levels, peak) / 0.5),
        idle_to_peak: idle_w.map(|watts| watts / peak),
        levels,
    })
}

/// Below power over load, both as shares, by trapezia.
fn area(levels: &[PowerLevel], peak: f64) -> f64 {
    let trapezium = |pair: &[PowerLevel]| {
        (pair[0].share - pair[1].share) * (pair[0].power_w + pair[1].power_w) / 2.0 / peak
    };
    levels.windows(2).map(trapezium).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten levels of a machine that draws `power(share)`.
    fn loads(power: fn(f64) -> f64) -> Vec<MeasuredLevel> {
        (1..=10)
            .map(|tenth| {
                let share = f64::from(tenth) / 10.0;
                let ops = 1e5 * share;
                MeasuredLevel { target_ops_s: ops, runs: vec![(ops, power(share)); 3] }
            })
            .collect()
    }

    #[test]
    fn proportional_and_constant_machines() {
        let ideal = proportionality(&loads(|share| 200.0 * share), Some(0.0)).unwrap();
        assert!((ideal.proportionality.unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(ideal.idle_to_peak, Some(0.0));
        assert!((ideal.overall_ops_per_joule - 500.0).abs() < 1e-9);
        let constant = proportionality(&loads(|_| 200.0), Some(200.0)).unwrap();
        assert!(constant.proportionality.unwrap().abs() < 1e-12);
        // 5.5 x 10^5 ops/s over 11 x 200 W.
        assert!((constant.overall_ops_per_joule - 250.0).abs() < 1e-9);
    }

    #[test]
    fn a_half_idle_machine_by_hand() {
        // 100 W + 100 W x load: the area is 0.75, so 1 - 0.25 / 0.5.
        let result = proportionality(&loads(|share| 100.0 + 100.0 * share), Some(100.0)).unwrap();
        assert!((result.proportionality.unwrap() - 0.5).abs() < 1e-12);
        assert_eq!((result.idle_to_peak, result.levels.len()), (Some(0.5), 11));
        assert_eq!((result.levels[0].share, result.levels[10].share), (1.0, 0.0));
        assert_eq!(result.levels[10].ops_per_joule, None);
        // 5.5 x 10^5 / (1550 + 100).
        assert!((result.overall_ops_per_joule - 5.5e5 / 1650.0).abs() < 1e-9);
    }

    #[test]
    fn overall_figure_says_that_the_idle_machine_is_missing() {
        let result = proportionality(&loads(|share| 200.0 * share), None).unwrap();
        assert!(!result.with_idle && result.levels.len() == 10);
        assert_eq!((result.proportionality, result.idle_to_peak), (None, None));
    }

    #[test]
    fn refuses_invalid_graduated_loads() {
        let all = loads(|_| 1.0);
        assert_eq!(proportionality(&all[..1], None), Err(ProportionalityError::TooFewLevels(1)));
        let twice = [all[0].clone(), all[0].clone()];
        assert_eq!(proportionality(&twice, None), Err(ProportionalityError::Twice(1e4)));
        let empty = [all[0].clone(), MeasuredLevel { target_ops_s: 5.0, runs: Vec::new() }];
        assert_eq!(proportionality(&empty, None), Err(ProportionalityError::Empty(5.0)));
        let dark = loads(|share| share - 0.1);
        assert!(matches!(
            proportionality(&dark, None),
            Err(ProportionalityError::NotPositive { .. })
        ));
    }
}
