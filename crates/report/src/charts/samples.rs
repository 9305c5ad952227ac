//! What probes sampled over a run, under its throughput on the same axis of time.

use model::{Origin, Series, Unit};
use record::Run;

use crate::figure::{Axis, Line, Panel, Point, Scale, Shape};
use crate::format;
use crate::tables::origin_name;

/// More lines than this are no picture; a machine may have dozens of sensors.
const MOST_LINES: usize = 5;
const HEIGHT: f64 = 90.0;

/// A panel and the names of its lines.
pub(super) struct Sampled {
    pub panel: Panel,
    pub names: Vec<String>,
}

/// One panel for each unit, of samples in the window.
pub(super) fn panels(run: &Run) -> Vec<Sampled> {
    let mut units: Vec<Unit> = Vec::new();
    for series in &run.samples {
        if !units.contains(&series.unit) {
            units.push(series.unit);
        }
    }
    units.into_iter().filter_map(|unit| panel(run, unit)).collect()
}

fn panel(run: &Run, unit: Unit) -> Option<Sampled> {
    let (mut lines, mut names) = (Vec::new(), Vec::new());
    for series in run.samples.iter().filter(|series| series.unit == unit) {
        let points = points(series, run.seconds);
        if points.is_empty() || lines.len() == MOST_LINES {
            continue;
        }
        // After the colours of throughput and of operations.
        let color = lines.len() + 2;
        let measured = series.origin == Origin::Measured;
        lines.push(Line {
            color,
            dashed: !run.valid() || !measured,
            hollow: !run.valid(),
            shape: Shape::nth(color),
            joined: true,
            points,
        });
        names.push(match measured {
            true => series.signal.clone(),
            false => format!("{} ({})", series.signal, origin_name(series.origin)),
        });
    }
    if lines.is_empty() {
        return None;
    }
    let values = lines.iter().flat_map(|line| line.points.iter().map(|point| point.y));
    let (scale, title) = match unit {
        Unit::Watts => (Scale::from_zero(values), "power, W"),
        Unit::Celsius => (Scale::from_zero(values), "temperature, °C"),
        _ => (Scale::from_zero(values), unit.symbol()),
    };
    let axis = Axis::new(scale, 3, title, format::plain);
    Some(Sampled { panel: Panel { axis, height: HEIGHT, lines, levels: Vec::new() }, names })
}

/// The samples of the window; those next to its edges belong to what was around it.
fn points(series: &Series, seconds: f64) -> Vec<Point> {
    let pairs = series.at_s.iter().zip(&series.values);
    let inside = pairs.filter(|(at_s, value)| (0.0..=seconds).contains(*at_s) && value.is_finite());
    let many = series.values.len() > 40;
    let point = |(at_s, value): (&f64, &f64)| Point {
        x: *at_s,
        y: *value,
        tip: format!(
            "at {}: {} {}",
            format::seconds(*at_s),
            series.signal,
            format::value(*value, series.unit)
        ),
        shown: !many,
        whisker: None,
    };
    inside.map(point).collect()
}
