//! A summary of a trace, from one pass over it.

use std::sync::Arc;

use model::{Op, PerOp};

use super::chunk::RequestChunk;
use super::distinct::DistinctCounter;
use super::reader::TraceReader;
use super::{ArrivalSpread, TraceError, TraceFormat, TraceTiming};
use crate::value::hash;

/// The requests of a trace or of its beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSummary {
    pub requests: u64,
    /// Requests by operation.
    pub by_op: PerOp<u64>,
    /// Different keys, estimated with a standard error of 0.8 %.
    pub distinct_keys: f64,
    /// Bytes of the original keys.
    pub mean_key_size: f64,
    /// Bytes of the values that are read and written; 0 where it is not known or was not there.
    pub mean_value_size: f64,
    pub largest_value: u32,
    pub format: TraceFormat,
    pub timing: TraceTiming,
    /// Seconds from the first to the last; both are included where they are whole. None where the
    /// trace has no times.
    pub duration_s: Option<f64>,
    /// Requests of the busiest second, counted from the first request.
    pub peak_rate_s: Option<u64>,
    /// Malformed records that were left out.
    pub skipped: u64,
    /// Records that request no value.
    pub ignored: u64,
    /// Whether the trace ended before the bound.
    pub whole: bool,
    /// The first line, where it named the fields and was skipped.
    pub header: Option<Arc<str>>,
}

impl TraceSummary {
    /// Part of the requests that read.
    pub fn read_share(&self) -> f64 {
        self.by_op[Op::Read] as f64 / self.requests as f64
    }

    /// Requests a second; none where that is not known.
    pub fn mean_rate_s(&self) -> Option<f64> {
        let seconds = self.duration_s.filter(|seconds| *seconds > 0.0)?;
        Some(self.requests as f64 / seconds)
    }
}

impl TraceReader {
    /// Reads the trace, up to the end of the second that reaches `requests`; `None` reads all of
    /// it.
    ///
    /// # Errors
    /// As [`TraceReader::next_second`].
    pub fn summary(mut self, requests: Option<u64>) -> Result<TraceSummary, TraceError> {
        let most = requests.unwrap_or(u64::MAX);
        let mut summary = TraceSummary {
            requests: 0,
            by_op: PerOp::from_fn(|_| 0),
            distinct_keys: 0.0,
            mean_key_size: 0.0,
            mean_value_size: 0.0,
            largest_value: 0,
            format: self.format(),
            timing: self.timing(),
            duration_s: None,
            peak_rate_s: None,
            skipped: 0,
            ignored: 0,
            whole: false,
            header: self.header().cloned(),
        };
        let (mut distinct, mut chunk) = (DistinctCounter::new(), RequestChunk::new());
        let (mut key_bytes, mut value_bytes, mut with_value) = (0u64, 0u64, 0u64);
        let (mut last_s, mut of_second, mut peak) = (0.0, 0u64, 0u64);
        loop {
            if !self.next_second(ArrivalSpread::Even, &mut chunk)? {
                summary.whole = true;
                break;
            }
            for request in chunk.iter() {
                let op = request.operation.op();
                summary.by_op[op] += 1;
                distinct.add(hash(request.key));
                key_bytes += u64::from(request.key_size);
                if op != Op::Delete {
                    value_bytes += u64::from(request.value_size);
                    with_value += 1;
                    summary.largest_value = summary.largest_value.max(request.value_size);
                }
                of_second = if request.at_s as u64 == last_s as u64 { of_second + 1 } else { 1 };
                peak = peak.max(of_second);
                last_s = request.at_s;
            }
            summary.requests += chunk.len() as u64;
            if summary.requests >= most {
                break;
            }
        }
        let duration_s = match summary.timing {
            TraceTiming::Untimed => None,
            TraceTiming::Seconds => Some(last_s.floor() + 1.0),
            TraceTiming::Exact => Some(last_s),
        };
        (summary.duration_s, summary.peak_rate_s) = (duration_s, duration_s.map(|_| peak));
        (summary.skipped, summary.ignored) = (self.counts().skipped(), self.counts().ignored());
        summary.distinct_keys = distinct.estimate();
        summary.mean_key_size = key_bytes as f64 / summary.requests.max(1) as f64;
        summary.mean_value_size = value_bytes as f64 / with_value.max(1) as f64;
        Ok(summary)
    }
}
