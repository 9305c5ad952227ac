//! What all trials of one rate say together.

use super::{Outcome, TRIALS_A_RATE, Trial};

/// So many trials in which the client was the limit or the machine busy, and none in which they
/// were not, are enough.
const MUTE_AFTER: usize = 2;
/// An end of the gap needs so many trials that agree.
const CONFIRMED_BY: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// More trials held than did not.
    Held,
    /// More did not hold than did, or it could not be told however often it was tried.
    NotHeld,
    /// The client was the limit, or the machine busy, most of the times that it was tried, and it
    /// never held.
    Mute,
    /// It has to be tried again.
    Open,
}

/// One rate and its trials, in their order.
pub(super) struct Standing<'t> {
    pub(super) rate: f64,
    pub(super) trials: Vec<&'t Trial>,
}

/// Rising by rate.
pub(super) fn standings(trials: &[Trial]) -> Vec<Standing<'_>> {
    let mut all: Vec<Standing> = Vec::new();
    for trial in trials {
        match all.iter_mut().find(|known| known.rate == trial.rate_ops_s) {
            Some(known) => known.trials.push(trial),
            None => all.push(Standing { rate: trial.rate_ops_s, trials: vec![trial] }),
        }
    }
    all.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    all
}

impl<'t> Standing<'t> {
    fn count(&self, of: impl Fn(Outcome) -> bool) -> usize {
        self.trials.iter().filter(|trial| of(trial.outcome())).count()
    }

    fn held(&self) -> usize {
        self.count(|outcome| outcome == Outcome::Held)
    }

    fn not_held(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Broke | Outcome::Behind | Outcome::Failed))
    }

    fn mute(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Client | Outcome::Disturbed))
    }

    pub(super) fn known(&self) -> Known {
        let (held, not_held, mute) = (self.held(), self.not_held(), self.mute());
        if held > not_held {
            Known::Held
        } else if not_held > held {
            Known::NotHeld
        } else if mute == self.trials.len() {
            if mute >= MUTE_AFTER { Known::Mute } else { Known::Open }
        } else if self.trials.len() >= TRIALS_A_RATE {
            if 2 * mute > self.trials.len() { Known::Mute } else { Known::NotHeld }
        } else {
            Known::Open
        }
    }

    /// Whether a second trial said the same, or no more may be made.
    pub(super) fn confirmed(&self) -> bool {
        self.trials.len() >= TRIALS_A_RATE
            || self.held().max(self.not_held()).max(self.mute()) >= CONFIRMED_BY
    }

    pub(super) fn contradictory(&self) -> bool {
        self.held() > 0 && self.not_held() > 0
    }

    /// How many times as long as a first trial the next one should be: enough samples for an
    /// interval, and twice as many for each trial that could not tell.
    pub(super) fn longer(&self) -> f64 {
        /// Where an operation had no sample at all, nothing says how many it would take.
        const BLIND: f64 = 4.0;
        /// A little more than just enough: arrivals are random.
        const SPARE: f64 = 1.2;
        let unclear = self.count(|outcome| outcome == Outcome::Unclear);
        let lacking = self.trials.iter().map(|trial| trial.judgement.samples_lacking());
        let needed = lacking.map(|lacking| lacking.unwrap_or(BLIND)).fold(1.0, f64::max);
        let doubled = 2f64.powi(i32::try_from(unclear).unwrap_or(i32::MAX));
        if needed > 1.0 && unclear > 0 { doubled.max(needed * SPARE) } else { doubled }
    }

    /// The trial to tell of: the last that did what decided about this rate.
    pub(super) fn telling(&self, of: impl Fn(Outcome) -> bool) -> Option<&'t Trial> {
        self.trials.iter().rev().find(|trial| of(trial.outcome())).copied()
    }
}
