//! Latency against rate: a panel for each percentile, a line for each store, and the limit of an
//! objective.

use analyse::slo::{Condition, LatencyFigure};
use hdrhistogram::Histogram;
use model::signal::SERVER_CPU_S_PER_MOP;
use model::{LatencyClock, Op, Run};

use super::{ShownFigure, invalid_entry, slug};
use crate::cells::ReportCell;
use crate::curves::RateCurve;
use crate::figure::{
    Axis, Chart, Entry, LimitLine, Line, LineChart, LinePoint, Panel, Scale, Shape,
};
use crate::format;
use crate::table::{ALWAYS, Align, Table};
use crate::tables::{by_workload, op_name};

const HEIGHT: f64 = 130.0;
const SERVER_CPU: &str = SERVER_CPU_S_PER_MOP.name;

/// The latency figure of a panel, of all operations or of one kind.
#[derive(Clone, Copy, PartialEq)]
struct PanelLatency {
    op: Option<Op>,
    figure: LatencyFigure,
}

/// One figure a workload.
pub fn rates(curves: &[RateCurve]) -> Vec<ShownFigure> {
    by_workload(curves).into_iter().map(|(workload, own)| figure(workload, &own)).collect()
}

fn figure(workload: &str, curves: &[&RateCurve]) -> ShownFigure {
    let mut conditions: Vec<Condition> = Vec::new();
    for objective in curves.iter().filter_map(|curve| curve.objective()) {
        for condition in objective.conditions() {
            if !conditions.contains(condition) {
                conditions.push(*condition);
            }
        }
    }
    let mut shown: Vec<PanelLatency> = [50.0, 99.0, 99.9]
        .map(|percentile| PanelLatency { op: None, figure: LatencyFigure::Percentile(percentile) })
        .into();
    for condition in &conditions {
        let latency = PanelLatency { op: condition.op, figure: condition.figure };
        if !shown.contains(&latency) {
            shown.push(latency);
        }
    }
    let mut panels: Vec<Panel> =
        shown.into_iter().map(|latency| latency_panel(latency, curves, &conditions)).collect();
    panels.extend(server_panel(curves));

    let achieved = curves.iter().flat_map(|curve| &curve.points).filter_map(ReportCell::achieved);
    let axis = Axis::new(Scale::from_zero(achieved), 6, "achieved operations per second", rate);
    let mut captions = vec![
        "Response time, counted from the instant at which a request was due, on logarithmic \
         axes. Repeats of a rate are added up, not averaged."
            .to_owned(),
    ];
    if curves.iter().flat_map(|curve| &curve.points).any(|cell| !cell.counted().1) {
        captions.push(
            "Hollow: invalid runs. Where their latency is beyond the axis they are drawn at \
             its edge."
                .to_owned(),
        );
    }
    if !conditions.is_empty() {
        captions.push("Dashed across a panel: the limit of the objective.".to_owned());
    }
    ShownFigure {
        id: format!("rates-{}", slug(workload)),
        title: match curves {
            [only] => format!("Latency against rate: {workload} on {}", only.series),
            _ => format!("Latency against rate: {workload}"),
        },
        alt: format!(
            "p50, p99 and p99.9 response time of {workload} over the rate that was achieved, a \
             line each for {}",
            curves.iter().map(|curve| curve.series.as_str()).collect::<Vec<_>>().join("; ")
        ),
        captions,
        cautions: Vec::new(),
        chart: Chart::Lines(LineChart { axis, panels, legend: legend(curves) }),
        data: data(curves),
        small: false,
    }
}

fn data(curves: &[&RateCurve]) -> Table {
    const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];
    let mut table = Table::new("")
        .column("store", Align::Left, ALWAYS)
        .column("target, ops/s", Align::Right, ALWAYS)
        .column("achieved, ops/s", Align::Right, ALWAYS)
        .column("answers", Align::Right, ALWAYS)
        .column("mean, µs", Align::Decimal, ALWAYS);
    for percentile in PERCENTILES {
        let head = format!("{}, µs", format::percentile(percentile));
        table = table.column(head, Align::Decimal, ALWAYS);
    }
    let mut table = table.column("max, µs", Align::Decimal, ALWAYS);
    for cell in curves.iter().flat_map(|curve| &curve.points) {
        let Some(histogram) = cell.merged_all(LatencyClock::Response) else { continue };
        let rate = |rate: Option<f64>| {
            rate.map_or(format::NONE.to_owned(), |rate| format::count(rate.round() as u64)).into()
        };
        let mut row = vec![
            cell.series.clone().into(),
            rate(cell.runs.first().and_then(|run| run.target_rate())),
            rate(cell.achieved()),
            format::count(histogram.len()).into(),
            format::micros(histogram.mean()).into(),
        ];
        let at = |percentile| histogram.value_at_percentile(percentile) as f64;
        row.extend(PERCENTILES.map(|percentile| format::micros(at(percentile)).into()));
        row.push(format::micros(histogram.max() as f64).into());
        table.row_of(row, cell.counted().1);
    }
    table
}

/// A tick on the axis of rates, whose label has the unit.
fn rate(ops_s: f64) -> String {
    format::count_short(ops_s)
}

fn latency_panel(latency: PanelLatency, curves: &[&RateCurve], conditions: &[Condition]) -> Panel {
    let figure = match latency.figure {
        LatencyFigure::Mean => "mean".to_owned(),
        LatencyFigure::Percentile(percentile) => format::percentile(percentile),
    };
    let of = latency.op.map_or(String::new(), |op| format!(" of {}", op_name(op)));
    let lines = lines(curves, |cell| {
        let value = latency.of(cell)?;
        Some((value, format!("{figure}{of} = {}", format::latency(value))))
    });
    let levels: Vec<LimitLine> = conditions
        .iter()
        .filter(|condition| condition.op == latency.op && condition.figure == latency.figure)
        .map(|condition| LimitLine { y: condition.limit_ns(), label: condition.to_string() })
        .collect();
    let scale = Scale::log(scale_values(&lines).chain(levels.iter().map(|level| level.y)));
    let axis = Axis::new(scale, 5, &format!("{figure}{of}"), format::latency_tick);
    Panel { axis, height: HEIGHT, lines, levels }
}

/// The values for the scale: those of valid points. Beyond saturation latency grows with the length
/// of the run and would compress the rest, so such points are drawn at the edge.
fn scale_values(lines: &[Line]) -> impl Iterator<Item = f64> {
    let any = lines.iter().any(|line| !line.hollow);
    let counted = lines.iter().filter(move |line| !line.hollow || !any);
    counted.flat_map(|line| &line.points).map(|point| point.y)
}

impl PanelLatency {
    /// In nanoseconds; None if no such operation occurred at that rate.
    fn of(self, cell: &ReportCell) -> Option<f64> {
        let histogram: Histogram<u64> = match self.op {
            Some(op) => cell.merged(op, LatencyClock::Response)?,
            None => cell.merged_all(LatencyClock::Response)?,
        };
        Some(match self.figure {
            LatencyFigure::Mean => histogram.mean(),
            LatencyFigure::Percentile(percentile) => {
                histogram.value_at_percentile(percentile) as f64
            }
        })
    }
}

/// The server's CPU time of an operation; None if it was not measured.
fn server_panel(curves: &[&RateCurve]) -> Option<Panel> {
    let lines = lines(curves, |cell| {
        let value = cell.median(|run: &Run| run.value(SERVER_CPU))?;
        Some((value, format!("server {} CPU-s/Mop", format::readable(value, 3))))
    });
    let values: Vec<f64> =
        lines.iter().flat_map(|line| &line.points).map(|point| point.y).collect();
    if values.is_empty() {
        return None;
    }
    let axis = Axis::new(Scale::from_zero(values), 3, "server CPU-s/Mop", format::plain);
    Some(Panel { axis, height: HEIGHT * 0.6, lines, levels: Vec::new() })
}

/// For each curve a line through valid points, and invalid points hollow and not joined.
fn lines(curves: &[&RateCurve], value: impl Fn(&ReportCell) -> Option<(f64, String)>) -> Vec<Line> {
    let mut lines = Vec::new();
    for (color, curve) in curves.iter().enumerate() {
        for counts in [true, false] {
            let cells = curve.points.iter().filter(|cell| cell.counted().1 == counts);
            let points: Vec<LinePoint> = cells
                .filter_map(|cell| {
                    let (y, text) = value(cell)?;
                    Some(LinePoint {
                        x: cell.achieved()?,
                        y,
                        tip: tip(cell, &text),
                        shown: true,
                        whisker: None,
                    })
                })
                .collect();
            if !points.is_empty() {
                let shape = Shape::nth(color);
                let (dashed, hollow, joined) = (false, !counts, counts);
                lines.push(Line { color, dashed, hollow, shape, joined, points });
            }
        }
    }
    lines
}

fn tip(cell: &ReportCell, text: &str) -> String {
    let target = cell.runs.first().and_then(|run| run.target_rate());
    let rates = match (target, cell.achieved()) {
        (Some(target), Some(achieved)) => {
            format!("{} of {}", format::rate(achieved), format::target_rate(target))
        }
        _ => "unknown rate".to_owned(),
    };
    let invalid = if cell.counted().1 { "" } else { ", INVALID" };
    format!("{}, {rates}{invalid}: {text}", cell.series)
}

fn legend(curves: &[&RateCurve]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    if curves.len() > 1 {
        entries.extend(curves.iter().enumerate().map(|(color, curve)| Entry {
            label: curve.series.clone(),
            color: Some(color),
            shape: Some(Shape::nth(color)),
            line: Some(false),
            hollow: false,
        }));
    }
    let points = || curves.iter().flat_map(|curve| &curve.points);
    if points().any(|cell| !cell.counted().1) {
        entries.push(invalid_entry(Shape::Circle));
    }
    entries
}
