//! Validation of the simulator against published measurements.

use model::suggest::hint;
use model::{Bytes, Count, Rate, Span};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::describe::machine::SimulatedMachine;
use crate::describe::text::DescriptionText;
use crate::describe::traffic::Traffic;
use crate::engine::SETTLED;
use crate::error::SimError;
use crate::policy::Policy;
use crate::sweep::{SweepJob, run_all};

/// Limits on the mean error over all points and on the error of each, in points of hit rate.
pub const MEAN_LIMIT: f64 = 5.0;
pub const POINT_LIMIT: f64 = 10.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedData {
    source: String,
    series: Vec<PublishedSeries>,
}

/// The parameter that varies in a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VariedKey {
    Ways,
    Descriptors,
    Cores,
    Rate,
}

impl VariedKey {
    /// What an axis of it is called.
    pub const fn name(self) -> &'static str {
        match self {
            VariedKey::Ways => "ways",
            VariedKey::Descriptors => "descriptors",
            VariedKey::Cores => "cores",
            VariedKey::Rate => "packets/s",
        }
    }
}

/// The accesses of a card whose hits in the last-level cache were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Metric {
    #[default]
    #[serde(rename = "pcie_write_hit_percent")]
    Writes,
    #[serde(rename = "pcie_read_hit_percent")]
    Reads,
}

/// Lists of the same length: a point has one of each.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedSeries {
    id: String,
    by: VariedKey,
    read: String,
    #[serde(default)]
    metric: Metric,
    /// The model was developed with these numbers in view.
    #[serde(default)]
    seen: bool,
    packet: u64,
    descriptors: Vec<u64>,
    ways: Vec<u32>,
    /// One if absent.
    #[serde(default)]
    cores: Vec<u32>,
    /// The wire's capacity if absent.
    #[serde(default)]
    rates: Vec<Rate>,
    hits: Vec<f64>,
}

/// One published point and its simulation.
#[derive(Debug, Clone, Serialize)]
pub struct ValidationPoint {
    pub series: String,
    pub by: VariedKey,
    pub metric: Metric,
    /// Where in the source it stands.
    pub read: String,
    pub packet_bytes: u64,
    pub workers: u32,
    /// Of each worker.
    pub receive_descriptors: u64,
    pub ways: u32,
    /// None: as many packets as the wire carries.
    pub rate_packets_s: Option<f64>,
    pub published_percent: f64,
    pub simulated_percent: f64,
    /// Simulated less published, in points.
    pub error_points: f64,
}

/// Errors of one series, or of all.
#[derive(Debug, Clone, Serialize)]
pub struct ValidationErrors {
    pub series: String,
    pub metric: Metric,
    /// The model was developed with these numbers in view.
    pub seen: bool,
    pub points: usize,
    pub mean_error_points: f64,
    pub max_error_points: f64,
    pub valid: bool,
}

/// All points and whether the limits hold.
#[derive(Debug, Clone, Serialize)]
pub struct Validation {
    pub kind: &'static str,
    pub machine: String,
    pub source: String,
    pub points: Vec<ValidationPoint>,
    pub series: Vec<ValidationErrors>,
    /// Of all points of all series.
    pub mean_error_points: f64,
    pub max_error_points: f64,
    pub mean_limit_points: f64,
    pub point_limit_points: f64,
    /// Of all points together.
    pub valid: bool,
}

/// Simulates every published point.
pub fn validate() -> Result<Validation, SimError> {
    validate_series(&[])
}

/// Simulates the published points of the named series, of all where none is named. The error
/// names a series that there is not.
pub fn validate_series(names: &[String]) -> Result<Validation, SimError> {
    let source = DescriptionText {
        origin: "published/ddio-bench.toml".to_owned(),
        text: include_str!("published/ddio-bench.toml").to_owned(),
    };
    let mut published: PublishedData = source.parse()?;
    let known = published.series.iter().map(|series| series.id.as_str());
    if let Some(name) = names.iter().find(|name| !known.clone().any(|id| id == **name)) {
        let words = format!("there is no published series `{name}`; {}", hint(name, known));
        return Err(SimError::Value(words));
    }
    published.series.retain(|series| names.is_empty() || names.contains(&series.id));
    let machine = SimulatedMachine::open("xeon-gold-6140")?;
    let traffic = Traffic::open("forward", &machine)?;
    let mut points: Vec<ValidationPoint> =
        published.series.iter().flat_map(PublishedSeries::points).collect();
    // Points of writes and of reads share their experiments.
    let mut experiments: Vec<Experiment> = points.iter().map(ValidationPoint::experiment).collect();
    experiments.sort_unstable();
    experiments.dedup();
    let jobs: Vec<SweepJob> = experiments.iter().map(|of| of.job(&machine, &traffic)).collect();
    let outcomes = run_all(&jobs)?;
    for point in &mut points {
        let Ok(own) = experiments.binary_search(&point.experiment()) else { continue };
        let simulated = match point.metric {
            Metric::Writes => outcomes[own].pcie_write_hit_percent,
            Metric::Reads => outcomes[own].pcie_read_hit_percent,
        };
        point.simulated_percent = simulated.unwrap_or(0.0);
        point.error_points = point.simulated_percent - point.published_percent;
    }
    let of = |series: &PublishedSeries| {
        let own = points.iter().filter(|point| point.series == series.id);
        ValidationErrors {
            metric: series.metric,
            seen: series.seen,
            ..ValidationErrors::of(&series.id, own)
        }
    };
    let series = published.series.iter().map(of).collect();
    let all = ValidationErrors::of("all", points.iter());
    Ok(Validation {
        kind: "simulated",
        machine: machine.name,
        source: published.source,
        points,
        series,
        mean_error_points: all.mean_error_points,
        max_error_points: all.max_error_points,
        mean_limit_points: MEAN_LIMIT,
        point_limit_points: POINT_LIMIT,
        valid: all.valid,
    })
}

impl PublishedSeries {
    fn points(&self) -> impl Iterator<Item = ValidationPoint> {
        let settings = self.descriptors.iter().zip(&self.ways).zip(&self.hits).enumerate();
        settings.map(|(i, ((descriptors, ways), hits))| ValidationPoint {
            series: self.id.clone(),
            by: self.by,
            metric: self.metric,
            read: self.read.clone(),
            packet_bytes: self.packet,
            workers: self.cores.get(i).copied().unwrap_or(1),
            receive_descriptors: *descriptors,
            ways: *ways,
            rate_packets_s: self.rates.get(i).map(|rate| rate.0),
            published_percent: *hits,
            simulated_percent: 0.0,
            error_points: 0.0,
        })
    }
}

impl ValidationPoint {
    /// The value of what changes in its series.
    pub fn varied(&self) -> f64 {
        match self.by {
            VariedKey::Ways => f64::from(self.ways),
            VariedKey::Descriptors => self.receive_descriptors as f64,
            VariedKey::Cores => f64::from(self.workers),
            VariedKey::Rate => self.rate_packets_s.unwrap_or(0.0),
        }
    }

    fn experiment(&self) -> Experiment {
        Experiment {
            packet_bytes: self.packet_bytes,
            workers: self.workers,
            receive_descriptors: self.receive_descriptors,
            ways: self.ways,
            rate_packets_s: self.rate_packets_s.map(|rate| rate as u64),
        }
    }
}

/// The settings of a point.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Experiment {
    packet_bytes: u64,
    workers: u32,
    receive_descriptors: u64,
    ways: u32,
    rate_packets_s: Option<u64>,
}

impl Experiment {
    fn job(&self, machine: &SimulatedMachine, traffic: &Traffic) -> SweepJob {
        let mut traffic = traffic.clone();
        traffic.port.packet = Spanned::new(0..0, Bytes(self.packet_bytes));
        traffic.port.rate = self.rate_packets_s.map(|rate| Spanned::new(0..0, Rate(rate as f64)));
        traffic.queues.receive = Spanned::new(0..0, Count(self.receive_descriptors));
        traffic.workers.cores = Spanned::new(0..0, self.workers);
        // The measurements took seconds, in which even a slowly growing queue fills.
        traffic.run.warm_up = Some(Span(SETTLED));
        SweepJob { machine: machine.clone(), traffic, policy: Policy::Ways(self.ways) }
    }
}

impl ValidationErrors {
    fn of<'a>(series: &str, points: impl Iterator<Item = &'a ValidationPoint>) -> ValidationErrors {
        let errors: Vec<f64> = points.map(|point| point.error_points.abs()).collect();
        let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        let most = errors.iter().copied().fold(0.0, f64::max);
        ValidationErrors {
            series: series.to_owned(),
            metric: Metric::default(),
            seen: false,
            points: errors.len(),
            mean_error_points: mean,
            max_error_points: most,
            valid: mean <= MEAN_LIMIT && most <= POINT_LIMIT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_a_series_have_one_length() {
        let text = include_str!("published/ddio-bench.toml");
        let published: PublishedData = toml::from_str(text).unwrap();
        for series in &published.series {
            let varied: Vec<f64> = series.points().map(|point| point.varied()).collect();
            assert!(varied.is_sorted_by(|a, b| a < b), "{}: {varied:?}", series.id);
            let points = series.hits.len();
            assert_eq!((series.descriptors.len(), series.ways.len()), (points, points));
            assert!(series.cores.is_empty() || series.cores.len() == points, "{}", series.id);
            assert!(series.rates.is_empty() || series.rates.len() == points, "{}", series.id);
        }
        assert_eq!(published.series.iter().map(|series| series.hits.len()).sum::<usize>(), 101);
    }

    #[test]
    fn one_point_beyond_the_limit_is_enough_to_be_invalid() {
        let published: PublishedData =
            toml::from_str(include_str!("published/ddio-bench.toml")).unwrap();
        let mut points: Vec<ValidationPoint> = published.series[0].points().collect();
        points[0].error_points = -9.9;
        let errors = |points: &[ValidationPoint]| ValidationErrors::of("x", points.iter());
        assert!(errors(&points).valid);
        points[0].error_points = -10.1;
        assert!(!errors(&points).valid);
        for point in &mut points {
            point.error_points = 5.1;
        }
        let all = errors(&points);
        assert!((all.mean_error_points - 5.1).abs() < 1e-9 && !all.valid, "{all:?}");
    }
}
