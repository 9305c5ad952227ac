//! What the runs of a cell say about a metric: repeats on both sides, or why there is nothing to
//! judge by.

use std::collections::BTreeMap;

use model::signal::CACHE_HIT_RATIO;
use model::{Distribution, Reading, Run};

use crate::compare::{ComparedCell, comparable};
use crate::interval::NoInterval;
use crate::metric::{DistributionPoint, Metric, MetricError, RunField};
use crate::percentile::samples_needed;
use crate::welch::LogSample;

/// A cell with its runs.
pub(super) struct GateCell<'a> {
    pub(super) compared: &'a ComparedCell,
    pub(super) a: Vec<&'a Run>,
    pub(super) b: Vec<&'a Run>,
}

pub(super) enum Evidence {
    /// The runs have no such metric, and cannot have it.
    Absent(String),
    /// There is nothing to judge by.
    None(String),
    Repeats {
        a: LogSample,
        b: LogSample,
        /// Relative rounding of the values.
        resolution: f64,
    },
}

impl<'a> GateCell<'a> {
    pub(super) fn new(
        compared: &'a ComparedCell,
        runs_a: &BTreeMap<&str, &'a Run>,
        runs_b: &BTreeMap<&str, &'a Run>,
    ) -> GateCell<'a> {
        let found = |ids: &[String], runs: &BTreeMap<&str, &'a Run>| {
            ids.iter().filter_map(|id| runs.get(id.as_str()).copied()).collect()
        };
        let (a, b) = (found(&compared.runs_a, runs_a), found(&compared.runs_b, runs_b));
        GateCell { compared, a, b }
    }

    fn runs(&self) -> impl Iterator<Item = &'a Run> + '_ {
        self.a.iter().chain(&self.b).copied()
    }

    pub(super) fn evidence(&self, metric: &Metric) -> Evidence {
        if let Some(why) = self.absent(metric) {
            return Evidence::Absent(why);
        }
        self.repeats(metric).unwrap_or_else(Evidence::None)
    }

    /// Why no run has the metric. A reading that failed, or a meter that was lost, is no such
    /// reason: what it measures may have become worse.
    fn absent(&self, metric: &Metric) -> Option<String> {
        let can_lack = match metric {
            Metric::Signal(signal) => self.runs().all(|run| run.reading(signal).is_none()),
            Metric::Field(RunField::Power) => false,
            _ => true,
        };
        let values: Vec<_> = self.runs().map(|run| metric.value(run)).collect();
        match values.first() {
            Some(Err(why)) if can_lack && values.iter().all(Result::is_err) => {
                Some(why.to_string())
            }
            _ => None,
        }
    }

    fn repeats(&self, metric: &Metric) -> Result<Evidence, String> {
        let shared = self.a.iter().filter(|run| self.b.iter().any(|other| other.id == run.id));
        if shared.count() > 0 {
            return Err("runs are on both sides, so that nothing is compared".to_owned());
        }
        if let Some(excluded) = self.excluded(metric) {
            return Err(format!("not compared, {excluded}"));
        }
        if !is_of_the_work(metric) && !self.compared.other_work.is_empty() {
            let respects = self.compared.other_work.iter().map(ToString::to_string);
            let respects = respects.collect::<Vec<_>>().join(", ");
            return Err(format!("the sides did different work (A against B: {respects})"));
        }
        if let Metric::Signal(signal) = metric {
            let found: Vec<Option<&Reading>> = self.runs().map(|run| run.reading(signal)).collect();
            comparable(&found).map_err(|why| format!("not compared, {why}"))?;
        }
        for run in self.runs() {
            enough_samples(metric, run).map_err(|why| why.to_string())?;
        }
        let values = |runs: &[&Run]| -> Result<Vec<f64>, MetricError> {
            runs.iter().map(|run| metric.value(run)).collect()
        };
        let (a, b) = (values(&self.a), values(&self.b));
        let (a, b) = (a.map_err(|why| why.to_string())?, b.map_err(|why| why.to_string())?);
        let resolution = match metric {
            Metric::Latency { .. } => Distribution::RESOLUTION,
            _ => 0.0,
        };
        // Nothing on either side, as with errors, is no change.
        let nothing = a.iter().chain(&b).all(|value| *value == 0.0);
        let sample = |values: &[f64]| {
            let ones = vec![1.0; values.len()];
            LogSample::between(if nothing { &ones } else { values }).map_err(|why| match why {
                NoInterval::OneValue => "a side has one run, which says nothing of the variation \
                                         from run to run; repeat each side 5 times or more"
                    .to_owned(),
                why => why.to_string(),
            })
        };
        Ok(Evidence::Repeats { a: sample(&a)?, b: sample(&b)?, resolution })
    }

    /// Why the comparison leaves the metric out.
    fn excluded(&self, metric: &Metric) -> Option<&str> {
        let names = match metric {
            Metric::Field(RunField::Throughput | RunField::AchievedRate) => {
                vec!["throughput".to_owned()]
            }
            Metric::Latency { op, .. } => {
                let of_op = op.map(|op| format!("latency.{op}"));
                std::iter::once("latency".to_owned()).chain(of_op).collect()
            }
            _ => Vec::new(),
        };
        let mut excluded = self.compared.excluded_metrics.iter();
        let found = excluded.find(|excluded| names.contains(&excluded.metric))?;
        Some(&found.reason)
    }
}

/// Whether it says what was done, and not how well.
fn is_of_the_work(metric: &Metric) -> bool {
    match metric {
        Metric::Field(RunField::HitRatio | RunField::Errors | RunField::Misses) => true,
        Metric::Signal(signal) => signal == CACHE_HIT_RATIO.name,
        _ => false,
    }
}

/// Whether the run has the samples that a percentile needs.
fn enough_samples(metric: &Metric, run: &Run) -> Result<(), NoInterval> {
    let Metric::Latency { clock, op, point: DistributionPoint::Percentile(percentile) } = metric
    else {
        return Ok(());
    };
    let needed = samples_needed(*percentile)?;
    let counted = Metric::Latency { clock: *clock, op: *op, point: DistributionPoint::Count };
    let got = counted.value(run).map_or(0, |count| count as u64);
    if got < needed {
        return Err(NoInterval::TooFewSamples { percentile: *percentile, got, needed });
    }
    Ok(())
}
