use thiserror::Error;

/// An impossible number, or a question without an answer.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CostError {
    /// `what` is the name of the quantity, `must` what it has to be.
    #[error("{what} is {value}: it must be {must}")]
    Impossible { what: &'static str, value: f64, must: &'static str },
    #[error("{servers:.3e} servers would be needed: the target is too far from one server's rate")]
    TooMany { servers: f64 },
    #[error("a power curve needs at least two loads, of which the lowest is 0 and the highest 1")]
    ShortCurve,
    #[error("the loads of a power curve must rise")]
    UnorderedCurve,
    #[error("{watts} W is outside the range from idle to full load, {low} to {high} W")]
    OutsideCurve { watts: f64, low: f64, high: f64 },
    #[error("the power does not rise with the load, so the load does not follow from it")]
    FlatCurve,
    #[error("the idle power of {name} is not known, and is needed for a utilisation below 1")]
    NoIdlePower { name: String },
    #[error("at least one lifetime and one price of electricity are needed")]
    NoTerms,
    /// No price makes both cost the same.
    #[error("even as a gift it costs {excess_usd_per_h:.4} $/h more")]
    NeverEven { excess_usd_per_h: f64 },
    /// The two never cost the same, or only below zero.
    #[error("no {what} above zero makes both cost the same")]
    NoCrossing { what: &'static str },
}

/// A number that is missing or cannot be.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CandidateError {
    #[error(
        "{name}: its price is not known{why}; add `price=USD` to its --platform, or use \
         --energy-only for energy and break-even prices alone"
    )]
    NoPrice { name: String, why: String },
    #[error("{name}: its idle power of {idle_w} W is above the {watts} W that it draws under load")]
    IdleAboveLoad { name: String, idle_w: f64, watts: f64 },
    #[error(
        "--utilisation: the idle power of {name} is not known{why}; add `idle=W` to its \
         --platform"
    )]
    NoIdlePower { name: String, why: String },
    #[error(
        "--rack-rent: the height of {name} is not known{why}; add `rack_units=N` to its --platform"
    )]
    NoHeight { name: String, why: String },
    #[error(
        "{what}: its power was not measured{why}; give `--platform watts=W`, or a platform with \
         idle_w and full_load_w"
    )]
    NoPower { what: String, why: String },
    #[error("platform {platform}, power_curve: {error}")]
    Curve { platform: String, error: CostError },
    #[error(transparent)]
    Cost(#[from] CostError),
}

/// `value`, where it is finite and above zero.
pub(crate) fn above_zero(what: &'static str, value: f64) -> Result<f64, CostError> {
    let fits = value.is_finite() && value > 0.0;
    fits.then_some(value).ok_or(CostError::Impossible { what, value, must: "more than zero" })
}

/// `value`, where it is finite and not below zero.
pub(super) fn not_below_zero(what: &'static str, value: f64) -> Result<f64, CostError> {
    let fits = value.is_finite() && value >= 0.0;
    fits.then_some(value).ok_or(CostError::Impossible { what, value, must: "zero or more" })
}

/// `value`, where it is between 0 and 1.
pub(super) fn share(what: &'static str, value: f64) -> Result<f64, CostError> {
    let fits = (0.0..=1.0).contains(&value);
    fits.then_some(value).ok_or(CostError::Impossible { what, value, must: "a share, 0 to 1" })
}
