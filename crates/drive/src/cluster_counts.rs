//! What the threads count of a cluster.

use serde::{Deserialize, Serialize};
use store::wire::SLOTS;

/// Redirects, retries and losses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterCounts {
    /// Its nodes when the phase began; 0 without a cluster.
    pub nodes: u64,
    /// Nodes that joined it in the window.
    pub joined: u64,
    /// Answers that sent a request to another node: for good, and once.
    pub moved: u64,
    pub asked: u64,
    /// Requests that were repeated: the node was lost, busy or no primary any more.
    pub retried: u64,
    /// Of them, those that a node served in the end, and the longest time that one took, in s.
    pub served_late: u64,
    pub longest_s: f64,
    /// Slots of the largest set of nodes that was lost at once, of 16,384.
    pub lost_slots: u64,
    /// Keys that were acknowledged and gone after a replica took over.
    pub lost_keys: u64,
}

impl ClusterCounts {
    pub(crate) fn add(&mut self, other: ClusterCounts) {
        self.nodes = self.nodes.max(other.nodes);
        self.joined = self.joined.max(other.joined);
        self.moved += other.moved;
        self.asked += other.asked;
        self.retried += other.retried;
        self.served_late += other.served_late;
        self.longest_s = self.longest_s.max(other.longest_s);
        self.lost_slots = self.lost_slots.max(other.lost_slots);
        self.lost_keys += other.lost_keys;
    }

    /// Share of the slots whose node was lost.
    pub fn lost_share(&self) -> f64 {
        self.lost_slots as f64 / SLOTS as f64
    }

    /// What a loss of nodes meant for the requests; None if none was lost.
    pub(crate) fn words(&self, failed: u64) -> Option<String> {
        if self.lost_slots == 0 && self.lost_keys == 0 {
            return None;
        }
        let what = match self.served_late {
            0 => format!("{failed} requests failed"),
            late => format!(
                "requests waited up to {:.1} s, {late} were served late, {failed} failed",
                self.longest_s
            ),
        };
        let share = self.lost_share() * 100.0;
        let mut words = format!("the node of {share:.0} % of the keys was lost: {what}");
        if self.lost_keys > 0 {
            words += &format!(
                "; {} reads found acknowledged keys gone after a replica had taken over",
                self.lost_keys
            );
        }
        Some(words)
    }
}
