//! What trials say, whatever chose their rates.

use super::standing::standings;
use super::{RateBracket, RateTrial, TrialOutcome};

/// The highest rate that held, and the next above it that did not.
#[derive(Debug, Clone, Copy)]
pub struct HighestHeld<'t> {
    /// The last trial of that rate that held.
    pub held: &'t RateTrial,
    /// A trial of the lowest rate above it that did not hold, for the server's or the client's
    /// reason; None if no higher rate was tried.
    pub not_held: Option<&'t RateTrial>,
}

/// The highest rate of these trials that held, by the majority of its trials, below every rate that
/// did not; None if none did.
pub fn highest_held(trials: &[RateTrial]) -> Option<HighestHeld<'_>> {
    let standings = standings(trials);
    let bracket = RateBracket::of(&standings);
    let held_ops_s = bracket.lower?.rate;
    let above_ops_s = bracket.upper.map(|above| above.rate).filter(|rate| *rate > held_ops_s);
    let last = |rate: f64, held: bool| {
        let of = |trial: &&RateTrial| {
            trial.rate_ops_s == rate && (trial.outcome() == TrialOutcome::Held) == held
        };
        trials.iter().rev().find(of)
    };
    let held = last(held_ops_s, true)?;
    Some(HighestHeld { held, not_held: above_ops_s.and_then(|rate| last(rate, false)) })
}
