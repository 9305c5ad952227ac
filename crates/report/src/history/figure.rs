//! A series as a line of results, with its levels.

use super::{HistoryPoint, HistorySeries, sentence};
use crate::charts::ShownFigure;
use crate::figure::{Axis, Chart, Entry, Line, LineChart, LinePoint, Panel, Scale, Shape};
use crate::format;
use crate::table::{ALWAYS, Align, Table};

const HEIGHT: f64 = 220.0;
const TICKS: usize = 6;
/// More figures make a page that is not read.
const MOST: usize = 24;
/// Room above and below the values, as a share of their range.
const ROOM: f64 = 0.15;

/// Series with changes first.
pub(super) fn figures(all: &[HistorySeries]) -> Vec<ShownFigure> {
    let mut order: Vec<&HistorySeries> = all.iter().filter(|own| own.points.len() > 1).collect();
    order.sort_by_key(|own| own.changes.is_empty());
    order.into_iter().take(MOST).enumerate().map(|(at, own)| figure(own, at)).collect()
}

fn figure(own: &HistorySeries, at: usize) -> ShownFigure {
    let panel = Panel {
        axis: Axis::new(range(&own.points), TICKS, &label(own), |value| format::readable(value, 3)),
        height: HEIGHT,
        lines: vec![results(own), levels(own)],
        levels: Vec::new(),
    };
    let entry = |label: &str, shape, line| Entry {
        label: label.to_owned(),
        color: Some(if line { 1 } else { 0 }),
        shape,
        line: line.then_some(false),
        hollow: false,
    };
    let legend =
        vec![entry("result", Some(Shape::nth(0)), false), entry("median of a level", None, true)];
    let found = match own.changes.len() {
        0 => "No change was found.".to_owned(),
        1 => "One change was found.".to_owned(),
        count => format!("{count} changes were found."),
    };
    ShownFigure {
        id: format!("history-{}", at + 1),
        title: own.title.clone(),
        alt: "Points: the results in the order of their time; lines: their levels".to_owned(),
        captions: vec![format!(
            "Each point is the median of the repeats of one result; the axis does not begin at 0. \
             {found}"
        )],
        cautions: Vec::new(),
        chart: Chart::Lines(LineChart { axis: time(&own.points), panels: vec![panel], legend }),
        data: data(own),
        small: false,
    }
}

fn label(own: &HistorySeries) -> String {
    if own.unit.is_empty() { own.metric.clone() } else { format!("{}, {}", own.metric, own.unit) }
}

/// Around the values: a change of a few per cent must be seen.
fn range(points: &[HistoryPoint]) -> Scale {
    let low = points.iter().map(|point| point.value).fold(f64::INFINITY, f64::min);
    let high = points.iter().map(|point| point.value).fold(f64::NEG_INFINITY, f64::max);
    let room = ((high - low) * ROOM).max(high.abs() * 0.01).max(f64::MIN_POSITIVE);
    Scale::Linear { low: low - room, high: high + room }
}

/// Results at equal distances, with days as ticks.
fn time(points: &[HistoryPoint]) -> Axis {
    let last = points.len().saturating_sub(1);
    let step = points.len().div_ceil(TICKS).max(1);
    let ticks = (0..points.len()).step_by(step).map(|at| (at as f64, points[at].day().to_owned()));
    Axis {
        scale: Scale::Linear { low: -0.5, high: last as f64 + 0.5 },
        ticks: ticks.collect(),
        label: "results, in the order of their time".to_owned(),
    }
}

fn results(own: &HistorySeries) -> Line {
    let point = |(at, point): (usize, &HistoryPoint)| LinePoint {
        x: at as f64,
        y: point.value,
        tip: format!(
            "{}, {}: {} ({} runs), {}",
            point.day(),
            point.version,
            sentence::shown(own, point.value),
            point.runs,
            point.file
        ),
        shown: true,
        whisker: None,
    };
    let points = own.points.iter().enumerate().map(point).collect();
    Line { color: 0, dashed: false, hollow: false, shape: Shape::nth(0), joined: false, points }
}

/// The medians of the levels as steps.
fn levels(own: &HistorySeries) -> Line {
    let last = own.points.len() as f64 - 0.5;
    let mut points = Vec::new();
    let mut place = |x: f64, y: f64| {
        let tip = sentence::shown(own, y);
        points.push(LinePoint { x, y, tip, shown: false, whisker: None });
    };
    if let (Some(first), Some(end)) = (own.changes.first(), own.changes.last()) {
        place(-0.5, first.before);
        for change in &own.changes {
            let x = change.at as f64 - 0.5;
            place(x, change.before);
            place(x, change.after);
        }
        place(last, end.after);
    }
    Line { color: 1, dashed: false, hollow: false, shape: Shape::nth(1), joined: true, points }
}

fn data(own: &HistorySeries) -> Table {
    let mut table = Table::new("")
        .column("time", Align::Left, ALWAYS)
        .column(label(own), Align::Right, ALWAYS)
        .column("runs", Align::Right, ALWAYS)
        .column("version", Align::Left, ALWAYS)
        .column("file", Align::Left, ALWAYS);
    for point in &own.points {
        table.row(vec![
            point.started_at.clone().into(),
            format::significant(point.value, 4).into(),
            point.runs.to_string().into(),
            point.version.clone().into(),
            point.file.clone().into(),
        ]);
    }
    table
}
