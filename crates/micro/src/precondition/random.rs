//! Random writes in rounds until the steady state.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::random::{Draws, below};

use super::error::WriteError;
use super::ring::WriteRing;

/// Decides when rounds are steady.
#[derive(Debug, Clone, Copy)]
pub struct SteadyRule {
    /// Number of the last rounds that are judged.
    pub window: usize,
    /// Whether the throughputs of these rounds are steady.
    pub holds: fn(&[f64]) -> bool,
}

impl SteadyRule {
    /// Whether the last rounds are steady.
    pub(super) fn is_steady(&self, rounds: &[f64]) -> bool {
        let first = rounds.len().checked_sub(self.window);
        first.is_some_and(|first| (self.holds)(&rounds[first..]))
    }
}

/// The settings of random writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct RandomWrites {
    /// Bytes of addresses, from the first on.
    pub(super) range: u64,
    pub(super) block: usize,
    pub(super) depth: usize,
    pub(super) round: Duration,
    pub(super) most_rounds: usize,
    pub(super) rule: SteadyRule,
    /// Bytes per second at most.
    pub(super) rate: Option<f64>,
}

/// How the rounds ended.
pub(super) enum SteadyOutcome {
    Steady,
    /// After the most rounds.
    NotSteady,
    /// By `stop` or `limit`.
    Interrupted,
}

/// Gets the rounds so far and the writes of the present one; its error ends the writing.
pub(super) type ReportRounds<'a> = dyn FnMut(&[f64], u64) -> Result<(), WriteError> + 'a;

/// Writes further rounds, and appends the writes per second of each.
pub(super) fn write(
    file: &File,
    scatter: &RandomWrites,
    rounds: &mut Vec<f64>,
    limit: Instant,
    stop: &AtomicBool,
    report: &mut ReportRounds<'_>,
) -> Result<SteadyOutcome, WriteError> {
    let places = (scatter.range / scatter.block as u64).max(1);
    let mut ring =
        WriteRing::new(file, scatter.depth, scatter.block, rounds.len() as u64 ^ 0xd1ce)?;
    let mut random = Draws::from(rounds.len() as u64);
    while !scatter.rule.is_steady(rounds) {
        if rounds.len() >= scatter.most_rounds {
            return Ok(SteadyOutcome::NotSteady);
        }
        let begun = Instant::now();
        let (mut handed_over, mut written) = (0_u64, 0_u64);
        let mut told_at = begun;
        while begun.elapsed() < scatter.round && !ring.has_failed() {
            if stop.load(Ordering::Relaxed) || Instant::now() >= limit {
                ring.finish()?;
                return Ok(SteadyOutcome::Interrupted);
            }
            let allowed = |handed_over: u64| {
                scatter.rate.is_none_or(|rate| {
                    handed_over as f64 * scatter.block as f64
                        <= rate * begun.elapsed().as_secs_f64()
                })
            };
            while ring.has_room() && allowed(handed_over) {
                let offset = below(random.next(), places) * scatter.block as u64;
                ring.write(offset, scatter.block, handed_over)?;
                handed_over += 1;
            }
            match ring.under_way() {
                0 => std::thread::sleep(Duration::from_millis(1)),
                _ => written += ring.wait(Duration::from_millis(50))?,
            }
            if told_at.elapsed() >= super::sequential::POLL_INTERVAL {
                told_at = Instant::now();
                report(rounds, written / scatter.block as u64)?;
            }
        }
        written += ring.finish()?;
        let seconds = begun.elapsed().as_secs_f64();
        rounds.push(written as f64 / scatter.block as f64 / seconds);
        report(rounds, 0)?;
    }
    Ok(SteadyOutcome::Steady)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rounds_decide() {
        let rule =
            SteadyRule { window: 3, holds: |rounds| rounds.iter().all(|round| *round == 7.0) };
        assert!(!rule.is_steady(&[7.0; 2]));
        assert!(rule.is_steady(&[1.0, 7.0, 7.0, 7.0]));
        assert!(!rule.is_steady(&[7.0, 7.0, 7.0, 1.0]));
    }
}
