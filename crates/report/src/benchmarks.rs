//! Results for services that keep benchmarks over time: one value a metric of each cell.
//!
//! Sources: the Bencher Metric Format (bencher.dev/docs/reference/bencher-metric-format, 2024-05),
//! and the custom benchmarks of github-action-benchmark (its README, v1).

use analyse::{
    BetterDirection, Description, DistributionPoint, Metric, describe_by_median, samples_needed,
};
use model::signal::{CPU_S_PER_MOP, JOULES_PER_OP_NET, OPS_PER_JOULE};
use model::{Execution, Phase, Run};
use serde_json::{Map, Value, json};

use crate::cells::{self, CellKey, PacingKey, ReportCell, ReportFactor};

/// A format of such a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchmarkFormat {
    /// Bencher Metric Format: an object of benchmarks, each an object of measures.
    Bencher,
    /// github-action-benchmark's `customSmallerIsBetter`: an array.
    GithubSmaller,
    /// Its `customBiggerIsBetter`.
    GithubBigger,
}

impl BenchmarkFormat {
    pub const ALL: [BenchmarkFormat; 3] =
        [BenchmarkFormat::Bencher, BenchmarkFormat::GithubSmaller, BenchmarkFormat::GithubBigger];

    /// After `--format`.
    pub const fn name(self) -> &'static str {
        match self {
            BenchmarkFormat::Bencher => "bencher",
            BenchmarkFormat::GithubSmaller => "github-smaller-is-better",
            BenchmarkFormat::GithubBigger => "github-bigger-is-better",
        }
    }

    pub fn from_name(name: &str) -> Option<BenchmarkFormat> {
        BenchmarkFormat::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The valid runs in this format: medians over the repeats of each cell with their 95 %
    /// intervals. Load phases and trials are left out.
    pub fn of(self, runs: &[(&Execution, &Run)]) -> Value {
        let counts = |run: &&(&Execution, &Run)| {
            run.1.valid() && run.1.phase != Phase::Load && !run.1.is_trial()
        };
        let runs: Vec<(&Execution, &Run)> = runs.iter().filter(counts).copied().collect();
        // Repeats of several executions are of one cell where nothing but the time differs.
        let mut cells = cells::group_within(
            &runs,
            |execution| &execution.machine.id,
            |run| Some(CellKey::new(run, PacingKey::of(&run.pacing), &[])),
        );
        cells::disambiguate(&mut cells, &ReportFactor::Pacing);
        let cells: Vec<(String, Vec<Figure>)> =
            cells.iter().map(|cell| (cells::title(cell), figures(cell))).collect();
        match self {
            BenchmarkFormat::Bencher => bencher(&cells),
            BenchmarkFormat::GithubSmaller => github(&cells, BetterDirection::Less),
            BenchmarkFormat::GithubBigger => github(&cells, BetterDirection::More),
        }
    }
}

/// A metric of a cell.
struct Figure {
    name: String,
    unit: &'static str,
    direction: BetterDirection,
    described: Description,
    version: String,
}

/// Throughput, latencies and the cost of an operation; of a bench or a simulation all readings
/// that are better in one direction.
fn figures(cell: &ReportCell<'_>) -> Vec<Figure> {
    let Some(first) = cell.runs.first() else { return Vec::new() };
    let mut names = Vec::new();
    if first.measures_store() {
        names.push("throughput_ops_s".to_owned());
        for op in cell.ops() {
            names.extend(["mean", "p50", "p99", "p99_9"].map(|it| format!("latency_us.{op}.{it}")));
        }
        names.extend(
            [CPU_S_PER_MOP, OPS_PER_JOULE, JOULES_PER_OP_NET].map(|signal| signal.name.to_owned()),
        );
    } else {
        names.extend(first.readings.iter().map(|reading| reading.signal.clone()));
    }
    names.into_iter().filter_map(|name| figure(cell, name)).collect()
}

/// None where a run lacks the metric, or has too few samples for it, or neither direction is
/// better.
fn figure(cell: &ReportCell<'_>, name: String) -> Option<Figure> {
    let metric = Metric::parse(&name).ok()?;
    let direction = metric.direction();
    if direction == BetterDirection::Neither {
        return None;
    }
    if let Metric::Latency { clock, op, point: DistributionPoint::Percentile(percentile) } = metric
    {
        let needed = samples_needed(percentile).ok()? as f64;
        let counted = Metric::Latency { clock, op, point: DistributionPoint::Count };
        let enough = |run: &&Run| counted.value(run).is_ok_and(|count| count >= needed);
        if !cell.runs.iter().all(enough) {
            return None;
        }
    }
    let values: Result<Vec<f64>, _> = cell.runs.iter().map(|run| metric.value(run)).collect();
    let described = describe_by_median(&values.ok()?).ok()?;
    let first = cell.runs.first()?;
    let unit = metric.unit(Some(first)).unwrap_or_default();
    Some(Figure { name, unit, direction, described, version: first.store_version.clone() })
}

fn bencher(cells: &[(String, Vec<Figure>)]) -> Value {
    let measure = |figure: &Figure| {
        let mut metric = json!({ "value": figure.described.median });
        if let Ok(interval) = figure.described.interval() {
            metric["lower_value"] = json!(interval.low);
            metric["upper_value"] = json!(interval.high);
        }
        (figure.name.clone(), metric)
    };
    let benchmark = |(title, figures): &(String, Vec<Figure>)| {
        (title.clone(), Value::Object(figures.iter().map(measure).collect()))
    };
    let with_figures = cells.iter().filter(|(_, figures)| !figures.is_empty());
    Value::Object(with_figures.map(benchmark).collect::<Map<String, Value>>())
}

fn github(cells: &[(String, Vec<Figure>)], direction: BetterDirection) -> Value {
    let entry = |title: &str, figure: &Figure| {
        let runs = figure.described.n;
        let mut entry = json!({
            "name": format!("{title}: {}", figure.name),
            "unit": figure.unit,
            "value": figure.described.median,
            "extra": format!("median of {runs} runs, {}", figure.version),
        });
        if let Ok(interval) = figure.described.interval() {
            entry["range"] =
                json!(format!("95 % {} to {}", short(interval.low), short(interval.high)));
        }
        entry
    };
    let all = cells.iter().flat_map(|(title, figures)| {
        figures.iter().filter(|it| it.direction == direction).map(|it| entry(title, it))
    });
    Value::Array(all.collect())
}

/// Six significant digits, for people.
fn short(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
