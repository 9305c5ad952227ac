//! What the threads count of a cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use store::wire::SLOTS;

/// Redirects, retries and the load of each node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterCounts {
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
    /// Answers of each node.
    pub answers: BTreeMap<String, u64>,
}

impl ClusterCounts {
    pub(crate) fn add(&mut self, other: ClusterCounts) {
        self.moved += other.moved;
        self.asked += other.asked;
        self.retried += other.retried;
        self.served_late += other.served_late;
        self.longest_s = self.longest_s.max(other.longest_s);
        self.lost_slots = self.lost_slots.max(other.lost_slots);
        self.lost_keys += other.lost_keys;
        for (node, answers) in other.answers {
            *self.answers.entry(node).or_default() += answers;
        }
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
        let mut words = format!(
            "the node of {:.0} % of the keys was lost: requests waited up to {:.1} s, {} were served \
             late, {} failed",
            self.lost_share() * 100.0,
            self.longest_s,
            self.served_late,
            failed
        );
        if self.lost_keys > 0 {
            words += &format!(
                "; {} reads found acknowledged keys gone after a replica had taken over",
                self.lost_keys
            );
        }
        Some(words)
    }

    /// The most loaded node over the mean of those that answered anything; None without answers.
    pub fn imbalance(&self) -> Option<f64> {
        let answers = self.answers.values().filter(|answers| **answers > 0);
        let (nodes, all) = (answers.clone().count(), answers.clone().sum::<u64>());
        let most = answers.max()?;
        Some(*most as f64 * nodes as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imbalance_is_the_most_loaded_over_the_mean() {
        let counts = |all: &[u64]| ClusterCounts {
            answers: all.iter().enumerate().map(|(at, n)| (at.to_string(), *n)).collect(),
            ..ClusterCounts::default()
        };
        assert_eq!(counts(&[]).imbalance(), None);
        assert_eq!(counts(&[5, 5, 5]).imbalance(), Some(1.0));
        assert_eq!(counts(&[6, 3, 0]).imbalance(), Some(6.0 / 4.5));
        let mut sum = counts(&[1, 2]);
        sum.add(counts(&[1]));
        assert_eq!(sum.answers.values().copied().collect::<Vec<_>>(), [2, 2]);
    }
}
