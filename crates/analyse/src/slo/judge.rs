//! Whether distributions meet an objective, with the confidence of their samples.

use hdrhistogram::Histogram;
use model::{LatencyClock, RunLatency, distribution};

use super::{Condition, LatencyFigure, LimitRelation, Objective};
use crate::interval::{Interval, IntervalMethod, NoInterval, TAIL};
use crate::percentile::percentile_interval;
use crate::quantile::{binomial, student};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectiveVerdict {
    /// The whole interval is within the limit.
    Holds,
    /// The whole interval exceeds it.
    Breaks,
    /// The interval covers the limit, or the samples are too few for one.
    Unclear,
}

/// The result of one condition. Times in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionResult {
    pub condition: Condition,
    /// None without a sample.
    pub measured_ns: Option<f64>,
    pub samples: u64,
    /// The 95 % interval of the measured value.
    pub interval: Result<Interval, NoInterval>,
    pub verdict: ObjectiveVerdict,
}

impl ConditionResult {
    /// The same measurement against a limit that is so many times as high.
    ///
    /// Without an interval it is unclear, but that what broke breaks a lower limit too.
    pub fn with_limit_times(&self, factor: f64) -> ConditionResult {
        let limit = self.condition.limit.mul_f64(factor);
        let condition = Condition { limit, ..self.condition };
        let verdict = match &self.interval {
            Ok(interval) => condition.verdict(interval),
            Err(_) if self.verdict == ObjectiveVerdict::Breaks && factor <= 1.0 => self.verdict,
            Err(_) => ObjectiveVerdict::Unclear,
        };
        ConditionResult { condition, verdict, ..self.clone() }
    }
}

/// An objective's results, one a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    pub results: Vec<ConditionResult>,
}

impl Judgement {
    /// Breaks if any condition breaks, holds if all hold.
    pub fn verdict(&self) -> ObjectiveVerdict {
        let any = |verdict| self.results.iter().any(|finding| finding.verdict == verdict);
        if any(ObjectiveVerdict::Breaks) {
            ObjectiveVerdict::Breaks
        } else if any(ObjectiveVerdict::Unclear) {
            ObjectiveVerdict::Unclear
        } else {
            ObjectiveVerdict::Holds
        }
    }

    /// The factor of samples that is needed for every condition to have an interval; 1 if all have
    /// one, None if a condition has no sample at all.
    pub fn samples_lacking(&self) -> Option<f64> {
        let lacking = |finding: &ConditionResult| match finding.interval {
            _ if finding.samples == 0 => None,
            Err(NoInterval::TooFewSamples { got, needed, .. }) => Some(needed as f64 / got as f64),
            Err(NoInterval::OneValue) => Some(2.0),
            _ => Some(1.0),
        };
        self.results.iter().try_fold(1.0_f64, |most, finding| Some(most.max(lacking(finding)?)))
    }
}

impl Objective {
    /// Judges latencies by one clock: for an objective on what users wait for that is
    /// [`LatencyClock::Response`]. A condition without an operation is about all of them together.
    ///
    /// Intervals: percentiles by order statistics ([`percentile_interval`]), the mean by
    /// Student's t. Both take the samples as independent; requests that wait behind each other
    /// are not, so a run close to the limit says less than its interval does.
    pub fn judge(&self, latencies: &[RunLatency], clock: LatencyClock) -> Judgement {
        let finding = |condition: &Condition| {
            let matching = latencies.iter().filter(|latency| {
                latency.clock == clock && condition.op.is_none_or(|op| latency.op.op() == Some(op))
            });
            let all = distribution::sum(matching.map(|latency| &latency.histogram));
            condition.judge(Some(&all).filter(|histogram| !histogram.is_empty()))
        };
        Judgement { results: self.conditions.iter().map(finding).collect() }
    }
}

impl Condition {
    /// None: there is no sample.
    fn judge(&self, histogram: Option<&Histogram<u64>>) -> ConditionResult {
        let Some(histogram) = histogram else {
            let interval = Err(match self.figure {
                LatencyFigure::Mean => NoInterval::TooFewValues { got: 0, needed: 2 },
                LatencyFigure::Percentile(percentile) => too_few(percentile, 0),
            });
            return self.result(None, 0, interval, ObjectiveVerdict::Unclear);
        };
        let (measured, interval) = match self.figure {
            LatencyFigure::Mean => (histogram.mean(), mean_interval(histogram)),
            LatencyFigure::Percentile(percentile) => (
                histogram.value_at_percentile(percentile) as f64,
                percentile_interval(histogram, percentile),
            ),
        };
        let verdict = match (&interval, self.figure) {
            (Ok(interval), _) => self.verdict(interval),
            // Too few samples for an interval, but enough slow ones to decide.
            (Err(_), LatencyFigure::Percentile(percentile))
                if self.is_exceeded(histogram, percentile) =>
            {
                ObjectiveVerdict::Breaks
            }
            (Err(_), _) => ObjectiveVerdict::Unclear,
        };
        self.result(Some(measured), histogram.len(), interval, verdict)
    }

    fn result(
        &self,
        measured_ns: Option<f64>,
        samples: u64,
        interval: Result<Interval, NoInterval>,
        verdict: ObjectiveVerdict,
    ) -> ConditionResult {
        ConditionResult { condition: *self, measured_ns, samples, interval, verdict }
    }

    fn is_met(&self, nanoseconds: f64) -> bool {
        match self.relation {
            LimitRelation::Below => nanoseconds < self.limit_ns(),
            LimitRelation::AtMost => nanoseconds <= self.limit_ns(),
        }
    }

    fn verdict(&self, interval: &Interval) -> ObjectiveVerdict {
        match (self.is_met(interval.low), self.is_met(interval.high)) {
            (true, true) => ObjectiveVerdict::Holds,
            (false, false) => ObjectiveVerdict::Breaks,
            _ => ObjectiveVerdict::Unclear,
        }
    }

    /// Whether more samples exceed the limit than would in 97.5 of 100 cases if the percentile met
    /// it: Binomial(n, 1 - percentile / 100).
    fn is_exceeded(&self, histogram: &Histogram<u64>, percentile: f64) -> bool {
        let n = histogram.len();
        let limit = u64::try_from(self.limit.as_nanos()).unwrap_or(u64::MAX);
        let above = n - histogram.count_between(0, limit).min(n);
        above > binomial(1.0 - TAIL, n, 1.0 - percentile / 100.0)
    }
}

fn too_few(percentile: f64, got: u64) -> NoInterval {
    match crate::percentile::samples_needed(percentile) {
        Ok(needed) => NoInterval::TooFewSamples { percentile, got, needed },
        Err(why) => why,
    }
}

/// Student's t around the mean of all samples.
fn mean_interval(histogram: &Histogram<u64>) -> Result<Interval, NoInterval> {
    let n = histogram.len() as f64;
    if n < 2.0 {
        return Err(NoInterval::OneValue);
    }
    let df = n - 1.0;
    // The histogram's deviation divides by n.
    let half = student(1.0 - TAIL, df) * histogram.stdev() / df.sqrt();
    let mean = histogram.mean();
    Ok(Interval { low: mean - half, high: mean + half, method: IntervalMethod::StudentT { df } })
}

#[cfg(test)]
mod tests {
    use model::LatencyScope;
    use model::Op;

    use super::*;

    fn latency(
        op: impl Into<LatencyScope>,
        clock: LatencyClock,
        values: &[(u64, u64)],
    ) -> RunLatency {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        values.iter().for_each(|(value, count)| histogram.record_n(*value, *count).unwrap());
        RunLatency { op: op.into(), clock, histogram: histogram.into() }
    }

    fn judged(objective: &str, latencies: &[RunLatency]) -> Judgement {
        objective.parse::<Objective>().unwrap().judge(latencies, LatencyClock::Response)
    }

    #[test]
    fn the_interval_decides() {
        // 10,000 samples of which `slow` are above 1 ms: the 99th percentile is sure to be
        // below with 50 of them, above with 150, and within the noise with 100.
        for (slow, verdict) in [
            (50, ObjectiveVerdict::Holds),
            (150, ObjectiveVerdict::Breaks),
            (100, ObjectiveVerdict::Unclear),
        ] {
            let response = [(100_000, 10_000 - slow), (5_000_000, slow)];
            let all = [
                latency(Op::Read, LatencyClock::Response, &response),
                latency(Op::Read, LatencyClock::Service, &[(1, 10_000)]),
            ];
            let judgement = judged("p99<1ms", &all);
            assert_eq!(judgement.verdict(), verdict, "{slow}");
            assert_eq!(judgement.results[0].samples, 10_000);
            assert_eq!(judgement.samples_lacking(), Some(1.0));
        }
    }

    #[test]
    fn every_condition_is_judged_on_its_own_operation() {
        let all = [
            latency(Op::Read, LatencyClock::Response, &[(100_000, 9_000)]),
            latency(Op::Update, LatencyClock::Response, &[(3_000_000, 1_000)]),
        ];
        let verdicts = |objective: &str| -> Vec<ObjectiveVerdict> {
            judged(objective, &all).results.iter().map(|finding| finding.verdict).collect()
        };
        use ObjectiveVerdict::{Breaks, Holds, Unclear};
        assert_eq!(verdicts("read.p99<1ms,update.p99<1ms"), [Holds, Breaks]);
        assert_eq!(verdicts("p50<1ms,p99<1ms,mean<1ms"), [Holds, Breaks, Holds]);
        assert_eq!(verdicts("scan.p99<1ms"), [Unclear]);
        assert_eq!(judged("scan.p99<1ms", &all).samples_lacking(), None);
        assert_eq!(judged("read.p99<1ms,update.p99<1ms", &all).verdict(), Breaks);
        assert_eq!(judged("read.p99<1ms,scan.p99<1ms", &all).verdict(), Unclear);
    }

    #[test]
    fn below_is_not_at_most() {
        let all = [latency(Op::Read, LatencyClock::Response, &[(1_000, 1_000)])];
        assert_eq!(judged("p50<1us", &all).verdict(), ObjectiveVerdict::Breaks);
        assert_eq!(judged("p50<=1us", &all).verdict(), ObjectiveVerdict::Holds);
        // The interval of a mean without spread is the mean.
        assert_eq!(judged("mean<=1us", &all).verdict(), ObjectiveVerdict::Holds);
    }

    #[test]
    fn few_samples_can_break_but_not_hold() {
        let few = |value| [latency(Op::Read, LatencyClock::Response, &[(value, 40)])];
        assert_eq!(judged("p99<1ms", &few(10_000)).verdict(), ObjectiveVerdict::Unclear);
        assert_eq!(judged("p99<1ms", &few(10_000)).samples_lacking(), Some(368.0 / 40.0));
        assert_eq!(judged("p99<1ms", &few(9_000_000)).verdict(), ObjectiveVerdict::Breaks);
        // Two of forty above the limit: not unheard of at p99.
        let two = [latency(Op::Read, LatencyClock::Response, &[(10_000, 38), (9_000_000, 2)])];
        assert_eq!(judged("p99<1ms", &two).verdict(), ObjectiveVerdict::Unclear);
    }

    #[test]
    fn mean_is_judged_by_its_standard_error() {
        // Mean 100 us, standard deviation 50 us, of 10,000: +- 0.98 us.
        let all = [latency(Op::Read, LatencyClock::Response, &[(50_000, 5_000), (150_000, 5_000)])];
        let judgement = judged("mean<102us", &all);
        let interval = judgement.results[0].interval.clone().unwrap();
        assert!((interval.high - interval.low - 1_960.0).abs() < 20.0, "{interval:?}");
        assert_eq!(judgement.verdict(), ObjectiveVerdict::Holds);
        assert_eq!(judged("mean<100.5us", &all).verdict(), ObjectiveVerdict::Unclear);
        assert_eq!(judged("mean<98us", &all).verdict(), ObjectiveVerdict::Breaks);
    }
}
