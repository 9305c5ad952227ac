//! What small programs in the kernel counted while processes were profiled.

use serde::{Deserialize, Serialize};

use crate::{ProfiledSide, Unit};

/// What a histogram has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelQuantity {
    /// Nanoseconds from when a thread could run until it ran.
    RunQueue,
    /// Nanoseconds from when a request was made until it was given to its block device.
    BlockWait,
    /// Nanoseconds from when a request was given to a block device until it was complete.
    BlockLatency,
    /// Bytes of such a request.
    BlockSize,
    /// Nanoseconds of one softirq, with the interrupts that came meanwhile.
    Softirq,
}

/// What a request to a block device does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockOperation {
    Read,
    Write,
    Flush,
    Discard,
    Other,
}

/// A bucket that counts something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelBucket {
    /// The lowest value and how many values from there on.
    pub low: u64,
    pub width: u64,
    pub count: u64,
    /// Of the values, exact.
    pub sum: u64,
}

/// How often which values were seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelHistogram {
    pub quantity: KernelQuantity,
    /// A process, a block device or a kind of softirq.
    pub subject: String,
    /// Of a process.
    pub side: Option<ProfiledSide>,
    /// Of a block device.
    pub operation: Option<BlockOperation>,
    /// The lowest first, none of them empty.
    pub buckets: Vec<KernelBucket>,
}

/// A kind of histogram that could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCounts {
    /// `run queues`, `block devices`, `softirqs`, `connections`.
    pub what: String,
    /// Why, and what helps.
    pub reason: String,
}

/// TCP connections of a process during a pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TcpFigures {
    pub side: ProfiledSide,
    pub process: String,
    /// When they were last looked at.
    pub connections: u64,
    /// Segments that were sent again during the pass.
    pub retransmitted: u64,
    /// Round trip times as TCP smooths them, over these connections, in microseconds.
    pub median_rtt_us: f64,
    pub max_rtt_us: f64,
    /// Bytes of all looks at all connections: sent but not acknowledged, and received but not read.
    pub mean_send_queue: f64,
    pub max_send_queue: u64,
    pub mean_receive_queue: f64,
    pub max_receive_queue: u64,
}

/// What was counted inside the kernel during a pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct KernelCounts {
    pub histograms: Vec<KernelHistogram>,
    pub connections: Vec<TcpFigures>,
    pub missing: Vec<MissingCounts>,
    /// Events that had no room in a table, or came while a program ran.
    pub lost: u64,
}

impl KernelQuantity {
    /// Of its values: nanoseconds count as [`Unit::Nanoseconds`].
    pub fn unit(self) -> Unit {
        match self {
            KernelQuantity::BlockSize => Unit::Bytes,
            KernelQuantity::RunQueue
            | KernelQuantity::BlockWait
            | KernelQuantity::BlockLatency
            | KernelQuantity::Softirq => Unit::Nanoseconds,
        }
    }
}

impl KernelHistogram {
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.count).fold(0, u64::saturating_add)
    }

    /// Of all values.
    pub fn sum(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.sum).fold(0, u64::saturating_add)
    }

    /// The value that a share (0 to 1) of the values does not exceed, as the mean of its bucket;
    /// none without a value.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let rank = (share.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut before = 0u64;
        let bucket = self.buckets.iter().find(|bucket| {
            before = before.saturating_add(bucket.count);
            before >= rank
        })?;
        Some(bucket.sum as f64 / bucket.count.max(1) as f64)
    }
}

impl KernelCounts {
    /// The histograms of a quantity.
    pub fn of(&self, quantity: KernelQuantity) -> impl Iterator<Item = &KernelHistogram> {
        self.histograms.iter().filter(move |histogram| histogram.quantity == quantity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_means_of_buckets() {
        let bucket = |low, width, count, sum| KernelBucket { low, width, count, sum };
        let histogram = KernelHistogram {
            quantity: KernelQuantity::BlockSize,
            subject: "vda".to_owned(),
            side: None,
            operation: Some(BlockOperation::Read),
            buckets: vec![
                bucket(0, 1, 1, 0),
                bucket(4096, 256, 98, 98 * 4096),
                bucket(8192, 512, 1, 8200),
            ],
        };
        assert_eq!((histogram.count(), histogram.sum()), (100, 98 * 4096 + 8200));
        for (share, value) in
            [(0.0, 0.0), (0.01, 0.0), (0.5, 4096.0), (0.99, 4096.0), (1.0, 8200.0)]
        {
            assert_eq!(histogram.quantile(share), Some(value), "{share}");
        }
        let empty = KernelHistogram { buckets: Vec::new(), ..histogram };
        assert_eq!(empty.quantile(0.5), None);
    }
}
