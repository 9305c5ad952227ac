//! Published claims, tested by a study's own runs.

use std::fmt;

use model::Design;
use model::design::PublishedClaim;

use super::cells::{RunWithSettings, gather};
use super::resolution;
use super::unanswered::{AnswerResult, Unanswered};
use super::why_not;
use super::words::level_words;
use crate::effect::{EffectScale, EffectSize, main_effects};
use crate::interval::Interval;

/// A claim and its test by the runs.
#[derive(Debug, Clone, PartialEq)]
pub struct TestedClaim {
    pub claim: PublishedClaim,
    /// The measured quotient and the verdict, or why it was not tested.
    pub outcome: Result<(EffectSize, ClaimVerdict), Unanswered>,
}

/// A measured quotient against a published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// The 95 % interval meets the published range. Where that range is a difference, the interval
    /// excludes that there is none.
    Reproduced,
    /// A difference of the same direction, but of another size.
    OtherSize,
    /// The interval excludes the published range, and is not of its direction.
    Contradicted,
    /// The interval covers both the published range and no difference.
    NotShown,
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClaimVerdict::Reproduced => "reproduced",
            ClaimVerdict::OtherSize => "same direction, other size",
            ClaimVerdict::Contradicted => "contradicted",
            ClaimVerdict::NotShown => "neither reproduced nor contradicted",
        })
    }
}

impl ClaimVerdict {
    /// Of a measured interval of a quotient against `at_least` and `at_most`.
    fn of(claim: &PublishedClaim, measured: &Interval) -> ClaimVerdict {
        let low = claim.at_least.unwrap_or(0.0);
        let high = claim.at_most.unwrap_or(f64::INFINITY);
        let meets = measured.low <= high && low <= measured.high;
        let (more, less) = (low >= 1.0, high <= 1.0);
        let same_direction = more && measured.low > 1.0 || less && measured.high < 1.0;
        match meets {
            true if (more || less) && measured.covers(1.0) => ClaimVerdict::NotShown,
            true => ClaimVerdict::Reproduced,
            false if same_direction => ClaimVerdict::OtherSize,
            false => ClaimVerdict::Contradicted,
        }
    }
}

/// Tests one claim by the main effect of its factor between its two levels.
pub fn test_claim(
    design: &Design,
    runs: &[RunWithSettings<'_>],
    claim: &PublishedClaim,
) -> TestedClaim {
    TestedClaim { claim: claim.clone(), outcome: tested(design, runs, claim) }
}

fn tested(
    design: &Design,
    runs: &[RunWithSettings<'_>],
    claim: &PublishedClaim,
) -> AnswerResult<(EffectSize, ClaimVerdict)> {
    let PublishedClaim { metric, factor, from, to, within, .. } = claim;
    let wanted = [&from.0, &to.0];
    let of_claim = |run: &&RunWithSettings<'_>| {
        within.hold_by(|name| run.level(name))
            && run.level(factor).is_some_and(|level| wanted.iter().any(|one| *one == level))
    };
    let runs: Vec<&RunWithSettings<'_>> = runs.iter().filter(of_claim).collect();
    let lacking = wanted
        .into_iter()
        .find(|wanted| !runs.iter().any(|run| run.level(factor) == Some(wanted.as_str())));
    if let Some(level) = lacking {
        let why = format!("no run has {}", level_words(factor, level));
        return Err(Unanswered::NotEnough(why));
    }
    let gathered = gather(design, &runs, &[metric], &[factor])?;
    let order = [from.0.clone(), to.0.clone()];
    let effects = main_effects(&gathered.observed(0), factor, &order, resolution(metric))
        .map_err(|error| why_not(error, design, &[factor]))?;
    let nothing = || Unanswered::NotEnough("no effect was found".to_owned());
    let size = effects.into_iter().next().ok_or_else(nothing)?.size;
    if size.scale == EffectScale::Difference {
        let why = "a value is zero or negative, so there is no quotient";
        return Err(Unanswered::NotEnough(why.to_owned()));
    }
    match &size.interval {
        Ok(interval) => {
            let verdict = ClaimVerdict::of(claim, interval);
            Ok((size, verdict))
        }
        Err(why) => Err(Unanswered::NotEnough(why.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::IntervalMethod;
    use model::design::{Conditions, LevelText};

    #[test]
    fn a_verdict_by_interval_and_range() {
        use ClaimVerdict::{Contradicted, NotShown, OtherSize, Reproduced};
        let unbounded = f64::INFINITY;
        for ((at_least, at_most), (low, high), verdict) in [
            ((1.15, 1.31), (1.2, 1.25), Reproduced),
            ((1.15, 1.31), (1.05, 1.2), Reproduced),
            ((1.15, 1.31), (0.9, 1.2), NotShown),
            ((1.15, 1.31), (1.4, 1.5), OtherSize),
            ((1.15, 1.31), (1.05, 1.1), OtherSize),
            ((1.15, 1.31), (0.98, 1.02), Contradicted),
            ((1.15, 1.31), (0.7, 0.8), Contradicted),
            ((0.0, 0.8), (0.85, 0.9), OtherSize),
            ((0.0, 0.8), (1.1, 1.2), Contradicted),
            ((1.0, unbounded), (1.1, 9.0), Reproduced),
            ((1.0, unbounded), (0.8, 1.2), NotShown),
            ((1.0, unbounded), (0.5, 0.9), Contradicted),
            // A range that covers no difference.
            ((0.68, 1.47), (0.9, 1.1), Reproduced),
            ((0.68, 1.47), (2.0, 3.0), Contradicted),
        ] {
            let claim = PublishedClaim {
                metric: String::new(),
                factor: String::new(),
                from: LevelText::default(),
                to: LevelText::default(),
                at_least: Some(at_least),
                at_most: Some(at_most),
                within: Conditions::default(),
            };
            let method = IntervalMethod::SameRuns;
            let found = ClaimVerdict::of(&claim, &Interval { low, high, method });
            assert_eq!(found, verdict, "{at_least} to {at_most}, measured {low} to {high}");
        }
    }
}
