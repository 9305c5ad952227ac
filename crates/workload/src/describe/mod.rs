//! What a trace requests, in one pass and bounded memory.
//!
//! [`Describer`] takes the requests of a [`TraceRecords`]. Counts, sizes and times are exact.
//! Popularity and reuse come from a sample of keys with all of their requests, and are exact where
//! the sample holds every key; keys are told apart by a hash of 64 bits.

mod burstiness;
mod drift;
mod inter_arrival;
mod key_sample;
mod miss_ratio;
mod popularity;
mod prefixes;
mod recency;
mod sizes;
mod tables;
mod timeline;
mod weights;
mod zipf_fit;

use model::Op;
use serde::Serialize;

pub use burstiness::Dispersion;
pub use drift::{Drift, DriftDistance};
pub use inter_arrival::InterArrivalSummary;
pub use key_sample::MOST_SAMPLED_KEYS;
pub(crate) use key_sample::{CacheAccess, KeySample};
pub use miss_ratio::{MissRatioCurve, MissRatioPoint};
pub use popularity::{PopularitySummary, RankPoint};
pub use prefixes::PrefixSummary;
pub use sizes::{OperationSummary, SizeSummary};
pub use tables::EmpiricalTables;
pub(crate) use tables::by_step;
pub use timeline::TimelinePoint;
pub use zipf_fit::ZipfFit;

use crate::trace::{TraceError, TraceKey, TraceRecord, TraceRecords, TraceTiming};
use burstiness::Burstiness;
use drift::PopularSets;
use inter_arrival::InterArrivals;
use prefixes::Prefixes;
use sizes::Operations;
use timeline::Timeline;

/// Nanoseconds of a second and of the first intervals.
const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;
/// The first intervals of a trace without times, in requests.
const REQUESTS: u64 = 1024;

/// A number that is exact, or estimated with its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    pub value: f64,
    pub exact: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
}

impl Figure {
    /// `None`: exact.
    fn new(value: f64, standard_error: Option<f64>) -> Figure {
        Figure { value, exact: standard_error.is_none(), standard_error }
    }
}

/// What a trace requests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceDescription {
    /// Exact.
    pub requests: u64,
    pub reads: u64,
    /// Seconds from the first to the last request, both seconds included where times are whole
    /// ones. None where the trace has no times.
    pub duration_s: Option<f64>,
    pub mean_rate_ops_s: Option<f64>,
    pub operations: Vec<OperationSummary>,
    pub keys: Figure,
    pub popularity: PopularitySummary,
    /// None where nothing is read.
    pub miss_ratio: Option<MissRatioCurve>,
    /// None where the trace is too short to say.
    pub drift: Option<Drift>,
    /// None where keys are numbers.
    pub prefixes: Option<PrefixSummary>,
    /// None where the times of the trace do not say it.
    pub inter_arrival: Option<InterArrivalSummary>,
    pub dispersion: Vec<Dispersion>,
    pub timeline: Vec<TimelinePoint>,
    /// What a workload file is made from.
    #[serde(skip)]
    pub tables: EmpiricalTables,
}

/// Takes requests and describes them.
#[derive(Debug)]
pub struct Describer {
    timing: TraceTiming,
    requests: u64,
    first_ns: Option<u64>,
    /// After the first.
    last_ns: u64,
    operations: Operations,
    sample: KeySample,
    popular: PopularSets,
    prefixes: Prefixes,
    inter_arrivals: InterArrivals,
    burstiness: Burstiness,
    timeline: Timeline,
}

impl Describer {
    /// `sampled_keys`: how many keys are counted one by one, [`MOST_SAMPLED_KEYS`] as a rule. It
    /// takes some 150 B for each.
    pub fn new(timing: TraceTiming, sampled_keys: usize) -> Describer {
        let interval = match timing {
            TraceTiming::Seconds => SECOND,
            TraceTiming::Exact => MILLISECOND,
            TraceTiming::Untimed => REQUESTS,
        };
        Describer {
            timing,
            requests: 0,
            first_ns: None,
            last_ns: 0,
            operations: Operations::default(),
            sample: KeySample::new(sampled_keys.max(1)),
            popular: PopularSets::new(),
            prefixes: Prefixes::default(),
            inter_arrivals: InterArrivals::new(),
            burstiness: Burstiness::new(timing == TraceTiming::Seconds),
            timeline: Timeline::new(interval),
        }
    }

    /// The next request.
    #[inline]
    pub fn add(&mut self, record: &TraceRecord<'_>) {
        let key_bytes = match (record.key_size, record.key) {
            (Some(size), _) => Some(u64::from(size)),
            (None, TraceKey::Bytes(key)) => Some(key.len() as u64),
            (None, TraceKey::Number(_)) => None,
        };
        let hash = record.key.hash();
        let value_bytes = record.value_size.map(u64::from);
        let bytes = key_bytes.unwrap_or(0) + value_bytes.unwrap_or(0);
        self.operations.add(record, key_bytes);
        let access = match record.operation.op() {
            Op::Read | Op::Scan => CacheAccess::Read,
            Op::Delete => CacheAccess::Delete,
            _ => CacheAccess::Write,
        };
        // A read without a size, or of 0 B, was a miss when it was recorded.
        let of_item = value_bytes.filter(|size| *size > 0 || access == CacheAccess::Write);
        self.sample.request(hash, access, key_bytes.unwrap_or(0), of_item);
        self.popular.add(hash);
        self.prefixes.add(record.key);
        let first = *self.first_ns.get_or_insert(record.at_ns);
        self.last_ns = record.at_ns.saturating_sub(first);
        match self.timing {
            TraceTiming::Untimed => {}
            // The first second may have begun before the trace, and the last one end after it.
            TraceTiming::Seconds if self.last_ns < SECOND => {}
            TraceTiming::Seconds => self.burstiness.add(self.last_ns - SECOND),
            TraceTiming::Exact => {
                self.inter_arrivals.add(record.at_ns);
                self.burstiness.add(self.last_ns);
            }
        }
        let at = if self.timing == TraceTiming::Untimed { self.requests } else { self.last_ns };
        self.timeline.add(at, bytes, hash, self.sample.all_keys());
        self.requests += 1;
    }

    /// The description of what was taken.
    pub fn finish(self) -> TraceDescription {
        let end_ns = match self.timing {
            TraceTiming::Seconds => self.last_ns + SECOND,
            TraceTiming::Exact | TraceTiming::Untimed => self.last_ns,
        };
        let timed = self.timing != TraceTiming::Untimed;
        let duration_s = timed.then_some(end_ns as f64 / SECOND as f64);
        let whole_ns = match self.timing {
            TraceTiming::Seconds => self.last_ns.saturating_sub(SECOND),
            TraceTiming::Exact | TraceTiming::Untimed => self.last_ns,
        };
        let all = self.sample.all_keys();
        let error = all / (self.sample.len() as f64).sqrt();
        let keys = Figure::new(all, (!self.sample.is_whole()).then_some(error));
        TraceDescription {
            requests: self.requests,
            reads: self.sample.reads,
            duration_s,
            mean_rate_ops_s: duration_s
                .filter(|seconds| *seconds > 0.0)
                .map(|seconds| self.requests as f64 / seconds),
            operations: self.operations.summaries(),
            tables: EmpiricalTables::of(&self.sample, &self.operations),
            keys,
            popularity: PopularitySummary::of(&self.sample),
            miss_ratio: MissRatioCurve::of(&self.sample, keys),
            drift: self.popular.drift(),
            prefixes: self.prefixes.summary(),
            inter_arrival: if self.timing == TraceTiming::Exact {
                self.inter_arrivals.summary()
            } else {
                None
            },
            dispersion: if timed { self.burstiness.indices(whole_ns) } else { Vec::new() },
            timeline: match timed {
                true => self.timeline.points(SECOND as f64, end_ns),
                false => self.timeline.points(1.0, self.requests),
            },
        }
    }
}

/// Describes all requests of a trace. `progress` is told how many there were, now and then.
///
/// # Errors
/// As [`TraceRecords::next`].
pub fn describe(
    records: &mut TraceRecords,
    mut progress: impl FnMut(u64),
) -> Result<TraceDescription, TraceError> {
    const OFTEN: u64 = 1 << 18;
    let mut describer = Describer::new(records.timing(), MOST_SAMPLED_KEYS);
    while let Some(record) = records.next()? {
        describer.add(&record);
        if describer.requests.is_multiple_of(OFTEN) {
            progress(describer.requests);
        }
    }
    Ok(describer.finish())
}
