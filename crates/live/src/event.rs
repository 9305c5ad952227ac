//! What is shown of runs while they happen: one stream of events for terminal lines, JSON lines and
//! the page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::BUCKETS_S;

/// What happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// The page is served here.
    Live {
        url: String,
    },
    /// What happens between runs, or before a window: data is loaded, the machine idles.
    Stage {
        label: String,
        stage: String,
    },
    /// Run number `run` of `runs` (0: not known beforehand) begins.
    Begins {
        run: usize,
        runs: usize,
        label: String,
        /// `load`, `measure` or `simulate`.
        #[serde(default)]
        phase: String,
        /// Everything that the run depends on, knobs included.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        settings: BTreeMap<String, String>,
    },
    Progress(Box<RunProgress>),
    Ended(Box<RunEnd>),
}

/// A run about once a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunProgress {
    /// Before the measured window.
    pub warming_up: bool,
    /// Of the last interval; 0 before the first.
    pub rate_ops_s: f64,
    pub p99_us: f64,
    /// Of all runs, as far as it is known.
    pub left_s: Option<u64>,
    /// `warm-up`, `steady-state round 2 of at most 9`, `measure`.
    #[serde(default)]
    pub stage: String,
    /// Of this run.
    #[serde(default)]
    pub run_left_s: Option<u64>,
    /// Share of this stage that is done, 0 to 1.
    #[serde(default)]
    pub done: Option<f64>,
    /// Since the stage began.
    #[serde(default)]
    pub elapsed_s: f64,
    /// That ended in this stage.
    #[serde(default)]
    pub operations: u64,
    /// Operations per second that ended since the last event of this stage.
    #[serde(default)]
    pub answered_ops_s: Option<f64>,
    /// Operations per second that are due now; none in a closed loop.
    #[serde(default)]
    pub offered_ops_s: Option<f64>,
    /// Of the newest complete second of the window.
    #[serde(default)]
    pub latency: Option<LatencyNow>,
    /// Of the window until now.
    #[serde(default)]
    pub errors: u64,
    #[serde(default)]
    pub hits: u64,
    #[serde(default)]
    pub misses: u64,
    /// CPU time, power and counters, or why there are none.
    #[serde(default)]
    pub readings: Vec<PresentReading>,
    /// What was recorded since the last event, by kind of operation. Not in lines of JSON.
    #[serde(skip)]
    pub recorded: Vec<OpLatencies>,
}

/// Percentiles of one second over all kinds of operation, in microseconds, by the loop's own clock:
/// response in an open one, service in a closed one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyNow {
    /// The end of the second, from the beginning of the window.
    pub at_s: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p99_9_us: f64,
    pub max_us: f64,
}

/// A run that is saved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    pub run: usize,
    pub runs: usize,
    pub label: String,
    pub rate_ops_s: f64,
    pub seconds: f64,
    pub valid: bool,
    /// Over all kinds of operation, by the loop's own clock.
    #[serde(default)]
    pub p99_us: Option<f64>,
    #[serde(default)]
    pub errors: u64,
    #[serde(default)]
    pub hits: u64,
    #[serde(default)]
    pub misses: u64,
    /// Share of the keys read that were found.
    #[serde(default)]
    pub hit_ratio: Option<f64>,
    /// Why it is invalid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid_because: Vec<String>,
    /// The whole distributions, by kind of operation. Not in lines of JSON.
    #[serde(skip)]
    pub recorded: Vec<OpLatencies>,
}

/// A reading of this moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PresentReading {
    /// `cpu.kvmeter`, `cpu.servers`, `machine.busy`, `power.package`, `ipc`, ...
    pub signal: String,
    /// The number in `unit`; none where `unavailable` says why.
    pub value: Option<f64>,
    pub unit: String,
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// Not measured but modelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub modelled: bool,
}

/// Latencies of one kind of operation in the buckets of [`BUCKETS_S`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OpLatencies {
    pub op: &'static str,
    pub count: u64,
    pub sum_s: f64,
    /// One for each bound and one for what lies above the last; not cumulative.
    pub buckets: Vec<u64>,
}

impl OpLatencies {
    /// Sorts values with their counts into the buckets.
    pub fn of(op: &'static str, values_ns: impl Iterator<Item = (u64, u64)>) -> OpLatencies {
        let bounds = bucket_bounds();
        let mut own = OpLatencies { op, buckets: vec![0; bounds.len() + 1], ..Self::default() };
        for (value, count) in values_ns {
            own.count += count;
            own.sum_s += value as f64 * 1e-9 * count as f64;
            own.buckets[bounds.partition_point(|bound| *bound < value)] += count;
        }
        own
    }

    /// Adds another part of the same kind.
    pub fn add(&mut self, other: &OpLatencies) {
        self.op = other.op;
        self.count += other.count;
        self.sum_s += other.sum_s;
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *own += more;
        }
    }
}

/// The buckets' upper bounds in nanoseconds.
pub fn bucket_bounds() -> Vec<u64> {
    BUCKETS_S.iter().map(|bound| (bound * 1e9).round() as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_in_the_first_bucket_that_reaches_it() {
        let bounds = bucket_bounds();
        let on = bounds[3];
        let far = bounds.last().unwrap() * 2;
        let own = OpLatencies::of("read", [(1, 2), (on, 3), (on + 1, 5), (far, 7)].into_iter());
        assert_eq!(own.count, 17);
        assert_eq!((own.buckets[0], own.buckets[3], own.buckets[4]), (2, 3, 5));
        assert_eq!(own.buckets.last(), Some(&7));
        assert_eq!(own.buckets.iter().sum::<u64>(), own.count);
    }

    #[test]
    fn a_line_of_an_older_version_is_read() {
        let line =
            r#"{"event":"progress","warming_up":false,"rate_ops_s":5.0,"p99_us":1.5,"left_s":3}"#;
        let RunEvent::Progress(progress) = serde_json::from_str(line).unwrap() else { panic!() };
        assert_eq!((progress.rate_ops_s, progress.left_s), (5.0, Some(3)));
        let line = r#"{"event":"begins","run":1,"runs":2,"label":"null ycsb-c"}"#;
        assert!(matches!(serde_json::from_str(line).unwrap(), RunEvent::Begins { runs: 2, .. }));
    }
}
