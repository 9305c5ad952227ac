//! The trials of one rate together.

use super::{MAX_TRIALS_PER_RATE, RateTrial, TrialOutcome};

/// After this many trials that are all inconclusive, so is the rate.
const INCONCLUSIVE_AFTER: usize = 2;
/// An end of the bracket needs this many trials that agree.
const CONFIRMED_BY: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RateStatus {
    /// More trials held than did not.
    Held,
    /// More did not hold than did, or the trials remained unclear.
    NotHeld,
    /// The client was the limit or the machine disturbed in most trials, and none held.
    Inconclusive,
    /// Another trial is needed.
    Undecided,
}

/// One rate and its trials, in their order.
pub(super) struct RateStanding<'t> {
    pub(super) rate: f64,
    pub(super) trials: Vec<&'t RateTrial>,
}

/// Rising by rate.
pub(super) fn standings(trials: &[RateTrial]) -> Vec<RateStanding<'_>> {
    let mut all: Vec<RateStanding> = Vec::new();
    for trial in trials {
        match all.iter_mut().find(|known| known.rate == trial.rate_ops_s) {
            Some(known) => known.trials.push(trial),
            None => all.push(RateStanding { rate: trial.rate_ops_s, trials: vec![trial] }),
        }
    }
    all.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    all
}

impl<'t> RateStanding<'t> {
    fn count(&self, of: impl Fn(TrialOutcome) -> bool) -> usize {
        self.trials.iter().filter(|trial| of(trial.outcome())).count()
    }

    fn held(&self) -> usize {
        self.count(|outcome| outcome == TrialOutcome::Held)
    }

    fn not_held(&self) -> usize {
        self.count(|outcome| {
            matches!(outcome, TrialOutcome::Broke | TrialOutcome::Behind | TrialOutcome::Failed)
        })
    }

    fn inconclusive(&self) -> usize {
        self.count(|outcome| matches!(outcome, TrialOutcome::Client | TrialOutcome::Disturbed))
    }

    pub(super) fn status(&self) -> RateStatus {
        let (held, not_held, mute) = (self.held(), self.not_held(), self.inconclusive());
        if held > not_held {
            RateStatus::Held
        } else if not_held > held {
            RateStatus::NotHeld
        } else if mute == self.trials.len() {
            if mute >= INCONCLUSIVE_AFTER {
                RateStatus::Inconclusive
            } else {
                RateStatus::Undecided
            }
        } else if self.trials.len() >= MAX_TRIALS_PER_RATE {
            if 2 * mute > self.trials.len() {
                RateStatus::Inconclusive
            } else {
                RateStatus::NotHeld
            }
        } else {
            RateStatus::Undecided
        }
    }

    /// Whether a second trial agreed, or no more may be made.
    pub(super) fn is_confirmed(&self) -> bool {
        self.trials.len() >= MAX_TRIALS_PER_RATE
            || self.held().max(self.not_held()).max(self.inconclusive()) >= CONFIRMED_BY
    }

    pub(super) fn is_contradictory(&self) -> bool {
        self.held() > 0 && self.not_held() > 0
    }

    /// The length of the next trial as a multiple of a first one: enough samples for an interval,
    /// and twice as many for each unclear trial.
    pub(super) fn length_factor(&self) -> f64 {
        /// The factor where an operation had no sample at all.
        const BLIND: f64 = 4.0;
        /// Margin, as arrivals are random.
        const SPARE: f64 = 1.2;
        let unclear = self.count(|outcome| outcome == TrialOutcome::Unclear);
        let lacking = self.trials.iter().map(|trial| trial.judgement.samples_lacking());
        let needed = lacking.map(|lacking| lacking.unwrap_or(BLIND)).fold(1.0, f64::max);
        let doubled = 2f64.powi(i32::try_from(unclear).unwrap_or(i32::MAX));
        if needed > 1.0 && unclear > 0 { doubled.max(needed * SPARE) } else { doubled }
    }

    /// The last trial with such an outcome.
    pub(super) fn last_with(&self, of: impl Fn(TrialOutcome) -> bool) -> Option<&'t RateTrial> {
        self.trials.iter().rev().find(|trial| of(trial.outcome())).copied()
    }
}
