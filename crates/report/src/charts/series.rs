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
/// More points are visible only under the pointer.
const MAX_SHOWN: usize = 40;
const HEIGHT: f64 = 110.0;

/// None if the run has fewer than two points.
pub fn series(run: &Run, name: &str, nth: usize) -> Option<ShownFigure> {
    let series = RunSeries::of(run);
    let last = series.intervals.last().map(|last| last.at_s)?;
    if series.intervals.len() < 2 {
        return None;
    }
    let (panels, legend) = series.panels();
    let merged = "Several intervals are merged in each point; its p99 is the highest of theirs.";
    let invalid = run.invalid_because.iter().map(|text| (true, text));
    let warnings = run.warnings.iter().map(|text| (false, text));
    Some(ShownFigure {
        id: format!("series-{nth}-{}", slug(name)),
        title: if run.valid() { name.to_owned() } else { format!("{name} (INVALID)") },
        alt: format!("Throughput and p99 latency of {name} over its {}", format::seconds(last)),
        captions: series.merged.then(|| merged.to_owned()).into_iter().collect(),
        cautions: invalid
            .chain(warnings)
            .map(|(invalid, text)| Caution { invalid, text: text.clone() })
            .collect(),
        data: series.table(),
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

/// The intervals of a run, and the operations that have latencies in them.
struct RunSeries<'a> {
    run: &'a Run,
    intervals: Vec<SeriesInterval>,
    /// Each of them is several of the run's own.
    merged: bool,
    ops: Vec<Op>,
}

impl RunSeries<'_> {
    fn of(run: &Run) -> RunSeries<'_> {
        let (intervals, merged) = intervals(run);
        let occurs = |op: &Op| intervals.iter().any(|interval| interval.p99(*op).is_some());
        let ops = Op::ALL.into_iter().filter(occurs).collect();
        RunSeries { run, intervals, merged, ops }
    }

    /// The panels above each other, and the legend of all of them.
    fn panels(&self) -> (Vec<Panel>, Vec<Entry>) {
        let total = self.line(0, |interval| {
            let rate = interval.throughput();
            Some((rate, format::rate(rate)))
        });
        let tails: Vec<Line> =
            self.ops.iter().zip(1..).map(|(op, nth)| self.tail(*op, nth)).collect();
        let mut legend = vec![self.entry("throughput", &total)];
        let of_ops = self.ops.iter().zip(&tails);
        legend.extend(of_ops.map(|(op, line)| self.entry(&format!("{} p99", op_name(*op)), line)));
        let clock = match self.run.pacing {
            LoopKind::Open { .. } => "p99 latency, response (from due)",
            LoopKind::Closed { .. } => "p99 latency, service (from sent), closed loop",
        };
        let rates = Scale::from_zero(total.points.iter().map(|point| point.y));
        let latencies = Scale::log(tails.iter().flat_map(|line| line.points.iter().map(|p| p.y)));
        let mut panels = vec![
            panel(Axis::new(rates, 4, "throughput", format::target_rate), vec![total]),
            panel(Axis::new(latencies, 5, clock, format::latency_tick), tails),
        ];
        for SamplesPanel { panel, names } in samples::panels(self.run) {
            legend
                .extend(panel.lines.iter().zip(names).map(|(line, name)| self.entry(&name, line)));
            panels.push(panel);
        }
        (panels, legend)
    }

    fn tail(&self, op: Op, nth: usize) -> Line {
        self.line(nth, |interval| {
            let p99 = interval.p99(op)?;
            Some((p99, format!("{} p99 = {}", op_name(op), format::latency(p99))))
        })
    }

    /// A line through what `value` says of each interval, with its words.
    fn line(&self, nth: usize, value: impl Fn(&SeriesInterval) -> Option<(f64, String)>) -> Line {
        let point = |interval: &SeriesInterval| {
            let (y, words) = value(interval)?;
            Some(LinePoint {
                x: interval.at_s,
                y,
                tip: format!("at {}: {words}", format::seconds(interval.at_s)),
                shown: self.intervals.len() <= MAX_SHOWN,
                whisker: None,
            })
        };
        Line {
            color: nth,
            dashed: !self.run.valid(),
            hollow: !self.run.valid(),
            shape: Shape::nth(nth),
            joined: true,
            points: self.intervals.iter().filter_map(point).collect(),
        }
    }

    fn entry(&self, label: &str, line: &Line) -> Entry {
        Entry {
            label: label.to_owned(),
            color: Some(line.color),
            shape: Some(line.shape),
            line: Some(!self.run.valid()),
            hollow: !self.run.valid(),
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new("").column("until", Align::Right, ALWAYS).column(
            "ops/s",
            Align::Right,
            ALWAYS,
        );
        for op in &self.ops {
            table = table.column(format!("{} p99, µs", op_name(*op)), Align::Decimal, ALWAYS);
        }
        for interval in &self.intervals {
            let mut row = vec![
                format::seconds(interval.at_s).into(),
                format::count(interval.throughput().round() as u64).into(),
            ];
            row.extend(self.ops.iter().map(|op| match interval.p99(*op) {
                Some(p99) => crate::table::Cell::from(format::micros(p99)),
                None => format::NONE.into(),
            }));
            table.row(row);
        }
        table
    }
}

fn panel(axis: Axis, lines: Vec<Line>) -> Panel {
    Panel { axis, height: HEIGHT, lines, levels: Vec::new() }
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
}

/// The run's intervals in order of time, and whether they were merged.
fn intervals(run: &Run) -> (Vec<SeriesInterval>, bool) {
    let mut points: Vec<&model::SeriesPoint> = run.series.iter().collect();
    points.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let mut intervals: Vec<SeriesInterval> = Vec::new();
    for point in points {
        // Points of one interval end at the same instant, whatever their operation.
        let same = intervals.last().is_some_and(|last| (last.at_s - point.at_s).abs() < 1e-6);
        if !same {
            intervals.push(SeriesInterval {
                at_s: point.at_s,
                seconds: point.seconds,
                operations: 0,
                p99: model::PerOp::from_fn(|_| None),
            });
        }
        if let Some(interval) = intervals.last_mut() {
            interval.operations = interval.operations.saturating_add(point.operations);
            if point.operations > 0 {
                interval.p99[point.op] = Some(point.p99_ns);
            }
        }
    }
    let each = intervals.len().div_ceil(MAX_POINTS).max(1);
    (intervals.chunks(each).map(merged).collect(), each > 1)
}

fn merged(parts: &[SeriesInterval]) -> SeriesInterval {
    SeriesInterval {
        at_s: parts.last().map_or(0.0, |part| part.at_s),
        seconds: parts.iter().map(|part| part.seconds).sum(),
        operations: model::total(parts.iter().map(|part| part.operations)),
        p99: model::PerOp::from_fn(|op| parts.iter().filter_map(|part| part.p99[op]).max()),
    }
}
