use std::fmt;

use crate::compare::{BetterDirection, Verdict};
use crate::effect::{EffectSize, Interaction, MainEffect};

/// A difference is significant below this corrected p.
pub(super) const SIGNIFICANCE: f64 = 0.05;
const GOOD_BELOW: f64 = 0.01;
const HIGH_BELOW: f64 = 0.001;

/// A comparison with an effect size.
pub trait Judgeable {
    fn size(&self) -> &EffectSize;
}

impl Judgeable for MainEffect {
    fn size(&self) -> &EffectSize {
        &self.size
    }
}

impl Judgeable for Interaction {
    fn size(&self) -> &EffectSize {
        &self.size
    }
}

/// A comparison with its verdict among all comparisons of the study.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedSize<T> {
    pub of: T,
    /// p after Holm's correction; None without an interval.
    pub corrected: Option<f64>,
    pub verdict: Verdict,
}

impl<T: Judgeable> JudgedSize<T> {
    pub(super) fn new(of: T) -> Self {
        JudgedSize { of, corrected: None, verdict: Verdict::NotEnoughData }
    }

    /// `corrected` yields one value for each comparison that has a p.
    pub(super) fn judge(
        &mut self,
        wish: BetterDirection,
        corrected: &mut impl Iterator<Item = f64>,
    ) {
        let size = self.of.size();
        if size.p.is_none() {
            return;
        }
        let p = corrected.next().unwrap_or(1.0);
        self.corrected = Some(p);
        let more = size.value > size.scale.no_effect();
        self.verdict = match (p < SIGNIFICANCE, wish, more) {
            (false, ..) => Verdict::NoDifference,
            (true, BetterDirection::More, true) | (true, BetterDirection::Less, false) => {
                Verdict::Better
            }
            (true, BetterDirection::More, false) | (true, BetterDirection::Less, true) => {
                Verdict::Worse
            }
            (true, BetterDirection::Neither, _) => Verdict::Different,
        };
    }
}

/// How sure a verdict is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The metric or the level is unavailable on this machine or in this store.
    NotMeasurable,
    /// There is no interval, so there is no verdict.
    NoData,
    /// No difference was shown, which does not prove that there is none.
    NotShown,
    /// Corrected p below 0.05; for a front, every member in half of the resamples; for a
    /// graduated load, known to 10 %.
    Fair,
    /// Below 0.01; in 80 %; to 3 %.
    Good,
    /// Below 0.001; in 95 %; to 1 %.
    High,
}

impl Confidence {
    /// From the largest p among the significant differences.
    pub(super) fn of_p(corrected: f64) -> Confidence {
        match corrected {
            p if p < HIGH_BELOW => Confidence::High,
            p if p < GOOD_BELOW => Confidence::Good,
            p if p < SIGNIFICANCE => Confidence::Fair,
            _ => Confidence::NotShown,
        }
    }

    /// From half the width of a 95 % interval, as a share of the value.
    pub(super) fn of_width(width: f64) -> Confidence {
        match width {
            w if w <= 0.01 => Confidence::High,
            w if w <= 0.03 => Confidence::Good,
            w if w <= 0.1 => Confidence::Fair,
            _ => Confidence::NotShown,
        }
    }

    pub(super) fn of_share(share: f64) -> Confidence {
        match share {
            s if s >= 0.95 => Confidence::High,
            s if s >= 0.8 => Confidence::Good,
            s if s >= 0.5 => Confidence::Fair,
            _ => Confidence::NotShown,
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Confidence::NotMeasurable => "not measurable here",
            Confidence::NoData => "not enough data",
            Confidence::NotShown => "nothing shown",
            Confidence::Fair => "fair",
            Confidence::Good => "good",
            Confidence::High => "high",
        })
    }
}
