//! Whether the machine was left alone while something short was measured.

use std::time::{Duration, Instant};

use model::{Reading, ReadingValue};

use super::{Context, Probe, machine, quota};
use crate::root::Root;
use crate::unavailable::Unavailable;

/// A larger share of stolen time makes timings doubtful.
const NOTABLE_STEAL: f64 = 0.01;
/// A larger share of the machine taken by others makes timings doubtful.
const NOTABLE_NEIGHBOURS: f64 = 0.05;

/// What to doubt where the hypervisor gave this share of the CPU time to others.
pub fn steal_doubt(share: f64) -> Option<String> {
    (share > NOTABLE_STEAL).then(|| {
        format!(
            "the hypervisor gave {:.1} % of the CPU time to others; repeat on a quieter host",
            share * 100.0
        )
    })
}

/// What to doubt where other processes used this share of the machine's CPU time.
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
/// And in more than these they are what was measured.
const RULING_THROTTLING: f64 = 0.1;

/// The signal of a quota that held this process back.
pub const THROTTLED: &str = quota::THROTTLED.name;

/// What quotas did to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Throttled {
    /// What to doubt.
    Doubt(String),
    /// The quota is what was measured.
    Rules(String),
}

/// What to make of CPU quotas that ran out, from the readings of a window. A server that is held
/// back is measured as it is: that is a doubt at most.
pub fn throttled(readings: &[Reading]) -> Vec<Throttled> {
    let seen = |signal: &str| {
        let reading = readings.iter().find(|reading| reading.signal == signal)?;
        let share = reading.value().filter(|share| *share > NOTABLE_THROTTLING)?;
        // Which quota it was stands behind what is read.
        let quota = reading.source.split_once(" one: ");
        Some((share, quota.map_or(reading.source.as_str(), |(_, quota)| quota)))
    };
    let own = seen(quota::THROTTLED.name).map(|(share, quota)| {
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
    let server = seen(quota::SERVER.name).map(|(share, quota)| {
        Throttled::Doubt(format!(
            "a CPU quota held the server back in {:.0} % of its periods ({quota}): it was measured \
             under that quota",
            share * 100.0
        ))
    });
    own.into_iter().chain(server).collect()
}

/// A look at what all CPUs do, from when it is made. What was started for the measurement, and has
/// ended before the look does, is part of it.
pub struct QuietCheck {
    probe: Result<Box<dyn Probe>, Unavailable>,
    /// None where no control group can be seen: then there is nothing to say of quotas.
    quota: Option<Box<dyn Probe>>,
    begun: Instant,
}

/// What was seen meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct QuietReport {
    /// Those of the probe `machine`.
    pub readings: Vec<Reading>,
    /// Why timings of that time are doubtful; empty on a quiet machine.
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

    /// Ends the look.
    pub fn end(self) -> QuietReport {
        let window = self.begun.elapsed();
        let mut seen = match self.probe {
            Ok(mut probe) => report(probe.stop(window)),
            Err(why) => QuietReport { readings: Vec::new(), doubts: vec![unknown(&why.to_string())] },
        };
        let quotas = self.quota.map(|mut quota| throttled(&quota.stop(window)));
        let words = |throttled| match throttled {
            Throttled::Doubt(words) | Throttled::Rules(words) => words,
        };
        seen.doubts.extend(quotas.into_iter().flatten().map(words));
        seen
    }
}

fn unknown(why: &str) -> String {
    format!("whether the machine was quiet is not known: {why}")
}

fn report(readings: Vec<Reading>) -> QuietReport {
    let of = |signal: &str| readings.iter().find(|reading| reading.signal == signal);
    let doubt = |signal: &str, doubt: fn(f64) -> Option<String>| match &of(signal)?.answer {
        ReadingValue::Value(share) => doubt(*share),
        // Over less than a tick nobody else can have taken much either.
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
    fn others_are_told_where_they_took_more_than_a_little() {
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
    fn this_machine_answers() {
        let seen = QuietCheck::begin(&Root::live()).end();
        assert!(seen.readings.iter().any(|reading| reading.signal == "machine.steal"));
        let nowhere = QuietCheck::begin(&Root::at("/nonexistent")).end();
        assert!(nowhere.doubts[0].contains("is not known"), "{nowhere:?}");
    }
}
