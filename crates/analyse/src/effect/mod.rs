//! Main effects and interactions in a replicated factorial, each with its size, interval and
//! p-value.
//!
//! Everything here is a contrast of cells: a sum of the cells' locations with coefficients. The
//! cells' variances are not pooled, as a tail varies more in one setting than in another, and their
//! values are trimmed, so that one disturbed repeat does not decide. See
//! `RepeatVariance::contrast`.

mod contrast;
mod crossed;
mod interaction;
mod main_effect;
mod share;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::interval::{Interval, NoInterval};

pub use interaction::{Interaction, interactions};
pub use main_effect::{MainEffect, SimpleEffect, main_effects};
pub use share::{VariationShare, variation};

/// The values of one metric in one cell: its valid repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct CellObservations {
    /// Factor and level: what distinguishes this cell from the others.
    pub at: BTreeMap<String, String>,
    pub values: Vec<f64>,
}

/// The scale of a difference of two levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectScale {
    /// As a quotient, computed on logarithms: 1 is no effect.
    Ratio,
    /// As a difference in the metric's unit, where a value is not positive: 0 is no effect.
    Difference,
}

impl EffectScale {
    /// Of a metric: quotients wherever every value of every cell has a logarithm.
    pub fn of(cells: &[CellObservations]) -> EffectScale {
        let positive = cells.iter().flat_map(|cell| &cell.values).all(|value| *value > 0.0);
        if positive { EffectScale::Ratio } else { EffectScale::Difference }
    }

    pub const fn no_effect(self) -> f64 {
        match self {
            EffectScale::Ratio => 1.0,
            EffectScale::Difference => 0.0,
        }
    }

    /// To the additive scale.
    fn to_additive(self, value: f64) -> f64 {
        match self {
            EffectScale::Ratio => value.ln(),
            EffectScale::Difference => value,
        }
    }

    /// From the additive scale.
    fn inverse(self, sum: f64) -> f64 {
        match self {
            EffectScale::Ratio => sum.exp(),
            EffectScale::Difference => sum,
        }
    }
}

/// The size of a contrast on its scale, and how sure it is.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectSize {
    pub scale: EffectScale,
    /// The quotient or the difference.
    pub value: f64,
    /// 95 %, not corrected for other comparisons, or why there is none.
    pub interval: Result<Interval, NoInterval>,
    /// Two-sided probability of so large a contrast if there were none; there where the
    /// interval is. Neither is it corrected.
    pub p: Option<f64>,
    /// The contrast in standard deviations of single repeats within their cells (on the scale's
    /// own sum), pooled over the cells; None where they do not vary or none was repeated.
    pub standardised: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EffectError {
    #[error("`{0}` is not a factor of these cells")]
    NoFactor(String),
    #[error("`{factor}` has only the level {level} in these cells, and an effect needs two")]
    OneLevel { factor: String, level: String },
    #[error("`{factor}` has no level `{level}` in these cells")]
    NoLevel { factor: String, level: String },
    #[error("no two cells differ in `{0}` alone: its effect cannot be separated from others")]
    Confounded(String),
    #[error(
        "no four cells combine two levels of `{0}` with two of `{1}` and agree otherwise: their \
         interaction is unknown"
    )]
    NotCrossed(String, String),
    #[error("the cells do not have every combination of their factors: {missing} are missing")]
    Incomplete { missing: usize },
    #[error("a cell has no value, or one that is not a number")]
    NotFinite,
}

fn check(cells: &[CellObservations]) -> Result<(), EffectError> {
    let sound = |cell: &CellObservations| {
        !cell.values.is_empty() && cell.values.iter().all(|value| value.is_finite())
    };
    if cells.iter().all(sound) { Ok(()) } else { Err(EffectError::NotFinite) }
}

/// The levels of a factor in the cells: those of `order` first, in that order, then the others
/// by name.
fn levels<'a>(
    cells: &'a [CellObservations],
    factor: &str,
    order: &'a [String],
) -> Result<Vec<&'a str>, EffectError> {
    let present: std::collections::BTreeSet<&str> =
        cells.iter().filter_map(|cell| cell.at.get(factor)).map(String::as_str).collect();
    let mut levels: Vec<&str> =
        order.iter().map(String::as_str).filter(|level| present.contains(level)).collect();
    levels.extend(present.iter().filter(|level| !order.iter().any(|known| known == *level)));
    match levels.as_slice() {
        [] => Err(EffectError::NoFactor(factor.to_owned())),
        [only] => {
            Err(EffectError::OneLevel { factor: factor.to_owned(), level: (*only).to_owned() })
        }
        _ => Ok(levels),
    }
}
