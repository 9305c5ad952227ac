//! Operations with the sizes and expiries of their keys and values.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use model::{Expiry, Op};
use serde::Serialize;

use crate::trace::{TraceOp, TraceRecord};

/// Sizes in bytes, or times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizeSummary {
    /// Requests that say one, their mean, minimum and maximum: exact. The percentiles are within 0.1 %.
    pub requests: u64,
    pub mean: f64,
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub max: u64,
}

/// An operation of the trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationSummary {
    pub operation: &'static str,
    /// Exact.
    pub requests: u64,
    pub share: f64,
    /// None where the trace does not say them.
    pub key_bytes: Option<SizeSummary>,
    pub value_bytes: Option<SizeSummary>,
    /// Seconds until what is written expires, where it does.
    pub ttl_s: Option<SizeSummary>,
    /// Writes that never expire, and that expire at once.
    pub never_expires: u64,
    pub expires_at_once: u64,
}

/// Numbers with their histogram, which is made with the first one.
#[derive(Debug, Default)]
struct Sizes {
    histogram: Option<Box<Histogram<u64>>>,
    sum: u64,
    min: u64,
    max: u64,
}

impl Sizes {
    #[inline]
    fn add(&mut self, size: u64) {
        if self.histogram.is_none() {
            self.histogram = Histogram::new(3).ok().map(Box::new);
            self.min = u64::MAX;
        }
        if let Some(histogram) = &mut self.histogram
            && histogram.record(size).is_ok()
        {
            self.sum += size;
            self.min = self.min.min(size);
            self.max = self.max.max(size);
        }
    }

    fn count(&self, counts: &mut BTreeMap<u64, u64>, without_zero: bool) {
        let recorded = self.histogram.iter().flat_map(|histogram| histogram.iter_recorded());
        for bucket in recorded {
            // The upper end of a bucket that is 0.1 % wide.
            let bytes = bucket.value_iterated_to().clamp(self.min, self.max);
            if bytes > 0 || !without_zero {
                *counts.entry(bytes).or_insert(0) += bucket.count_at_value();
            }
        }
    }

    fn summary(&self) -> Option<SizeSummary> {
        let histogram = self.histogram.as_ref()?;
        let percentile = |share| histogram.value_at_quantile(share).clamp(self.min, self.max);
        Some(SizeSummary {
            requests: histogram.len(),
            mean: self.sum as f64 / histogram.len() as f64,
            min: self.min,
            p50: percentile(0.5),
            p90: percentile(0.9),
            p99: percentile(0.99),
            max: self.max,
        })
    }
}

#[derive(Debug, Default)]
struct OfOperation {
    requests: u64,
    keys: Sizes,
    values: Sizes,
    ttls: Sizes,
    never: u64,
    at_once: u64,
}

/// Sizes with the number of requests.
pub(super) type SizeCounts = Vec<(u64, u64)>;

/// Every operation of the trace.
#[derive(Debug, Default)]
pub(super) struct Operations([OfOperation; 12]);

impl Operations {
    #[inline]
    pub fn add(&mut self, record: &TraceRecord<'_>, key_bytes: Option<u64>) {
        let of = &mut self.0[record.operation as usize];
        of.requests += 1;
        if let Some(bytes) = key_bytes {
            of.keys.add(bytes);
        }
        if let Some(bytes) = record.value_size {
            of.values.add(u64::from(bytes));
        }
        match record.expiry.filter(|_| record.operation.op() == Op::Update) {
            None => {}
            Some(Expiry::Never) => of.never += 1,
            Some(Expiry::AtOnce) => of.at_once += 1,
            Some(Expiry::After(seconds)) => of.ttls.add(u64::from(seconds)),
        }
    }

    /// `(bytes, requests)` of keys and of values, rising. A read of 0 B was a miss.
    pub fn size_counts(&self) -> (SizeCounts, SizeCounts) {
        let (mut keys, mut values) = (BTreeMap::new(), BTreeMap::new());
        let operations = TraceOp::MEMCACHED.into_iter().chain([TraceOp::Seek]);
        for operation in operations {
            let of = &self.0[operation as usize];
            let reads = matches!(operation.op(), Op::Read | Op::Scan);
            of.keys.count(&mut keys, false);
            of.values.count(&mut values, reads);
        }
        (keys.into_iter().collect(), values.into_iter().collect())
    }

    /// `(seconds, writes)` of the writes that expire, rising, and how many never do. A write that
    /// expires at once counts as one second.
    pub fn ttl_counts(&self) -> (SizeCounts, u64) {
        let (mut counts, mut never) = (BTreeMap::new(), 0);
        for of in &self.0 {
            of.ttls.count(&mut counts, true);
            if of.at_once > 0 {
                *counts.entry(1).or_insert(0) += of.at_once;
            }
            never += of.never;
        }
        (counts.into_iter().collect(), never)
    }

    /// Those that occur.
    pub fn summaries(&self) -> Vec<OperationSummary> {
        let all: u64 = self.0.iter().map(|of| of.requests).sum();
        let operations = TraceOp::MEMCACHED.into_iter().chain([TraceOp::Seek]);
        let occurring = operations.map(|operation| (operation, &self.0[operation as usize]));
        let summaries =
            occurring.filter(|(_, of)| of.requests > 0).map(|(operation, of)| OperationSummary {
                operation: operation.name(),
                requests: of.requests,
                share: of.requests as f64 / all as f64,
                key_bytes: of.keys.summary(),
                value_bytes: of.values.summary(),
                ttl_s: of.ttls.summary(),
                never_expires: of.never,
                expires_at_once: of.at_once,
            });
        summaries.collect()
    }
}
