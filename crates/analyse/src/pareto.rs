//! The Pareto front of cells.

use model::random::{Draws, below};
use thiserror::Error;

use crate::compare::BetterDirection;
use crate::describe::median;

/// The standard error of a share is then below 1.6 %.
const RESAMPLES: u32 = 1000;
/// The fewest resamples, for very many runs: a standard error of 5 %.
const MIN_RESAMPLES: u32 = 100;
/// The most draws in all, which limits the time.
const MAX_DRAWS: usize = 20_000_000;
/// Fixed, so that the same runs always give the same shares.
const SEED: u64 = 0x7061_7265_746f_0001;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParetoError {
    #[error("a front needs two metrics or more, got {0}")]
    TooFewMetrics(usize),
    #[error("no front can be drawn of metric {0}: neither more nor less of it is better")]
    NoDirection(usize),
    #[error("candidate {0} has no run")]
    Empty(usize),
    #[error("run {run} of candidate {candidate} has no number for metric {metric}")]
    NotFinite { candidate: usize, run: usize, metric: usize },
}

/// How one candidate stands among the others.
#[derive(Debug, Clone, PartialEq)]
pub struct ParetoStanding {
    /// Of each metric, over the runs.
    pub medians: Vec<f64>,
    /// A candidate on the front that is at least as good in every metric and better in one;
    /// None: this one is on the front itself.
    pub dominated_by: Option<usize>,
    /// The share of 1,000 resamples of all runs (down to 100 for more than 20,000 runs) in which it
    /// is on the front; None if a candidate has a single run.
    pub share: Option<f64>,
}

impl ParetoStanding {
    pub fn on_front(&self) -> bool {
        self.dominated_by.is_none()
    }
}

/// The Pareto front of `candidates` by the medians of their metrics.
///
/// A candidate is its runs; a run is its values in the order of `directions`. To say how sure the
/// front is, the runs of every candidate are drawn anew with replacement (whole runs, so that what
/// varies together stays together) and the front is taken again: the bootstrap, Efron and
/// Tibshirani 1993, ch. 6. With few runs a share is coarse.
///
/// Errors: fewer than two metrics, a metric without a better direction, a candidate without a run,
/// a value that is not a number.
pub fn pareto(
    candidates: &[Vec<Vec<f64>>],
    directions: &[BetterDirection],
) -> Result<Vec<ParetoStanding>, ParetoError> {
    check(candidates, directions)?;
    let medians: Vec<Vec<f64>> = candidates
        .iter()
        .map(|runs| (0..directions.len()).map(|m| median_of(runs.iter(), m)).collect())
        .collect();
    let repeated = candidates.iter().all(|runs| runs.len() > 1);
    let shares = repeated.then(|| shares(candidates, directions));
    let dominating = dominating(&medians, directions);
    let standings = medians.into_iter().zip(dominating).enumerate();
    Ok(standings
        .map(|(at, (medians, dominated_by))| ParetoStanding {
            medians,
            dominated_by,
            share: shares.as_ref().map(|shares| shares[at]),
        })
        .collect())
}

fn check(candidates: &[Vec<Vec<f64>>], directions: &[BetterDirection]) -> Result<(), ParetoError> {
    if directions.len() < 2 {
        return Err(ParetoError::TooFewMetrics(directions.len()));
    }
    if let Some(metric) = directions.iter().position(|wish| *wish == BetterDirection::Neither) {
        return Err(ParetoError::NoDirection(metric));
    }
    for (candidate, runs) in candidates.iter().enumerate() {
        if runs.is_empty() {
            return Err(ParetoError::Empty(candidate));
        }
        for (run, values) in runs.iter().enumerate() {
            let number = |m: usize| values.get(m).is_some_and(|value| value.is_finite());
            if let Some(metric) = (0..directions.len()).find(|m| !number(*m)) {
                return Err(ParetoError::NotFinite { candidate, run, metric });
            }
        }
    }
    Ok(())
}

fn median_of<'a>(runs: impl Iterator<Item = &'a Vec<f64>>, metric: usize) -> f64 {
    median(&runs.map(|run| run[metric]).collect::<Vec<_>>())
}

/// Of each candidate one on the front that dominates it. Dominance is transitive, so what is
/// dominated at all is dominated by one on the front.
fn dominating(medians: &[Vec<f64>], directions: &[BetterDirection]) -> Vec<Option<usize>> {
    let beaten = |at: usize| medians.iter().any(|other| dominates(other, &medians[at], directions));
    let front: Vec<usize> = (0..medians.len()).filter(|at| !beaten(*at)).collect();
    medians
        .iter()
        .map(|own| front.iter().copied().find(|at| dominates(&medians[*at], own, directions)))
        .collect()
}

/// At least as good in every metric and better in one.
fn dominates(a: &[f64], b: &[f64], directions: &[BetterDirection]) -> bool {
    let gain = |m: usize| match directions[m] {
        BetterDirection::More => a[m] - b[m],
        BetterDirection::Less | BetterDirection::Neither => b[m] - a[m],
    };
    let metrics = 0..directions.len();
    metrics.clone().all(|m| gain(m) >= 0.0) && metrics.into_iter().any(|m| gain(m) > 0.0)
}

fn shares(candidates: &[Vec<Vec<f64>>], directions: &[BetterDirection]) -> Vec<f64> {
    let mut random = Draws::from(SEED);
    let mut on_front = vec![0_u32; candidates.len()];
    let runs: usize = candidates.iter().map(Vec::len).sum();
    let resamples = u32::try_from(MAX_DRAWS / runs.max(1)).unwrap_or(RESAMPLES);
    let resamples = resamples.clamp(MIN_RESAMPLES, RESAMPLES);
    for _ in 0..resamples {
        let medians: Vec<Vec<f64>> = candidates
            .iter()
            .map(|runs| {
                let draw = |_| &runs[below(random.next(), runs.len() as u64) as usize];
                let drawn: Vec<&Vec<f64>> = (0..runs.len()).map(draw).collect();
                (0..directions.len()).map(|m| median_of(drawn.iter().copied(), m)).collect()
            })
            .collect();
        for (count, by) in on_front.iter_mut().zip(dominating(&medians, directions)) {
            *count += u32::from(by.is_none());
        }
    }
    on_front.into_iter().map(|count| f64::from(count) / f64::from(resamples)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WISHES: [BetterDirection; 2] = [BetterDirection::More, BetterDirection::Less];

    #[test]
    fn by_hand() {
        // Throughput and latency: the third is slower and later than the first.
        let one = |throughput: f64, latency: f64| vec![vec![throughput, latency]];
        let result = pareto(&[one(100.0, 5.0), one(80.0, 3.0), one(90.0, 6.0)], &WISHES).unwrap();
        let by: Vec<_> = result.iter().map(|s| s.dominated_by).collect();
        assert_eq!(by, [None, None, Some(0)]);
        assert!(result.iter().all(|s| s.share.is_none()));
    }

    #[test]
    fn equals_share_the_front() {
        let same = vec![vec![1.0, 1.0]; 2];
        let result = pareto(&[same.clone(), same], &WISHES).unwrap();
        assert!(result.iter().all(|s| s.on_front() && s.share == Some(1.0)));
    }

    #[test]
    fn close_candidates_share_the_resamples() {
        let runs = |rates: [f64; 3]| rates.map(|rate| vec![rate, 1.0]).to_vec();
        let close = pareto(&[runs([9.0, 10.0, 12.0]), runs([9.5, 9.9, 11.0])], &WISHES).unwrap();
        assert!(close[0].on_front() && !close[1].on_front());
        let share = close[1].share.unwrap();
        assert!((0.1..0.7).contains(&share), "{share}");
        let clear = pareto(&[runs([19.0, 20.0, 22.0]), runs([9.5, 9.9, 11.0])], &WISHES).unwrap();
        assert_eq!((clear[0].share, clear[1].share), (Some(1.0), Some(0.0)));
    }

    #[test]
    fn refuses_unrankable_input() {
        let runs = vec![vec![vec![1.0, 2.0]]];
        assert_eq!(pareto(&runs, &[BetterDirection::More]), Err(ParetoError::TooFewMetrics(1)));
        assert_eq!(
            pareto(&runs, &[BetterDirection::More, BetterDirection::Neither]),
            Err(ParetoError::NoDirection(1))
        );
        assert_eq!(pareto(&[vec![]], &WISHES), Err(ParetoError::Empty(0)));
        let odd = pareto(&[vec![vec![1.0, f64::NAN]]], &WISHES);
        assert_eq!(odd, Err(ParetoError::NotFinite { candidate: 0, run: 0, metric: 1 }));
        assert_eq!(pareto(&[], &WISHES), Ok(Vec::new()));
    }

    proptest! {
        /// Small whole numbers, so that ties are frequent.
        #[test]
        fn agrees_with_brute_force(points in proptest::collection::vec(
            proptest::collection::vec(0_u8..5, 3), 1..12)) {
            let wishes = [BetterDirection::More, BetterDirection::Less, BetterDirection::More];
            let value = |p: &[u8], m: usize| {
                let sign = if wishes[m] == BetterDirection::More { 1.0 } else { -1.0 };
                sign * f64::from(p[m])
            };
            let beats = |a: &[u8], b: &[u8]| {
                let pairs: Vec<(f64, f64)> = (0..3).map(|m| (value(a, m), value(b, m))).collect();
                pairs.iter().all(|(a, b)| a >= b) && pairs.iter().any(|(a, b)| a > b)
            };
            let candidates: Vec<Vec<Vec<f64>>> = points
                .iter()
                .map(|p| vec![p.iter().copied().map(f64::from).collect()])
                .collect();
            let result = pareto(&candidates, &wishes).unwrap();
            for (own, standing) in points.iter().zip(&result) {
                let beaten = points.iter().any(|other| beats(other, own));
                prop_assert_eq!(standing.on_front(), !beaten);
                if let Some(by) = standing.dominated_by {
                    prop_assert!(beats(&points[by], own) && result[by].on_front());
                }
            }
        }
    }
}
