//! How much a verdict depends on each assumption.

use super::error::CostError;

/// Resolution of a crossing, relative to its range.
const RESOLUTION: f64 = 1e-9;
/// Halvings that reach it, with room to spare.
const MAX_HALVINGS: usize = 60;

/// An assumption with its range.
#[derive(Debug, Clone, PartialEq)]
pub struct Assumption {
    pub name: String,
    pub low: f64,
    pub base: f64,
    pub high: f64,
}

/// The effect of one assumption alone on the ratio of costs.
#[derive(Debug, Clone, PartialEq)]
pub struct SensitivityRange {
    /// Its index among the assumptions.
    pub index: usize,
    pub ratio_at_low: f64,
    pub ratio_at_high: f64,
    /// The lowest value in its range at which the ratio crosses 1, if any. The verdict changes
    /// there.
    pub flips_at: Option<f64>,
}

impl SensitivityRange {
    /// How far the ratio moves, as a factor of 1 or more.
    pub fn factor(&self) -> f64 {
        let quotient = self.ratio_at_high / self.ratio_at_low;
        quotient.max(1.0 / quotient)
    }
}

/// One at a time: `ratio` (cost of the one over cost of the other; 1 is where the verdict flips)
/// at both ends of each assumption's range, all others at their base, the widest swing first.
///
/// `ratio` is given a value for each assumption, in their order. Whole servers make it jump, so
/// the place of a flip is found by halving the range and not by a formula; it is within 1e-9 of
/// the range's width. Errors: those of `ratio` at any end.
/// Source: the tornado diagram of decision analysis, e.g. Eschenbach, Interfaces 22(6), 1992.
pub fn tornado(
    assumptions: &[Assumption],
    ratio: impl Fn(&[f64]) -> Result<f64, CostError>,
) -> Result<Vec<SensitivityRange>, CostError> {
    let base: Vec<f64> = assumptions.iter().map(|assumption| assumption.base).collect();
    let alone = |at: usize, value: f64| {
        let mut values = base.clone();
        values[at] = value;
        ratio(&values)
    };
    let mut swings = Vec::with_capacity(assumptions.len());
    for (at, Assumption { low, base, high, .. }) in assumptions.iter().enumerate() {
        let (ratio_at_low, ratio_at_high) = (alone(at, *low)?, alone(at, *high)?);
        // Each side of the base on its own: the ratio may pass 1 and come back.
        let below = crossing_of_one(*low, *base, |value| alone(at, value))?;
        let flips_at = match below {
            Some(place) => Some(place),
            None => crossing_of_one(*base, *high, |value| alone(at, value))?,
        };
        swings.push(SensitivityRange { index: at, ratio_at_low, ratio_at_high, flips_at });
    }
    swings.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
    Ok(swings)
}

/// Where between two values the ratio passes 1, if it is on different sides at them.
fn crossing_of_one(
    from: f64,
    to: f64,
    ratio: impl Fn(f64) -> Result<f64, CostError>,
) -> Result<Option<f64>, CostError> {
    let dearer = |value: f64| Ok::<bool, CostError>(ratio(value)? > 1.0);
    let (mut low, mut high) = (from, to);
    let side = dearer(low)?;
    if side == dearer(high)? {
        return Ok(None);
    }
    for _ in 0..MAX_HALVINGS {
        if (high - low).abs() <= RESOLUTION * (to - from).abs() {
            break;
        }
        let middle = low + (high - low) / 2.0;
        match dearer(middle)? == side {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(Some(low + (high - low) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assumption(name: &str, low: f64, base: f64, high: f64) -> Assumption {
        Assumption { name: name.to_owned(), low, base, high }
    }

    #[test]
    fn widest_swing_comes_first_and_crossings_are_located() {
        let assumptions = [
            assumption("little", 0.9, 1.0, 1.1),
            assumption("much", 1.0, 2.0, 5.0),
            assumption("nothing", 1.0, 2.0, 3.0),
        ];
        let swings = tornado(&assumptions, |v| Ok(v[0] * 3.0 / v[1])).unwrap();
        assert_eq!(swings.iter().map(|swing| swing.index).collect::<Vec<_>>(), [1, 0, 2]);
        assert!((swings[0].factor() - 5.0).abs() < 1e-12);
        assert!((swings[0].flips_at.unwrap() - 3.0).abs() < 1e-8);
        assert_eq!((swings[1].flips_at, swings[2].flips_at), (None, None));
        assert!((swings[1].ratio_at_low - 1.35).abs() < 1e-12);
        assert_eq!(swings[2].factor(), 1.0);
    }

    #[test]
    fn a_jump_is_located_and_errors_are_passed_on() {
        let steps = [assumption("servers", 1.0, 1.2, 4.0)];
        let swings = tornado(&steps, |v| Ok(v[0].ceil() / 2.5)).unwrap();
        assert!((swings[0].flips_at.unwrap() - 2.0).abs() < 1e-8);
        let error = CostError::NoCrossing { what: "x" };
        assert_eq!(tornado(&steps, |_| Err(error.clone())), Err(error));
    }
}
