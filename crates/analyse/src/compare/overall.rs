//! All cells of a comparison together: one ratio a figure, and one sentence.

use super::contrast::{Contrast, Verdict};
use super::metric::{BetterDirection, ComparedMetric};
use super::{ComparedCell, SettingDifference, WorkDifference};
use crate::holm::holm;
use crate::interval::{Interval, IntervalMethod, NoInterval, TAIL};
use crate::quantile::{student, student_tails};

const SIGNIFICANCE: f64 = 0.05;

/// One figure over all cells that have it.
#[derive(Debug, Clone, PartialEq)]
pub struct OverallContrast {
    /// `throughput`, `latency.read.p99`.
    pub metric: String,
    pub cells: usize,
    /// The geometric mean of the cells' ratios b / a.
    pub ratio: f64,
    /// 95 %, not corrected for the other figures, or why there is none.
    pub interval: Result<Interval, NoInterval>,
    /// After Holm's correction for all figures here.
    pub corrected: Option<f64>,
    pub verdict: Verdict,
}

/// Whether the verdict depends on a figure: throughput, p99, and the cost of an operation.
fn is_headline(metric: &ComparedMetric) -> bool {
    match metric {
        ComparedMetric::Throughput => true,
        ComparedMetric::Latency { statistic, .. } => statistic.percentile() == Some(99.0),
        ComparedMetric::Reading { signal, .. } => {
            metric.is_of_the_work()
                || matches!(
                    signal.as_str(),
                    "cpu_s_per_mop" | "ops_per_joule" | "joules_per_op_net"
                )
        }
    }
}

/// Throughput, each operation's p99, CPU and energy of an operation: the mean of the cells'
/// logarithmic ratios, each cell weighing the same.
///
/// With the cells' own standard errors, `se_i = (ln high - ln low) / (2 t(0.975, df_i))`:
/// `se^2 = sum se_i^2 / k^2`, `df = (sum se_i^2)^2 / sum (se_i^4 / df_i)` (Welch and
/// Satterthwaite). No interval where a cell has none. p is corrected by Holm's method.
pub(super) fn overall(cells: &[ComparedCell]) -> Vec<OverallContrast> {
    let mut metrics: Vec<&ComparedMetric> = Vec::new();
    let contrasts = || cells.iter().flat_map(|cell| &cell.contrasts);
    for contrast in contrasts().filter(|contrast| is_headline(&contrast.metric)) {
        if !metrics.contains(&&contrast.metric) {
            metrics.push(&contrast.metric);
        }
    }
    let mut figures: Vec<(OverallContrast, BetterDirection, Option<f64>)> = metrics
        .into_iter()
        .filter_map(|metric| {
            let own: Vec<&Contrast> = contrasts().filter(|c| c.metric == *metric).collect();
            pool(metric, &own)
        })
        .collect();
    let p: Vec<f64> = figures.iter().filter_map(|(.., p)| *p).collect();
    let mut corrected = holm(&p).into_iter();
    // A figure that any cell of other work contributes to has no verdict.
    let of_other_work = |metric: &str| {
        contrasts().any(|c| c.verdict == Verdict::OtherWork && c.metric.to_string() == metric)
    };
    for (overall, wish, p) in &mut figures {
        let other_work = of_other_work(&overall.metric);
        if p.is_none() {
            continue;
        }
        let p = corrected.next().unwrap_or(1.0);
        overall.corrected = Some(p);
        if other_work {
            overall.verdict = Verdict::OtherWork;
            continue;
        }
        overall.verdict = match (p < SIGNIFICANCE, *wish, overall.ratio > 1.0) {
            (false, ..) => Verdict::NoDifference,
            (_, BetterDirection::More, true) | (_, BetterDirection::Less, false) => Verdict::Better,
            (_, BetterDirection::More, false) | (_, BetterDirection::Less, true) => Verdict::Worse,
            (_, BetterDirection::Neither, _) => Verdict::Different,
        };
    }
    figures.into_iter().map(|(overall, ..)| overall).collect()
}

/// None where a ratio is not one.
fn pool(
    metric: &ComparedMetric,
    own: &[&Contrast],
) -> Option<(OverallContrast, BetterDirection, Option<f64>)> {
    let ratios: Vec<f64> = own.iter().map(|c| c.ratio).collect::<Option<_>>()?;
    let k = ratios.len() as f64;
    let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / k;
    let (interval, p) = match pooled_variance(own) {
        Err(why) => (Err(why), None),
        Ok(None) => {
            let method = IntervalMethod::SameRuns;
            (Ok(Interval { low: 1.0, high: 1.0, method }), Some(1.0))
        }
        Ok(Some(PooledVariance { variance, df, within })) => {
            let se = variance.sqrt() / k;
            let half = if se > 0.0 { student(1.0 - TAIL, df) * se } else { 0.0 };
            let p = match (se > 0.0, mean == 0.0) {
                (true, _) => student_tails(mean.abs() / se, df),
                (false, true) => 1.0,
                (false, false) => 0.0,
            };
            let method = if within {
                IntervalMethod::WithinRun { df }
            } else {
                IntervalMethod::BetweenRuns { df }
            };
            let (low, high) = ((mean - half).exp(), (mean + half).exp());
            (Ok(Interval { low, high, method }), Some(p))
        }
    };
    let overall = OverallContrast {
        metric: metric.to_string(),
        cells: own.len(),
        ratio: mean.exp(),
        interval,
        corrected: None,
        verdict: Verdict::NotEnoughData,
    };
    Some((overall, metric.direction(), p))
}

struct PooledVariance {
    /// Sum of the cells' squared standard errors.
    variance: f64,
    df: f64,
    /// A side of a cell had a single run.
    within: bool,
}

/// None where the same runs stand on both sides.
fn pooled_variance(own: &[&Contrast]) -> Result<Option<PooledVariance>, NoInterval> {
    let (mut variance, mut weights, mut within, mut least) = (0.0, 0.0, false, f64::INFINITY);
    for contrast in own {
        let interval = contrast.interval.clone()?;
        let df = match interval.method {
            IntervalMethod::BetweenRuns { df } => df,
            IntervalMethod::WithinRun { df } => {
                within = true;
                df
            }
            IntervalMethod::SameRuns => return Ok(None),
            _ => return Err(NoInterval::NoSeries),
        };
        let half = (interval.high.ln() - interval.low.ln()) / 2.0;
        let se = half / student(1.0 - TAIL, df);
        let square = se * se;
        variance += square;
        weights += square * square / df;
        least = least.min(df);
    }
    let df = if weights > 0.0 { variance * variance / weights } else { least };
    Ok(Some(PooledVariance { variance, df, within }))
}

/// B compared with A in one sentence.
pub(super) fn sentence(
    overall: &[OverallContrast],
    differences: &[SettingDifference],
    other_work: &[WorkDifference],
) -> String {
    let of = |verdict: Verdict| -> Vec<String> {
        overall.iter().filter(|one| one.verdict == verdict).map(figure_text).collect()
    };
    let (better, worse) = (of(Verdict::Better), of(Verdict::Worse));
    let mut same = of(Verdict::NoDifference);
    let unknown = of(Verdict::NotEnoughData);
    let machines = differences.iter().any(|d| d.setting == "machine");
    let sides = if machines { "B's machine" } else { "B" };
    let mut parts = Vec::new();
    let of_other_work = of(Verdict::OtherWork);
    if !other_work.is_empty() {
        let words: Vec<String> = other_work.iter().map(ToString::to_string).collect();
        parts.push(format!("their work differs (A against B: {})", words.join(", ")));
    }
    let head = match (better.is_empty(), worse.is_empty(), same.is_empty()) {
        // First: with different work no figure makes a side the better one.
        _ if !other_work.is_empty() => {
            format!("{sides} and A did different work, and are not comparable")
        }
        (false, true, _) => format!("{sides} is better than A"),
        (true, false, _) => format!("{sides} is worse than A"),
        (false, false, _) => format!("{sides} is better than A in some and worse in other figures"),
        (true, true, false) => format!("no difference between {sides} and A is shown"),
        (true, true, true) => "there is not enough data for a verdict; repeat the runs".to_owned(),
    };
    for (word, figures) in [("better", better), ("worse", worse)] {
        if !figures.is_empty() {
            parts.push(format!("{word} in {}", figures.join(", ")));
        }
    }
    if !same.is_empty() {
        parts.push(format!("no difference shown in {}", std::mem::take(&mut same).join(", ")));
    }
    if !of_other_work.is_empty() {
        parts.push(format!("no verdict on {}", of_other_work.join(", ")));
    }
    if !unknown.is_empty() {
        parts.push(format!("not enough data for {}", unknown.join(", ")));
    }
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join("; ")) };
    format!("{head}{parts}.")
}

/// `throughput (1.31 times, 95 % 1.28 to 1.34, p < 0.001)`.
fn figure_text(one: &OverallContrast) -> String {
    let interval = match &one.interval {
        Ok(i) => format!(", 95 % {:.3} to {:.3}", i.low, i.high),
        Err(_) => String::new(),
    };
    let p = match one.corrected {
        Some(p) if p < 0.001 => ", p < 0.001".to_owned(),
        Some(p) => format!(", p = {p:.3}"),
        None => String::new(),
    };
    format!("{} ({:.3} times{interval}{p})", one.metric, one.ratio)
}
