//! Samples of probes over a run, on the time axis of its throughput.

use model::signal::CLIENT_OFFERED_RATE;
use model::{Origin, Run, Series, Unit};

use crate::figure::{Axis, Line, LinePoint, Panel, Scale, Shape};
use crate::format;
use crate::tables::origin_name;

/// The most lines in a panel; a machine may have dozens of sensors.
const MAX_LINES: usize = 5;
const HEIGHT: f64 = 90.0;

/// A panel and the names of its lines.
pub(super) struct SamplesPanel {
    pub panel: Panel,
    pub names: Vec<String>,
}

/// One panel for each unit, of samples in the window.
pub(super) fn panels(run: &Run) -> Vec<SamplesPanel> {
    let mut units: Vec<Unit> = Vec::new();
    for series in run.samples.iter().filter(is_own) {
        if !units.contains(&series.unit) {
            units.push(series.unit);
        }
    }
    units.into_iter().filter_map(|unit| panel(run, unit)).collect()
}

/// Whether a series is drawn in these panels: the offered rate stands beside the answered one.
fn is_own(series: &&Series) -> bool {
    series.signal != CLIENT_OFFERED_RATE.name
}

fn panel(run: &Run, unit: Unit) -> Option<SamplesPanel> {
    let (mut lines, mut names) = (Vec::new(), Vec::new());
    for series in run.samples.iter().filter(|series| series.unit == unit && is_own(series)) {
        let points = points(series, run.seconds);
        if points.is_empty() || lines.len() == MAX_LINES {
            continue;
        }
        // Colours after those of throughput and of operations.
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
        Unit::Seconds => (Scale::from_zero(values), "time"),
        Unit::OpsPerSecond => (Scale::from_zero(values), "rate, ops/s"),
        _ => (Scale::from_zero(values), unit.symbol()),
    };
    let numbers = if unit == Unit::Seconds { format::seconds } else { format::plain };
    let axis = Axis::new(scale, 3, title, numbers);
    Some(SamplesPanel { panel: Panel { axis, height: HEIGHT, lines, levels: Vec::new() }, names })
}

/// The samples of the window; those outside belong to other phases.
fn points(series: &Series, seconds: f64) -> Vec<LinePoint> {
    let pairs = series.at_s.iter().zip(&series.values);
    let inside = pairs.filter(|(at_s, value)| (0.0..=seconds).contains(*at_s) && value.is_finite());
    let many = series.values.len() > 40;
    let point = |(at_s, value): (&f64, &f64)| LinePoint {
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
