//! What one thread counts of each of several servers.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::super::Network;
use crate::clock::Ticks;
use crate::node_counts::{DIGITS, NodeCounts, NodeInterval};
use crate::recorder::LONGEST_NS;

/// Intervals for which there is room beforehand, so that counting allocates nothing for long.
const ROOM: usize = 4096;

/// Counts by server, and the current interval of the window.
pub(super) struct NodeRecorder {
    nodes: Vec<NodeCounts>,
    interval: usize,
    length: u64,
    /// Tick at which the current interval ends.
    ends: u64,
}

impl NodeRecorder {
    /// None of a single server outside of a cluster: its counts are those of the run.
    pub(super) fn of(
        network: &Network,
        servers: usize,
        clock: &Ticks,
        interval: Duration,
    ) -> Option<NodeRecorder> {
        if servers < 2 && network.cluster().is_none() {
            return None;
        }
        let nodes = (0..servers).map(|_| no_counts()).collect();
        let length = clock.ticks_of(interval);
        Some(NodeRecorder { nodes, interval: 0, length, ends: u64::MAX })
    }

    /// One more node has joined.
    pub(super) fn add_node(&mut self) {
        self.nodes.push(no_counts());
    }

    /// The window begins: what was counted before is dropped.
    pub(super) fn open_window(&mut self, opened_at: u64) {
        self.ends = opened_at + self.length;
        for node in &mut self.nodes {
            (node.answers, node.failed, node.read, node.found) = (0, 0, 0, 0);
            node.latency.reset();
            node.intervals.clear();
        }
    }

    /// Counts an answer about `(read, found)` keys that came `nanos` after it was sent.
    #[inline]
    pub(super) fn count(&mut self, node: usize, keys: (usize, usize), nanos: u64, now: u64) {
        while now >= self.ends {
            self.interval += 1;
            self.ends += self.length;
        }
        self.nodes[node].count(keys, nanos, self.interval);
    }

    /// Counts requests that a server did not answer.
    pub(super) fn fail(&mut self, node: usize, count: usize) {
        self.nodes[node].failed += count as u64;
    }

    /// The counts by name; intervals in which nothing was answered are there too.
    pub(super) fn finish(self, network: &Network) -> BTreeMap<String, NodeCounts> {
        let fill = |(at, mut node): (usize, NodeCounts)| {
            node.intervals.resize(self.interval + 1, NodeInterval::default());
            (network.name(at), node)
        };
        self.nodes.into_iter().enumerate().map(fill).collect()
    }
}

fn no_counts() -> NodeCounts {
    let latency = Histogram::new_with_max(LONGEST_NS, DIGITS)
        .unwrap_or_else(|_| unreachable!("the limits are valid"));
    NodeCounts { latency, intervals: Vec::with_capacity(ROOM), ..NodeCounts::default() }
}
