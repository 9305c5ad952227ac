use std::collections::BTreeMap;

use crate::{Distribution, Machine, Op, Reading, Series, ShareRange};
use serde::{Deserialize, Serialize};

use crate::design::Design;
use crate::latency_scope::LatencyScope;
use crate::profile::RunProfile;
use crate::run_latencies::{LatencyStatistics, RunLatencies};

/// Everything that a run depends on, flat and as text: `store`, `store.cache`, `workload`,
/// `workload.records`, `threads`, `rate`, `repeat` ... Filters select by it, and comparisons report
/// its differences.
pub type RunSettings = BTreeMap<String, String>;

/// One invocation of `run`, `bench` or `search`: its request, machine and plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// Random, unique between files.
    pub id: String,
    /// The study's name; `bench` for a measurement without a study.
    pub study: String,
    pub question: Option<String>,
    /// The study file as it was run, after `--set`; empty for `bench`.
    pub spec: String,
    pub seed: u64,
    pub command: Vec<String>,
    pub version: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// None while it runs, or if it was killed.
    pub finished_at: Option<String>,
    pub machine: Machine,
    /// The planned runs in their order. Those with a [`Run`] of the same ordinal are done.
    pub plan: Vec<PlannedRun>,
    /// What the study varies, checks and asks.
    pub design: Design,
    /// Deviations from the plan: repeats that were dropped or added.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedRun {
    pub ordinal: u32,
    pub label: String,
    pub settings: RunSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Filling the store; its operations are inserts.
    Load,
    /// The measured workload.
    Measure,
    /// A simulation: its figures are readings of simulated origin; the run has no operations and no
    /// latencies.
    Simulate,
}

/// The instants between which a latency is measured. Clocks are never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyClock {
    /// From the instant at which the request was sent to its answer.
    Service,
    /// From the instant at which the request was due to its answer; open loop only.
    Response,
    /// From the instant at which the request was sent to the arrival of its answer in the
    /// client's kernel: server and network, without the client's own wake-up.
    Arrival,
    /// Inside the server: from the read that brought the request to the write that answered
    /// it. Neither the network nor the queue of the server's socket is in it.
    Server,
}

impl LatencyClock {
    /// From the outermost boundary of a request inwards.
    pub const INWARDS: [LatencyClock; 4] = [
        LatencyClock::Response,
        LatencyClock::Service,
        LatencyClock::Arrival,
        LatencyClock::Server,
    ];
}

/// How requests were issued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    /// Each thread issues its next operation when it has its answer, after an optional pause.
    Closed { think_s: f64 },
    /// Requests are due at instants that do not depend on the store.
    Open { rate_ops_s: f64, arrivals: String },
}

/// One interval of the time series for one kind of operation. Latencies in nanoseconds by
/// the run's own clock: response in an open loop, service in a closed one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// End of the interval, seconds from the start of the run.
    pub at_s: f64,
    pub op: Op,
    /// Length of the interval in seconds.
    pub seconds: f64,
    pub operations: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
}

impl SeriesPoint {
    /// Operations per second over the interval; 0 operations in no time is 0.
    pub fn throughput(&self) -> f64 {
        if self.seconds > 0.0 { self.operations as f64 / self.seconds } else { 0.0 }
    }
}

/// Failed operations of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// `missing`, `torn`, `other_key`, `length`, `store`, ...
    pub kind: String,
    pub count: u64,
    /// The first of them, in words.
    pub first: String,
}

/// What the harness itself costs, measured in the same process on the same workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HarnessTax {
    /// The same workload against the null store, one thread.
    pub ns_per_op: f64,
    /// One reading of the clock.
    pub clock_ns: f64,
    /// Making and checking one value of this workload, which the null store does not do.
    pub verify_ns: Option<f64>,
    /// Share of the window in which the threads of the harness were neither waiting for the
    /// store nor idle until the next request was due.
    pub busy: f64,
    /// The ordinal of the run of this execution before which the costs were measured: it may be
    /// an earlier one whose setting was the same. None in files of older versions, where each run
    /// has its own.
    #[serde(default)]
    pub measured_before_run: Option<u32>,
}

/// The setting with the hit ratio that a valid run must have.
pub const EXPECTED_HIT_RATIO: &str = "expect_hit_ratio";

/// The value of the setting `store` of a microbenchmark.
pub const MICRO: &str = "micro";
/// The value of the setting `store` of a simulation.
pub const SIMULATE: &str = "simulate";

/// One phase of one store under one workload: the unit that is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Random, unique between files.
    pub id: String,
    /// [`Execution::id`].
    pub execution: String,
    /// [`PlannedRun::ordinal`].
    pub ordinal: u32,
    /// For people: `rocksdb ycsb-a`.
    pub label: String,
    pub phase: Phase,
    pub settings: RunSettings,
    /// The version that ran: `RocksDB 11.8.1`.
    pub store_version: String,
    pub threads: u32,
    pub pacing: LoopKind,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// Length of the measured window.
    pub seconds: f64,
    /// Operations that ended in the window, failed ones included.
    pub operations: u64,
    /// Answers that were checked against the written values.
    pub verified: u64,
    /// Reads that found nothing where the workload allows misses.
    pub misses: u64,
    pub failures: Vec<Failures>,
    /// Empty: the run is valid.
    pub invalid_because: Vec<String>,
    /// Remarks on a valid run: stolen time, a short window ...
    pub warnings: Vec<String>,
    pub latencies: RunLatencies,
    pub series: Vec<SeriesPoint>,
    pub readings: Vec<Reading>,
    /// What probes sampled over the window, on the same clock as `series`.
    pub samples: Vec<Series>,
    /// None where it was not measured, as in a load phase.
    pub tax: Option<HarnessTax>,
    /// Named facts about the stream of operations that was issued: fingerprint, skew, redirected
    /// reads.
    pub stream: BTreeMap<String, String>,
    /// Where the time went, from a pass of its own after the run; none without such a pass.
    pub profile: Option<Box<RunProfile>>,
}

/// The sum of counts, saturating: a file may hold any.
pub fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

impl Run {
    /// The setting of a calibration trial: the planned run that it is for.
    pub const TRIAL_FOR: &'static str = "search.for";

    /// The setting that says what the store's acknowledged writes survive.
    pub const SURVIVES: &'static str = "survives";

    /// The fact of the stream that is its whole workload, as JSON.
    pub const WORKLOAD: &'static str = "workload_spec";

    /// The settings that differ between repeats of one thing.
    pub const REPEAT_SETTINGS: [&str; 3] = ["repeat", "seed", "order"];

    /// Whether it is a calibration trial, which is no result of its study and may be overloaded on
    /// purpose.
    pub fn is_trial(&self) -> bool {
        self.settings.contains_key(Run::TRIAL_FOR)
    }

    pub fn valid(&self) -> bool {
        self.invalid_because.is_empty()
    }

    /// Whether it measures a store; else it is a microbenchmark or a simulation.
    pub fn measures_store(&self) -> bool {
        !matches!(self.settings.get("store").map(String::as_str), Some(MICRO | SIMULATE))
    }

    /// Operations per second over the window; 0 operations in no time is 0.
    pub fn throughput(&self) -> f64 {
        if self.seconds > 0.0 { self.operations as f64 / self.seconds } else { 0.0 }
    }

    pub fn errors(&self) -> u64 {
        total(self.failures.iter().map(|failure| failure.count))
    }

    /// The clock that is shown by default: response where there is one.
    pub fn clock(&self) -> LatencyClock {
        match self.pacing {
            LoopKind::Open { .. } => LatencyClock::Response,
            LoopKind::Closed { .. } => LatencyClock::Service,
        }
    }

    /// The distribution of one kind of operation; of [`LatencyScope::Any`] only where kinds were
    /// not distinguished, as inside a server.
    pub fn latency(
        &self,
        scope: impl Into<LatencyScope>,
        clock: LatencyClock,
    ) -> Option<&Distribution> {
        let scope = scope.into();
        let latency = self.latencies.iter().find(|l| l.op == scope && l.clock == clock)?;
        Some(&latency.histogram)
    }

    /// The latencies of all operations by one clock, added up, whether or not their kinds were
    /// distinguished. None without a sample.
    pub fn latency_of_all(&self, clock: LatencyClock) -> Option<LatencyStatistics<'_>> {
        self.latencies.of_all(clock)
    }

    /// Share of the requested keys that were there; a missing key is no hit, whether misses are
    /// allowed or failures.
    pub fn hit_ratio(&self) -> Option<f64> {
        self.value("cache.hit_ratio")
    }

    /// Whether reads may miss without a failure, or did: then the hit ratio is shown with the
    /// throughput.
    pub fn may_miss(&self) -> bool {
        // Only runs that go over a network have connections.
        let networked = self.settings.contains_key("connections");
        self.has_misses() || networked && self.hit_ratio().is_some()
    }

    /// Whether any requested key was missing.
    pub fn has_misses(&self) -> bool {
        self.hit_ratio().is_some_and(|ratio| ratio < 1.0)
    }

    /// Why the hit ratio is not the one that was expected; none where it is, or none was.
    pub fn unexpected_hit_ratio(&self) -> Option<String> {
        let expected = self.settings.get(EXPECTED_HIT_RATIO)?;
        let Some(ratio) = self.hit_ratio() else {
            let none = format!("there was no read, but a hit ratio of {expected} was expected");
            return (self.phase == Phase::Measure).then_some(none);
        };
        let holds = expected.parse().is_ok_and(|shares: ShareRange| shares.contains(ratio));
        (!holds).then(|| format!("the hit ratio is {ratio:.4}, but {expected} was expected"))
    }

    /// Joules of an operation with their boundary and origin, where energy was read.
    pub fn joules_per_op(&self) -> Option<&Reading> {
        self.reading("joules_per_op").filter(|reading| reading.value().is_some())
    }

    /// Operations per second that were completed, where the loop is open.
    pub fn achieved_rate(&self) -> Option<f64> {
        self.value("client.achieved_rate")
    }

    /// Operations per second that were to be issued; none in a closed loop.
    pub fn target_rate(&self) -> Option<f64> {
        match self.pacing {
            LoopKind::Open { rate_ops_s, .. } => Some(rate_ops_s),
            LoopKind::Closed { .. } => None,
        }
    }

    pub fn reading(&self, signal: &str) -> Option<&Reading> {
        self.readings.iter().find(|reading| reading.signal == signal)
    }

    pub fn value(&self, signal: &str) -> Option<f64> {
        self.reading(signal)?.value()
    }
}
