//! One run over time: throughput, p99 of each operation, and samples of probes.

use model::{LoopKind, Op, Run};

use super::samples::{self, SamplesPanel};
use super::{Caution, ShownFigure, slug};
use crate::figure::{Axis, Chart, Entry, Line, LineChart, LinePoint, Panel, Scale, Shape};
use crate::format;
use crate::table::{ALWAYS, Align, Table};
use crate::tables::op_name;

/// The most points; more intervals are merged.
const MAX_POINTS: usize = 120;
const HEIGHT: f64 = 110.0;

/// None if the run has fewer than two points.
pub fn series(run: &Run, name: &str, nth: usize) -> Option<ShownFigure> {
    let (buckets, gathered) = intervals(run);
    if buckets.len() < 2 {
        return None;
    }
    let ops: Vec<Op> = Op::ALL
        .into_iter()
        .filter(|op| buckets.iter().any(|bucket| bucket.p99(*op).is_some()))
        .collect();
    let total = Line {
        color: 0,
        dashed: !run.valid(),
        hollow: !run.valid(),
        shape: Shape::Circle,
        joined: true,
        points: buckets
            .iter()
            .map(|b| LinePoint {
                x: b.at_s,
                y: b.throughput(),
                tip: format!("{}: {}", b.when(), format::rate(b.throughput())),
                shown: buckets.len() <= 40,
                whisker: None,
            })
            .collect(),
    };
    let tails: Vec<Line> = ops
        .iter()
        .enumerate()
        .map(|(i, op)| Line {
            color: i + 1,
            dashed: !run.valid(),
            hollow: !run.valid(),
            shape: Shape::nth(i + 1),
            joined: true,
            points: buckets
                .iter()
                .filter_map(|b| b.p99(*op).map(|p99| (b, p99)))
                .map(|(b, p99)| LinePoint {
                    x: b.at_s,
                    y: p99,
                    tip: format!("{}: {} p99 = {}", b.when(), op_name(*op), format::latency(p99)),
                    shown: buckets.len() <= 40,
                    whisker: None,
                })
                .collect(),
        })
        .collect();
    let clock = match run.pacing {
        LoopKind::Open { .. } => "p99 latency, response (from due)",
        LoopKind::Closed { .. } => "p99 latency, service (from sent), closed loop",
    };
    let rates = Scale::from_zero(total.points.iter().map(|point| point.y));
    let latencies = Scale::log(tails.iter().flat_map(|line| line.points.iter().map(|p| p.y)));
    let entry = |label: &str, color: usize, shape: Shape| Entry {
        label: label.to_owned(),
        color: Some(color),
        shape: Some(shape),
        line: Some(!run.valid()),
        hollow: !run.valid(),
    };
    let mut legend = vec![entry("throughput", 0, Shape::Circle)];
    legend.extend(
        ops.iter()
            .zip(&tails)
            .map(|(op, line)| entry(&format!("{} p99", op_name(*op)), line.color, line.shape)),
    );
    let mut panels = vec![
        Panel {
            axis: Axis::new(rates, 4, "throughput", format::target_rate),
            height: HEIGHT,
            lines: vec![total],
            levels: Vec::new(),
        },
        Panel {
            axis: Axis::new(latencies, 5, clock, format::latency_tick),
            height: HEIGHT,
            lines: tails,
            levels: Vec::new(),
        },
    ];
    let sampled = samples::panels(run);
    for SamplesPanel { panel, names } in sampled {
        legend.extend(
            panel.lines.iter().zip(names).map(|(line, name)| entry(&name, line.color, line.shape)),
        );
        panels.push(panel);
    }
    let last = buckets.last().map_or(1.0, |bucket| bucket.at_s);
    let invalid = run.invalid_because.iter().map(|text| (true, text));
    let warnings = run.warnings.iter().map(|text| (false, text));
    let mut captions = Vec::new();
    if gathered {
        captions.push(
            "Several intervals are merged in each point; its p99 is the highest of theirs."
                .to_owned(),
        );
    }
    Some(ShownFigure {
        id: format!("series-{nth}-{}", slug(name)),
        title: if run.valid() { name.to_owned() } else { format!("{name} (INVALID)") },
        alt: format!("Throughput and p99 latency of {name} over its {}", format::seconds(last)),
        captions,
        cautions: invalid
            .chain(warnings)
            .map(|(invalid, text)| Caution { invalid, text: text.clone() })
            .collect(),
        data: data(&buckets, &ops),
        chart: Chart::Lines(LineChart {
            axis: Axis::new(
                Scale::Linear { low: 0.0, high: last.max(1e-9) },
                5,
                "seconds from the start of the window",
                format::plain,
            ),
            panels,
            legend,
        }),
        small: true,
    })
}

/// One interval of a run, all operations together.
struct SeriesInterval {
    at_s: f64,
    seconds: f64,
    operations: u64,
    /// Nanoseconds; None where the operation did not occur.
    p99: model::PerOp<Option<u64>>,
}

impl SeriesInterval {
    fn throughput(&self) -> f64 {
        if self.seconds > 0.0 { self.operations as f64 / self.seconds } else { 0.0 }
    }

    fn p99(&self, op: Op) -> Option<f64> {
        self.p99[op].map(|value| value as f64)
    }

    fn when(&self) -> String {
        format!("at {}", format::seconds(self.at_s))
    }
}

/// The run's intervals in order of time, and whether they were merged.
fn intervals(run: &Run) -> (Vec<SeriesInterval>, bool) {
    let mut points: Vec<&model::SeriesPoint> = run.series.iter().collect();
    points.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let mut buckets: Vec<SeriesInterval> = Vec::new();
    for point in points {
        // Points of one interval end at the same instant, whatever their operation.
        let same = buckets.last().is_some_and(|b| (b.at_s - point.at_s).abs() < 1e-6);
        if !same {
            buckets.push(SeriesInterval {
                at_s: point.at_s,
                seconds: point.seconds,
                operations: 0,
                p99: model::PerOp::from_fn(|_| None),
            });
        }
        if let Some(bucket) = buckets.last_mut() {
            bucket.operations = bucket.operations.saturating_add(point.operations);
            if point.operations > 0 {
                bucket.p99[point.op] = Some(point.p99_ns);
            }
        }
    }
    let each = buckets.len().div_ceil(MAX_POINTS).max(1);
    (buckets.chunks(each).map(merged).collect(), each > 1)
}

fn merged(parts: &[SeriesInterval]) -> SeriesInterval {
    SeriesInterval {
        at_s: parts.last().map_or(0.0, |part| part.at_s),
        seconds: parts.iter().map(|part| part.seconds).sum(),
        operations: model::total(parts.iter().map(|part| part.operations)),
        p99: model::PerOp::from_fn(|op| parts.iter().filter_map(|part| part.p99[op]).max()),
    }
}

fn data(buckets: &[SeriesInterval], ops: &[Op]) -> Table {
    let mut table =
        Table::new("").column("until", Align::Right, ALWAYS).column("ops/s", Align::Right, ALWAYS);
    for op in ops {
        table = table.column(format!("{} p99, µs", op_name(*op)), Align::Decimal, ALWAYS);
    }
    for bucket in buckets {
        let mut row = vec![
            format::seconds(bucket.at_s).into(),
            format::count(bucket.throughput().round() as u64).into(),
        ];
        row.extend(ops.iter().map(|op| match bucket.p99(*op) {
            Some(p99) => crate::table::Cell::from(format::micros(p99)),
            None => format::NONE.into(),
        }));
        table.row(row);
    }
    table
}
