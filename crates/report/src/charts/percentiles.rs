//! The whole distribution: latency over percentile, one figure a workload.

use hdrhistogram::Histogram;
use model::{LatencyClock, Op};

use super::latency::{clock_name, loop_captions};
use super::{Caution, CellSeries, ShownFigure, by_category, slug};
use crate::cells::ReportCell;
use crate::figure::{
    Axis, Chart, Entry, Line, LineChart, LinePoint, Panel, Scale, Shape, percentile_position,
};
use crate::format;
use crate::table::{ALWAYS, Align, Table};
use crate::tables::op_name;

/// Percentiles that are marked and listed in the table.
const MARKED: [f64; 8] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];
/// The most distinguishable lines in one figure.
const MAX_LINES: usize = 6;
/// Points per decade of the axis.
const POINTS_PER_DECADE: usize = 12;
const HEIGHT: f64 = 220.0;

pub fn percentiles(cells: &[&ReportCell], series: &CellSeries) -> Vec<ShownFigure> {
    let mut figures = Vec::new();
    for (category, members) in by_category(cells) {
        let curves: Vec<PercentileCurve> =
            members.iter().flat_map(|cell| curves(cell, members.len() > 1)).collect();
        if curves.len() <= MAX_LINES {
            let title = match members.as_slice() {
                [cell] if series.several() => super::title(cell),
                _ => category.to_owned(),
            };
            figures.extend(figure(&title, &curves, &members));
            continue;
        }
        for cell in members {
            let own = self::curves(cell, false);
            figures.extend(figure(&super::title(cell), &own, &[cell]));
        }
    }
    figures
}

struct PercentileCurve {
    name: String,
    clock: LatencyClock,
    /// Response and service of one operation share a colour.
    pair: (String, Op),
    histogram: Histogram<u64>,
    valid: bool,
}

/// `named`: the figure has several series.
fn curves(cell: &ReportCell, named: bool) -> Vec<PercentileCurve> {
    let mut curves = Vec::new();
    for op in cell.ops() {
        for clock in [LatencyClock::Response, LatencyClock::Service] {
            let Some(histogram) = cell.merged(op, clock) else { continue };
            let valid = cell.counted().1;
            let mut name = format!("{}, {}", op_name(op), clock_name(cell.clock(), clock));
            if named {
                name = format!("{}: {name}", cell.series);
            }
            if !valid {
                name += ", INVALID";
            }
            curves.push(PercentileCurve {
                name,
                clock,
                pair: (cell.series.clone(), op),
                histogram,
                valid,
            });
        }
    }
    curves
}

fn figure(title: &str, curves: &[PercentileCurve], cells: &[&ReportCell]) -> Option<ShownFigure> {
    let most = curves.iter().map(|curve| last_percentile(&curve.histogram)).fold(0.0, f64::max);
    if curves.is_empty() {
        return None;
    }
    let mut pairs: Vec<&(String, Op)> = Vec::new();
    let mut data = Table::new("").column("percentile", Align::Left, ALWAYS);
    let (mut lines, mut legend) = (Vec::new(), Vec::new());
    for curve in curves {
        let color = pairs.iter().position(|pair| **pair == curve.pair).unwrap_or_else(|| {
            pairs.push(&curve.pair);
            pairs.len() - 1
        });
        // Dashed: the service time of an open loop. Hollow: that, or an invalid run.
        let aside = cells.iter().any(|c| c.series == curve.pair.0 && c.clock() != curve.clock);
        let hollow = aside || !curve.valid;
        let shape = Shape::nth(color);
        let points = points(curve);
        lines.push(Line { color, dashed: aside, hollow, shape, joined: true, points });
        legend.push(Entry {
            label: curve.name.clone(),
            color: Some(color),
            shape: Some(shape),
            line: Some(aside),
            hollow,
        });
        data = data.column(format!("{}, µs", curve.name), Align::Decimal, ALWAYS);
    }
    for percentile in MARKED {
        if percentile > most && percentile < 100.0 {
            continue;
        }
        let mut row = vec![match percentile {
            0.0 => "min".into(),
            p => format::percentile(p).into(),
        }];
        row.extend(curves.iter().map(|curve| {
            let h = &curve.histogram;
            let value = if percentile == 0.0 { h.min() } else { h.value_at_percentile(percentile) };
            crate::table::Cell::from(format::micros(value as f64))
        }));
        data.row(row);
    }
    let values = lines.iter().flat_map(|line: &Line| line.points.iter().map(|point| point.y));
    let axis = Axis::new(Scale::log(values), 7, "latency", format::latency_tick);
    let cautions = cells.iter().filter(|cell| !cell.counted().1).map(|cell| Caution {
        invalid: true,
        text: format!("{} has no valid run: see Validity", super::title(cell)),
    });
    Some(ShownFigure {
        id: format!("percentiles-{}", slug(title)),
        title: title.to_owned(),
        alt: format!("Latency over percentile of {title}: {}", names(curves)),
        captions: loop_captions(cells),
        cautions: cautions.collect(),
        chart: Chart::Lines(LineChart {
            axis: Axis::percentiles(most),
            panels: vec![Panel { axis, height: HEIGHT, lines, levels: Vec::new() }],
            legend,
        }),
        data,
        small: true,
    })
}

fn names(curves: &[PercentileCurve]) -> String {
    curves.iter().map(|curve| curve.name.as_str()).collect::<Vec<_>>().join("; ")
}

/// The highest percentile that a distribution resolves: one answer lies above it.
fn last_percentile(histogram: &Histogram<u64>) -> f64 {
    100.0 * (1.0 - 1.0 / histogram.len().max(2) as f64)
}

fn points(curve: &PercentileCurve) -> Vec<LinePoint> {
    let last = last_percentile(&curve.histogram);
    let end = percentile_position(last);
    let steps = (end * POINTS_PER_DECADE as f64).floor() as usize;
    let mut places: Vec<(f64, bool)> = (0..=steps)
        .map(|i| (100.0 * (1.0 - 10f64.powf(-(i as f64) / POINTS_PER_DECADE as f64)), false))
        .filter(|(p, _)| MARKED.iter().all(|named| (named - p).abs() > 1e-9))
        .collect();
    places.extend(MARKED.iter().filter(|p| **p <= last).map(|p| (*p, true)));
    places.push((last, true));
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    let count = places.len();
    places
        .into_iter()
        .enumerate()
        .map(|(i, (percentile, shown))| {
            let (value, word) = match i {
                0 => (curve.histogram.min(), "min".to_owned()),
                i if i + 1 == count => (curve.histogram.max(), "max".to_owned()),
                _ => (
                    curve.histogram.value_at_percentile(percentile),
                    format::percentile(percentile),
                ),
            };
            let tip = format!("{}: {word} = {}", curve.name, format::latency(value as f64));
            LinePoint {
                x: percentile_position(percentile),
                y: value as f64,
                tip,
                shown,
                whisker: None,
            }
        })
        .collect()
}
