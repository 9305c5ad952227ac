//! Checks that the machine was otherwise quiet during a short measurement.

use std::time::{Duration, Instant};

use model::{Reading, ReadingValue, Unavailable};

use super::{Context, Probe, machine, quota};
use crate::root::Root;

/// A larger share of stolen time makes timings doubtful.
const NOTABLE_STEAL: f64 = 0.01;
/// A larger share of the machine taken by others makes timings doubtful.
const NOTABLE_NEIGHBOURS: f64 = 0.05;

/// The warning for this share of stolen CPU time, if it is too large.
pub fn steal_doubt(share: f64) -> Option<String> {
    (share > NOTABLE_STEAL).then(|| {
        format!(
            "the hypervisor gave {:.1} % of the CPU time to others; repeat on a quieter host",
            share * 100.0
        )
    })
}

/// The warning for this share of CPU time used by other processes, if it is too large.
pub fn neighbours_doubt(share: f64) -> Option<String> {
    (share > NOTABLE_NEIGHBOURS).then(|| {
        format!(
            "other processes used {:.1} % of the machine's CPU time; stop them and repeat",
            share * 100.0
        )
    })
}

/// CPU quotas that ran out in more of their periods make timings doubtful.
const NOTABLE_THROTTLING: f64 = 0.01;
/// In more than these, the quota dominates the result.
const RULING_THROTTLING: f64 = 0.1;

/// The signal of CPU quotas that throttled this process.
pub const THROTTLED: &str = quota::THROTTLED.name;

/// The effect of CPU quotas on a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Throttled {
    /// A warning.
    Doubt(String),
    /// The quota dominates the result.
    Rules(String),
}

/// The effect of CPU quotas, from the readings of a window. A throttled server is measured as it
/// is, so that gives a warning at most.
pub fn throttled(readings: &[Reading]) -> Vec<Throttled> {
    let share_of = |signal: &str| {
        let reading = readings.iter().find(|reading| reading.signal == signal)?;
        let share = reading.value().filter(|share| *share > NOTABLE_THROTTLING)?;
        // The source names the quota.
        let quota = reading.source.split_once(" one: ");
        Some((share, quota.map_or(reading.source.as_str(), |(_, quota)| quota)))
    };
    let own = share_of(quota::THROTTLED.name).map(|(share, quota)| {
        let words = format!(
            "a CPU quota held kvmeter back in {:.0} % of its periods ({quota}); raise or remove \
             the quota, or use fewer threads",
            share * 100.0
        );
        match share > RULING_THROTTLING {
            true => Throttled::Rules(words),
            false => Throttled::Doubt(words),
        }
    });
    let server = share_of(quota::SERVER.name).map(|(share, quota)| {
        Throttled::Doubt(format!(
            "a CPU quota held the server back in {:.0} % of its periods ({quota}): it was measured \
             under that quota",
            share * 100.0
        ))
    });
    own.into_iter().chain(server).collect()
}

/// Watches the CPU time of the machine from its creation. Processes that were started for the
/// measurement and have ended before it count as part of it.
pub struct QuietCheck {
    probe: Result<Box<dyn Probe>, Unavailable>,
    /// None where no control group is visible.
    quota: Option<Box<dyn Probe>>,
    begun: Instant,
}

/// The result of the check.
#[derive(Debug, Clone, PartialEq)]
pub struct QuietReport {
    /// The readings of the probe `machine`.
    pub readings: Vec<Reading>,
    /// Why timings are doubtful; empty on a quiet machine.
    pub doubts: Vec<String>,
}

impl QuietCheck {
    pub fn begin(root: &Root) -> QuietCheck {
        let mut probe = machine::watching(root, true);
        if let Ok(probe) = &mut probe {
            probe.start();
        }
        let mut quota = (quota::SPEC.init)(root, &Context::default()).ok();
        if let Some(quota) = &mut quota {
            quota.start();
        }
        QuietCheck { probe, quota, begun: Instant::now() }
    }

    /// Ends the check.
    pub fn end(self) -> QuietReport {
        let window = self.begun.elapsed();
        let mut report_now = match self.probe {
            Ok(mut probe) => report(probe.stop(window)),
            Err(why) => {
                QuietReport { readings: Vec::new(), doubts: vec![unknown(&why.to_string())] }
            }
        };
        let quotas = self.quota.map(|mut quota| throttled(&quota.stop(window)));
        let words = |throttled| match throttled {
            Throttled::Doubt(words) | Throttled::Rules(words) => words,
        };
        report_now.doubts.extend(quotas.into_iter().flatten().map(words));
        report_now
    }
}

fn unknown(why: &str) -> String {
    format!("whether the machine was quiet is not known: {why}")
}

fn report(readings: Vec<Reading>) -> QuietReport {
    let of = |signal: &str| readings.iter().find(|reading| reading.signal == signal);
    let doubt = |signal: &str, doubt: fn(f64) -> Option<String>| match &of(signal)?.answer {
        ReadingValue::Value(share) => doubt(*share),
        // Within less than a tick other processes cannot have used much.
        ReadingValue::Unavailable { .. } if of(signal)?.window_s < SHORT.as_secs_f64() => None,
        ReadingValue::Unavailable { reason, .. } => Some(unknown(reason)),
    };
    let doubts =
        [doubt("machine.steal", steal_doubt), doubt("machine.neighbours", neighbours_doubt)];
    let doubts = doubts.into_iter().flatten().collect();
    QuietReport { readings, doubts }
}

/// A few ticks of `/proc/stat`.
const SHORT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use model::{Origin, Scope, Unit};

    use super::*;

    fn reading(signal: &str, answer: ReadingValue) -> Reading {
        Reading {
            signal: signal.to_owned(),
            answer,
            unit: Unit::Ratio,
            scope: Scope::Machine,
            source: "test".to_owned(),
            window_s: 1.0,
            origin: Origin::Measured,
        }
    }

    #[test]
    fn warns_of_other_processes_above_the_limits() {
        let doubts = |steal: f64, neighbours: f64| {
            let steal = reading("machine.steal", ReadingValue::Value(steal));
            let neighbours = reading("machine.neighbours", ReadingValue::Value(neighbours));
            report(vec![steal, neighbours]).doubts
        };
        assert!(doubts(0.005, 0.04).is_empty());
        assert!(doubts(0.02, 0.0)[0].contains("2.0 %"));
        assert_eq!(doubts(0.5, 0.5).len(), 2);
        let reason = "a counter went back".to_owned();
        let lost = reading("machine.steal", ReadingValue::Unavailable { reason, remedy: None });
        assert!(report(vec![lost]).doubts[0].contains("not known: a counter went back"));
    }

    #[test]
    fn reads_this_machine() {
        let seen = QuietCheck::begin(&Root::live()).end();
        assert!(seen.readings.iter().any(|reading| reading.signal == "machine.steal"));
        let nowhere = QuietCheck::begin(&Root::at("/nonexistent")).end();
        assert!(nowhere.doubts[0].contains("is not known"), "{nowhere:?}");
    }
}
