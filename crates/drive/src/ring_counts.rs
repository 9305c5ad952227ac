//! What the threads count of servers that share the keys by hashing, where lost ones are ejected.

use serde::{Deserialize, Serialize};

/// Losses of servers whose keys went to the others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RingCounts {
    /// The servers; 0 where none is ejected.
    pub servers: u64,
    /// Share of the keys of the largest set of servers that were out at once.
    pub lost_share: f64,
    /// Requests that a lost server, or a lost connection, did not answer.
    pub failed: u64,
}

impl RingCounts {
    pub(crate) fn add(&mut self, other: RingCounts) {
        self.servers = self.servers.max(other.servers);
        self.lost_share = self.lost_share.max(other.lost_share);
        self.failed += other.failed;
    }

    /// What the losses meant for the requests; None without any.
    pub(crate) fn words(&self) -> Option<String> {
        let failed = self.failed;
        match self.lost_share {
            0.0 if failed == 0 => None,
            0.0 => Some(format!("connections were lost, and {failed} requests with them")),
            share => Some(format!(
                "the server of {:.0} % of the keys was lost and ejected: {failed} requests failed, \
                 the others went to the servers that were left",
                share * 100.0
            )),
        }
    }
}
