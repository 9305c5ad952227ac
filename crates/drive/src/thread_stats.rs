//! What one client thread counts.

use std::collections::BTreeMap;

use model::PerOp;

use crate::answer_counts::AnswerCounts;
use crate::cluster_counts::ClusterCounts;
use crate::node_counts::{NodeCounts, add_all};
use crate::outcome::DataChanges;
use crate::pace::PaceWait;
use crate::replay::ReplaySummary;
use crate::ring_counts::RingCounts;

/// Statistics of one thread in the window, and its changes to the data in the whole phase.
#[derive(Debug, Default)]
pub struct ThreadStats {
    pub(crate) operations: u64,
    pub(crate) counts: PerOp<u64>,
    pub(crate) answer_counts: AnswerCounts,
    pub(crate) bytes_written: u64,
    /// Ticks inside the store.
    pub(crate) in_store: u64,
    /// Time spent waiting, from the window's first operation to the end of the last.
    pub(crate) waited: PaceWait,
    /// Tick at which this thread's part of the window began, and its last operation ended.
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) answered_in_time: u64,
    /// Ticks by which answers came later than the store's service times alone explain: late sending,
    /// the harness's work, and the queueing that both caused.
    pub(crate) late: u64,
    pub(crate) never_sent: u64,
    /// Of an open loop to servers: requests dropped because the queue was full, those that were
    /// queued, their total wait, and the maximum queue length.
    pub(crate) dropped: u64,
    pub(crate) queued: u64,
    pub(crate) queue_ticks: u64,
    pub(crate) most_queued: u64,
    /// Answers with a kernel timestamp, and the total time from that to this thread.
    pub(crate) woken: u64,
    pub(crate) wake_ns: u64,
    /// Refilled misses, and reconnects.
    pub(crate) refills: u64,
    /// Sum of the modelled latencies of the database, in ns.
    pub(crate) modelled_ns: u64,
    pub(crate) reconnected: u64,
    /// Why this thread ended the phase early.
    pub(crate) gave_up: Option<String>,
    pub(crate) fingerprint: u64,
    pub(crate) redirected: u64,
    pub(crate) drawn: u64,
    pub(crate) changes: DataChanges,
    pub(crate) cluster: ClusterCounts,
    pub(crate) ring: RingCounts,
    /// By server, where there are several.
    pub(crate) nodes: BTreeMap<String, NodeCounts>,
    /// Summary of a replayed trace.
    pub(crate) replayed: ReplaySummary,
}

impl ThreadStats {
    /// The window begins: earlier statistics are dropped, except changes to the data and failures.
    pub(crate) fn enter_window(&mut self, now: u64) {
        let before = std::mem::take(self);
        *self = ThreadStats {
            began: now,
            ended: now,
            drawn: before.drawn,
            changes: before.changes,
            answer_counts: before.answer_counts.failures_only(),
            gave_up: before.gave_up,
            ..ThreadStats::default()
        };
    }

    /// Adds the statistics of another thread.
    pub(crate) fn add(&mut self, other: ThreadStats) {
        self.operations += other.operations;
        self.counts = PerOp::from_fn(|op| self.counts[op] + other.counts[op]);
        self.answer_counts.merge(other.answer_counts);
        self.bytes_written += other.bytes_written;
        self.in_store += other.in_store;
        self.waited = self.waited + other.waited;
        self.answered_in_time += other.answered_in_time;
        self.late += other.late;
        self.never_sent += other.never_sent;
        self.dropped += other.dropped;
        self.queued += other.queued;
        self.queue_ticks += other.queue_ticks;
        self.most_queued += other.most_queued;
        self.woken += other.woken;
        self.wake_ns += other.wake_ns;
        self.refills += other.refills;
        self.modelled_ns += other.modelled_ns;
        self.reconnected += other.reconnected;
        self.gave_up = self.gave_up.take().or(other.gave_up);
        self.fingerprint = self.fingerprint.wrapping_add(other.fingerprint);
        self.redirected += other.redirected;
        self.drawn += other.drawn;
        self.cluster.add(other.cluster);
        self.ring.add(other.ring);
        add_all(&mut self.nodes, &other.nodes);
        self.replayed.add(other.replayed);
        self.changes.inserted += other.changes.inserted;
        self.changes.deleted += other.changes.deleted;
        self.changes.refused += other.changes.refused;
    }
}
