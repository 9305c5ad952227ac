use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use model::{Op, PerOp, SeriesPoint};
use serde::{Deserialize, Serialize};
use store::StoreError;
use thiserror::Error;
use workload::trace::TraceError;

use crate::cluster_counts::ClusterCounts;
use crate::node_counts::{NodeCounts, few};
use crate::replay::ReplaySummary;
use crate::ring_counts::RingCounts;

/// Kinds of failures of single answers; each is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A record that must be there was not.
    Missing,
    /// A value that is not the one that was written for its key.
    Wrong,
    /// A scan that was out of order or began before its start.
    Disorder,
    /// The store returned an error.
    Store,
    /// The store reported that it is out of memory.
    OutOfMemory,
    /// An answer was for another key than that of the request.
    OtherKey,
    /// The bytes received are no answer.
    Garbage,
    /// No answer came in time.
    Timeout,
    /// The connection was closed before the answer.
    Closed,
    /// A server was lost and could not be reconnected.
    Lost,
}

impl FailureKind {
    pub const fn name(self) -> &'static str {
        match self {
            FailureKind::Missing => "missing",
            FailureKind::Wrong => "wrong",
            FailureKind::Disorder => "disorder",
            FailureKind::Store => "store",
            FailureKind::OutOfMemory => "out_of_memory",
            FailureKind::OtherKey => "other_key",
            FailureKind::Garbage => "garbage",
            FailureKind::Timeout => "timeout",
            FailureKind::Closed => "closed",
            FailureKind::Lost => "lost",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerFailure {
    pub kind: FailureKind,
    pub count: u64,
    /// Description of the first one.
    pub first: String,
}

/// Result of waiting for the steady state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteadyReport {
    /// Throughput of each round, ops/s.
    pub rounds: Vec<f64>,
    pub reached: bool,
}

/// What a phase did to the data, warm-up included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataChanges {
    /// Records that were inserted and acknowledged.
    pub inserted: u64,
    pub deleted: u64,
    /// Writes that failed: the state of the data is then unknown.
    pub refused: u64,
}

/// The outcome of the measured window. [`PhaseOutcome::to_bytes`] serialises all of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseOutcome {
    pub threads: usize,
    /// The length over which operations are counted: operations / seconds is the throughput.
    pub seconds: f64,
    /// From the window's opening until it closed; in an open loop the last answers come later.
    pub window_s: f64,
    /// Operations that ended, failed ones included.
    pub operations: u64,
    pub verified: u64,
    /// Keys of reads that were found, and those that were not where that is no failure: the
    /// workload deletes records or reads absent keys, or the store may evict.
    pub hits: u64,
    pub misses: u64,
    /// Keys of reads that were missing although they had to be there; each is a failure too.
    pub missing: u64,
    /// Misses that were refilled.
    pub refills: u64,
    pub failures: Vec<AnswerFailure>,
    /// Histograms by service time, and by response time in an open loop.
    #[serde(skip)]
    pub service: Vec<(Op, Histogram<u64>)>,
    #[serde(skip)]
    pub response: Vec<(Op, Histogram<u64>)>,
    /// From sending to the arrival of the answer in the client's kernel, where it has timestamps.
    #[serde(skip)]
    pub arrival: Vec<(Op, Histogram<u64>)>,
    /// Of reads that missed, from due or sent until the record was refilled: what the client waits,
    /// with the modelled latency of the database in it.
    #[serde(skip)]
    pub miss: Vec<(Op, Histogram<u64>)>,
    /// Sum of the database's modelled latencies in these, in seconds.
    pub modelled_s: f64,
    pub series: Vec<SeriesPoint>,
    /// The histogram of each point of the series, in HDR's V2 format, deflated; empty unless the
    /// plan keeps them.
    #[serde(skip)]
    pub intervals: Vec<Vec<u8>>,
    pub counts: PerOp<u64>,
    pub changes: DataChanges,
    /// Bytes of keys and values that were written and read in the window.
    pub bytes_written: u64,
    pub bytes_read: u64,
    /// Records that scans returned.
    pub scanned: u64,
    /// Share of the threads' time that was neither inside the store nor waiting. Where threads
    /// share fewer CPUs: share of the CPUs' time, but at most the share of the time that was not
    /// waiting, because a thread that waits for its CPU cannot be told from one that runs.
    pub harness_share: f64,
    /// Share of the threads' time that was not waiting for a request to be due, or the harness's
    /// share of the CPUs that they share, whichever is larger.
    pub busy_share: f64,
    /// CPU seconds that the pacer spun.
    pub spun_s: f64,
    /// Mean seconds by which answers came later than for a client without cost or lateness, with
    /// the same due instants and service times. Open loop only.
    pub mean_lateness_s: f64,
    /// Requests that were due in the window, and those of them answered in it; open loop only.
    pub due: u64,
    pub answered_in_time: u64,
    /// Requests that were due in the window and never sent; open loop only.
    pub never_sent: u64,
    /// Of those that were not sent, those for which the queue of a thread had no room.
    pub dropped: u64,
    /// Requests that waited for a connection with a free slot, their mean wait, and the maximum
    /// that waited at once in all threads; open loop to servers only.
    pub queued: u64,
    pub mean_queued_s: f64,
    pub most_queued: u64,
    /// Mean seconds from the arrival of an answer in the kernel to its thread, over the answers with
    /// a kernel timestamp; None without any.
    pub mean_wake_up_s: Option<f64>,
    /// Connections that were lost and reconnected.
    pub reconnected: u64,
    /// Order-independent hash of the operations that were drawn, and draws of `latest` that
    /// fell on a record not yet acknowledged. Warm-up included.
    pub fingerprint: u64,
    pub redirected: u64,
    /// Operations of the stream that were drawn, warm-up included.
    pub drawn: u64,
    pub steady: Option<SteadyReport>,
    /// Summary of a replayed trace.
    pub replayed: Option<ReplaySummary>,
    /// Of a cluster.
    pub cluster: Option<ClusterCounts>,
    /// Of several servers of which lost ones are ejected.
    pub ring: Option<RingCounts>,
    /// By server, where there are several, and the length of their intervals in seconds.
    #[serde(deserialize_with = "few")]
    pub nodes: BTreeMap<String, NodeCounts>,
    pub interval_s: f64,
    /// Ended early by a stop.
    pub stopped: bool,
    /// Why it ended early by itself: a server is lost, or only failures came.
    pub gave_up: Option<String>,
    pub invalid_because: Vec<String>,
    pub warnings: Vec<String>,
}

impl PhaseOutcome {
    /// Share of the keys read that were found; misses and failures both count as not found. None
    /// without reads.
    pub fn hit_ratio(&self) -> Option<f64> {
        let reads = self.hits + self.misses + self.missing;
        (reads > 0).then(|| self.hits as f64 / reads as f64)
    }
}

/// Why a phase has no result.
#[derive(Debug, Error)]
pub enum DriveError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error("no operation has ended for {0} s; the store does not answer")]
    Stalled(u64),
    #[error("the store failed {count} operations in a row; the last error: {last}")]
    Failing { count: u64, last: String },
    #[error("stopped before it began")]
    NotBegun,
    #[error("{0}")]
    Internal(String),
}
