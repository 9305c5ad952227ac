//! What was counted inside the kernel during the passes after runs.

use model::{KernelBucket, KernelCounts, KernelHistogram, MissingCounts, Run, TcpFigures};

use super::{RunLoader, from_name, real, text};
use crate::error::RecordError;

impl RunLoader<'_> {
    /// Reads the counts of the runs whose profiles are there.
    pub(super) fn kernel_counts(&mut self) -> Result<(), RecordError> {
        if self.runs.iter().all(|run| counts(run).is_none()) {
            return Ok(());
        }
        self.kernel_histograms()?;
        self.read_rows(
            "kernel_missing",
            "what, reason",
            ", position",
            |row, _, _| Ok(Some(MissingCounts { what: row.get(1)?, reason: row.get(2)? })),
            |_, run, missing| {
                if let Some(counts) = counts_mut(run) {
                    counts.missing = missing.collect();
                }
            },
        )?;
        let path = self.path;
        self.read_rows(
            "tcp",
            "side, process, connections, retransmitted, median_rtt_us, max_rtt_us, \
             mean_send_queue_bytes, max_send_queue_bytes, mean_receive_queue_bytes, \
             max_receive_queue_bytes",
            ", position",
            |row, _, _| {
                Ok(Some(TcpFigures {
                    side: from_name(path, "side", text(row, 1)?)?,
                    process: row.get(2)?,
                    connections: row.get(3)?,
                    retransmitted: row.get(4)?,
                    median_rtt_us: real(row, 5)?,
                    max_rtt_us: real(row, 6)?,
                    mean_send_queue: real(row, 7)?,
                    max_send_queue: row.get(8)?,
                    mean_receive_queue: real(row, 9)?,
                    max_receive_queue: row.get(10)?,
                }))
            },
            |_, run, connections| {
                if let Some(counts) = counts_mut(run) {
                    counts.connections = connections.collect();
                }
            },
        )
    }

    fn kernel_histograms(&mut self) -> Result<(), RecordError> {
        let path = self.path;
        self.read_rows(
            "kernel_histogram",
            "quantity, subject, side, operation",
            ", position",
            |row, _, _| {
                let (side, operation): (Option<String>, Option<String>) =
                    (row.get(3)?, row.get(4)?);
                Ok(Some(KernelHistogram {
                    quantity: from_name(path, "quantity", text(row, 1)?)?,
                    subject: row.get(2)?,
                    side: side.map(|name| from_name(path, "side", &name)).transpose()?,
                    operation: operation
                        .map(|name| from_name(path, "operation", &name))
                        .transpose()?,
                    buckets: Vec::new(),
                }))
            },
            |_, run, histograms| {
                if let Some(counts) = counts_mut(run) {
                    counts.histograms = histograms.collect();
                }
            },
        )?;
        self.read_rows(
            "kernel_bucket",
            "position, low, width, count, sum",
            ", position, low",
            |row, _, _| {
                let bucket = KernelBucket {
                    low: row.get(2)?,
                    width: row.get(3)?,
                    count: row.get(4)?,
                    sum: row.get(5)?,
                };
                Ok(Some((row.get::<_, usize>(1)?, bucket)))
            },
            |_, run, buckets| {
                let Some(counts) = counts_mut(run) else { return };
                for (position, bucket) in buckets {
                    if let Some(histogram) = counts.histograms.get_mut(position) {
                        histogram.buckets.push(bucket);
                    }
                }
            },
        )
    }
}

fn counts(run: &Run) -> Option<&KernelCounts> {
    run.profile.as_ref()?.counts.as_ref()
}

fn counts_mut(run: &mut Run) -> Option<&mut KernelCounts> {
    run.profile.as_mut()?.counts.as_mut()
}
