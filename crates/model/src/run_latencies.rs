//! The latencies of a run, and those of all its operations together.

use std::ops::Deref;

use crate::distribution::{CommonFigures, Distribution, merged_buckets};
use crate::latency_scope::LatencyScope;
use crate::op::Op;
use crate::run::LatencyClock;

/// The latencies of one kind of operation, or of all, by one clock, in nanoseconds, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct RunLatency {
    pub op: LatencyScope,
    pub clock: LatencyClock,
    /// 3 significant digits.
    pub histogram: Distribution,
}

/// One distribution for each kind of operation and clock. The figures of all kinds together are
/// computed once: a page asks each run for them several times.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunLatencies {
    each: Box<[RunLatency]>,
    /// Of the clocks by which several kinds were measured.
    together: Box<[(LatencyClock, u64, CommonFigures)]>,
}

impl From<Vec<RunLatency>> for RunLatencies {
    fn from(each: Vec<RunLatency>) -> RunLatencies {
        let together = LatencyClock::INWARDS.into_iter().filter_map(|clock| {
            let parts: Vec<_> = by(&each, clock).collect();
            (parts.len() > 1).then(|| {
                let samples = crate::total(parts.iter().map(|part| part.len()));
                let figures = CommonFigures::new(samples, merged_buckets(parts));
                (clock, samples, figures)
            })
        });
        let together = together.collect();
        RunLatencies { each: each.into(), together }
    }
}

impl FromIterator<RunLatency> for RunLatencies {
    fn from_iter<I: IntoIterator<Item = RunLatency>>(each: I) -> RunLatencies {
        each.into_iter().collect::<Vec<_>>().into()
    }
}

impl Deref for RunLatencies {
    type Target = [RunLatency];

    fn deref(&self) -> &[RunLatency] {
        &self.each
    }
}

impl<'r> IntoIterator for &'r RunLatencies {
    type Item = &'r RunLatency;
    type IntoIter = std::slice::Iter<'r, RunLatency>;

    fn into_iter(self) -> Self::IntoIter {
        self.each.iter()
    }
}

impl RunLatencies {
    /// Of each kind of operation and clock, to move buckets: figures must stay.
    pub fn each_mut(&mut self) -> &mut [RunLatency] {
        &mut self.each
    }

    /// Of all operations by one clock, whether or not their kinds were distinguished. None without
    /// a sample.
    pub fn of_all(&self, clock: LatencyClock) -> Option<LatencyStatistics<'_>> {
        let together = self.together.iter().find(|(of, ..)| *of == clock);
        let Some((_, samples, figures)) = together else {
            return self.each.iter().find(|latency| latency.clock == clock)?.statistics();
        };
        let all = LatencyStatistics { each: &self.each, clock, samples: *samples, figures };
        (*samples > 0).then_some(all)
    }

    /// Of one kind of operation by one clock. None without a sample.
    pub fn of(&self, op: Op, clock: LatencyClock) -> Option<LatencyStatistics<'_>> {
        let is_it = |latency: &&RunLatency| latency.op == op.into() && latency.clock == clock;
        self.each.iter().find(is_it)?.statistics()
    }
}

impl RunLatency {
    fn statistics(&self) -> Option<LatencyStatistics<'_>> {
        (!self.histogram.is_empty()).then(|| LatencyStatistics {
            each: std::slice::from_ref(self),
            clock: self.clock,
            samples: self.histogram.len(),
            figures: self.histogram.figures(),
        })
    }
}

fn by(each: &[RunLatency], clock: LatencyClock) -> impl Iterator<Item = &Distribution> {
    each.iter().filter(move |latency| latency.clock == clock).map(|latency| &latency.histogram)
}

/// Statistics of one or of all kinds of operation of a run by one clock, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct LatencyStatistics<'r> {
    each: &'r [RunLatency],
    clock: LatencyClock,
    samples: u64,
    figures: &'r CommonFigures,
}

impl LatencyStatistics<'_> {
    /// The number of samples, at least one.
    pub fn count(&self) -> u64 {
        self.samples
    }

    pub fn mean(&self) -> f64 {
        self.figures.mean
    }

    pub fn min(&self) -> u64 {
        self.figures.min
    }

    pub fn max(&self) -> u64 {
        self.figures.max
    }

    pub fn value_at_percentile(&self, percentile: f64) -> u64 {
        self.figures.common(percentile).unwrap_or_else(|| {
            Distribution::merged(by(self.each, self.clock)).value_at_percentile(percentile)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(op: Op, clock: LatencyClock, values: &[u64]) -> RunLatency {
        let mut histogram = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        values.iter().for_each(|value| histogram.record(*value).unwrap());
        RunLatency { op: op.into(), clock, histogram: histogram.into() }
    }

    #[test]
    fn all_operations_are_the_sum_of_their_kinds() {
        use LatencyClock::{Arrival, Response, Server, Service};
        let (reads, updates) = ([10, 20, 30, 5_000], [15, 900_000]);
        let latencies = RunLatencies::from(vec![
            latency(Op::Read, Response, &reads),
            latency(Op::Update, Response, &updates),
            latency(Op::Read, Service, &reads),
            latency(Op::Read, Arrival, &[]),
        ]);
        let sum = latency(Op::Read, Response, &[reads.to_vec(), updates.to_vec()].concat());
        for (clock, whole) in [(Response, &sum), (Service, &latencies[2])] {
            let all = latencies.of_all(clock).unwrap();
            let whole = &whole.histogram;
            assert_eq!(all.count(), whole.len());
            assert_eq!(
                (all.mean(), all.min(), all.max()),
                (whole.mean(), whole.min(), whole.max())
            );
            for percentile in [0.0, 33.0, 50.0, 99.0, 99.5, 100.0] {
                let of_whole = whole.value_at_percentile(percentile);
                assert_eq!(all.value_at_percentile(percentile), of_whole, "{percentile}");
            }
        }
        assert!(latencies.of_all(Arrival).is_none() && latencies.of_all(Server).is_none());
    }
}
