//! Inter-arrival times, and the family of arrivals that fits them best.

use hdrhistogram::Histogram;
use serde::Serialize;

/// How much nearer another family must be than the simpler one.
const NEARER: f64 = 0.01;

/// Inter-arrival times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InterArrivalSummary {
    /// Exact; the percentiles are within 0.1 %.
    pub mean_s: f64,
    pub p50_s: f64,
    pub p99_s: f64,
    /// Standard deviation divided by the mean: 1 for Poisson arrivals.
    pub coefficient_of_variation: f64,
    /// As `--arrivals` names it.
    pub family: String,
    /// Kolmogorov-Smirnov distance of the times from it.
    pub distance: f64,
}

#[derive(Debug)]
pub(super) struct InterArrivals {
    histogram: Option<Histogram<u64>>,
    last_ns: Option<u64>,
    sum: f64,
    squares: f64,
}

impl InterArrivals {
    pub fn new() -> InterArrivals {
        let histogram = Histogram::new(3).ok();
        InterArrivals { histogram, last_ns: None, sum: 0.0, squares: 0.0 }
    }

    #[inline]
    pub fn add(&mut self, at_ns: u64) {
        if let Some(last) = self.last_ns.replace(at_ns)
            && let Some(histogram) = &mut self.histogram
        {
            let gap = at_ns.saturating_sub(last);
            if histogram.record(gap).is_ok() {
                self.sum += gap as f64;
                self.squares += gap as f64 * gap as f64;
            }
        }
    }

    /// `None` where all requests have the same time.
    pub fn summary(self) -> Option<InterArrivalSummary> {
        let histogram = self.histogram?;
        let count = histogram.len() as f64;
        let mean = self.sum / count;
        if count == 0.0 || mean == 0.0 {
            return None;
        }
        let variance = (self.squares / count - mean * mean).max(0.0);
        let distance = |law: &dyn Fn(f64) -> f64| distance(&histogram, law);
        let exponential = distance(&|x| -(-x / mean).exp_m1());
        // A generalised Pareto distribution of that mean, its shape where the distance is least.
        let pareto = |shape: f64| {
            let scale = mean * (1.0 - shape);
            distance(&|x| 1.0 - (1.0 + shape * x / scale).powf(-1.0 / shape))
        };
        let shapes = (1..=95).map(|percent| f64::from(percent) / 100.0);
        let nearest = shapes
            .map(|shape| (pareto(shape), shape))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((1.0, 0.5));
        // As constant as the histogram can tell.
        let below = histogram.count_between(0, (mean * 0.998) as u64);
        let above = histogram.len() - histogram.count_between(0, (mean * 1.002) as u64);
        let constant = below.max(above) as f64 / count;
        let (mut family, mut best) = ("poisson".to_owned(), exponential);
        if constant < best - NEARER {
            (family, best) = ("constant".to_owned(), constant);
        }
        if nearest.0 < best - NEARER {
            (family, best) = (format!("pareto:{}", nearest.1), nearest.0);
        }
        let percentile = |share: f64| histogram.value_at_quantile(share) as f64 * 1e-9;
        Some(InterArrivalSummary {
            mean_s: mean * 1e-9,
            p50_s: percentile(0.5),
            p99_s: percentile(0.99),
            coefficient_of_variation: variance.sqrt() / mean,
            family,
            distance: best,
        })
    }
}

/// The greatest difference of the two distributions, at both ends of each bucket.
fn distance(histogram: &Histogram<u64>, law: &dyn Fn(f64) -> f64) -> f64 {
    let (mut below, mut most) = (0u64, 0.0f64);
    let count = histogram.len() as f64;
    for step in histogram.iter_recorded() {
        let value = step.value_iterated_to();
        let low = histogram.lowest_equivalent(value).saturating_sub(1);
        most = most.max((below as f64 / count - law(low as f64)).abs());
        below += step.count_since_last_iteration();
        most = most.max((below as f64 / count - law(value as f64)).abs());
    }
    most
}
