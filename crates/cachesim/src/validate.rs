//! The simulator against what was measured and published.

use model::{Bytes, Count};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::describe::machine::Machine;
use crate::describe::text::Source;
use crate::describe::traffic::Traffic;
use crate::error::SimError;
use crate::policy::Policy;
use crate::sweep::{Job, run_all};

/// What must hold: the mean error over all points, and that of each, in points of hit rate.
pub const MEAN_LIMIT: f64 = 5.0;
pub const POINT_LIMIT: f64 = 10.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    source: String,
    series: Vec<Series>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Series {
    id: String,
    read: String,
    packet: u64,
    descriptors: Vec<u64>,
    ways: Vec<u32>,
    hits: Vec<f64>,
}

/// One published point beside the simulated one.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    pub series: String,
    /// Where in the source it stands.
    pub read: String,
    pub packet_bytes: u64,
    pub receive_descriptors: u64,
    pub ways: u32,
    pub published_percent: f64,
    pub simulated_percent: f64,
    /// Simulated less published, in points.
    pub error_points: f64,
}

/// All points and whether the limits hold.
#[derive(Debug, Clone, Serialize)]
pub struct Validation {
    pub kind: &'static str,
    pub metric: &'static str,
    pub machine: String,
    pub source: String,
    pub points: Vec<Point>,
    pub mean_error_points: f64,
    pub max_error_points: f64,
    pub mean_limit_points: f64,
    pub point_limit_points: f64,
    pub valid: bool,
}

/// Simulates every published point.
pub fn validate() -> Result<Validation, SimError> {
    let source = Source {
        origin: "published/ddio-bench.toml".to_owned(),
        text: include_str!("published/ddio-bench.toml").to_owned(),
    };
    let published: Published = source.parse()?;
    let machine = Machine::open("xeon-gold-6140")?;
    let traffic = Traffic::open("forward", &machine)?;
    let mut points = Vec::new();
    let mut jobs = Vec::new();
    for series in published.series {
        let settings = series.descriptors.iter().zip(&series.ways).zip(&series.hits);
        for ((descriptors, ways), hits) in settings {
            points.push(Point {
                series: series.id.clone(),
                read: series.read.clone(),
                packet_bytes: series.packet,
                receive_descriptors: *descriptors,
                ways: *ways,
                published_percent: *hits,
                simulated_percent: 0.0,
                error_points: 0.0,
            });
            let mut traffic = traffic.clone();
            traffic.port.packet = Spanned::new(0..0, Bytes(series.packet));
            traffic.queues.receive = Spanned::new(0..0, Count(*descriptors));
            jobs.push(Job { machine: machine.clone(), traffic, policy: Policy::Ways(*ways) });
        }
    }
    for (point, outcome) in points.iter_mut().zip(run_all(&jobs)?) {
        point.simulated_percent = outcome.pcie_write_hit_percent.unwrap_or(0.0);
        point.error_points = point.simulated_percent - point.published_percent;
    }
    let errors = points.iter().map(|point| point.error_points.abs());
    let mean = errors.clone().sum::<f64>() / points.len() as f64;
    let most = errors.fold(0.0, f64::max);
    Ok(Validation {
        kind: "simulated",
        metric: "pcie_write_hit_percent",
        machine: machine.name,
        source: published.source,
        points,
        mean_error_points: mean,
        max_error_points: most,
        mean_limit_points: MEAN_LIMIT,
        point_limit_points: POINT_LIMIT,
        valid: mean <= MEAN_LIMIT && most <= POINT_LIMIT,
    })
}
