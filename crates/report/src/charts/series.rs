//! One run over time: throughput, p99 of each operation, and samples of probes.

use analyse::offered_rate;
use model::{LoopKind, Op, Run};

use super::samples::{self, SamplesPanel};
use super::{Caution, ShownFigure, slug};
use crate::figure::{Axis, Chart, Entry, Line, LineChart, LinePoint, Panel, Scale, Shape};
use crate::table::{ALWAYS, Align, Table};
use crate::tables::op_name;
use crate::{format, moving_load};

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
    let merged = match series.moves {
        false => "Several intervals are merged in each point; its p99 is the highest of theirs.",
        true => {
            "Several intervals are merged in each point; its percentiles are the highest of theirs."
        }
    };
    let captions = series.merged.then(|| merged.to_owned());
    let invalid = run.invalid_because.iter().map(|text| (true, text));
    let warnings = run.warnings.iter().map(|text| (false, text));
    Some(ShownFigure {
        id: format!("series-{nth}-{}", slug(name)),
        title: if run.valid() { name.to_owned() } else { format!("{name} (INVALID)") },
        alt: format!("Throughput and p99 latency of {name} over its {}", format::seconds(last)),
        captions: captions.into_iter().chain(moving_load::sentences(run)).collect(),
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
    /// The rate that is offered moves.
    moves: bool,
    ops: Vec<Op>,
}

impl RunSeries<'_> {
    fn of(run: &Run) -> RunSeries<'_> {
        let (intervals, merged) = intervals(run);
        let occurs = |op: &Op| intervals.iter().any(|interval| interval.p99(*op).is_some());
        let ops = Op::ALL.into_iter().filter(occurs).collect();
        RunSeries { run, intervals, merged, moves: offered_rate(run).is_some(), ops }
    }

    /// The panels above each other, and the legend of all of them.
    fn panels(&self) -> (Vec<Panel>, Vec<Entry>) {
        let total = self.line(0, |interval| {
            let rate = interval.throughput();
            Some((rate, format::rate(rate)))
        });
        let mut tails: Vec<Line> =
            self.ops.iter().zip(1..).map(|(op, nth)| self.tail(*op, nth)).collect();
        let answered = if self.moves { "answered" } else { "throughput" };
        let mut legend = vec![self.entry(answered, &total)];
        let offered = self.moves.then(|| self.offered());
        legend.extend(offered.iter().map(|line| self.entry("offered (by the profile)", line)));
        let of_ops = self.ops.iter().zip(&tails);
        legend.extend(of_ops.map(|(op, line)| self.entry(&format!("{} p99", op_name(*op)), line)));
        if self.moves {
            let medians: Vec<Line> =
                self.ops.iter().zip(1..).map(|(op, nth)| self.median(*op, nth)).collect();
            let of_ops = self.ops.iter().zip(&medians);
            legend.extend(
                of_ops.map(|(op, line)| self.entry(&format!("{} p50", op_name(*op)), line)),
            );
            tails.extend(medians);
        }
        let clock = match self.run.pacing {
            LoopKind::Open { .. } if self.moves => "p50 and p99 latency, response (from due)",
            LoopKind::Open { .. } => "p99 latency, response (from due)",
            LoopKind::Closed { .. } => "p99 latency, service (from sent), closed loop",
        };
        let rates: Vec<Line> = offered.into_iter().chain([total]).collect();
        let rate_axis =
            Scale::from_zero(rates.iter().flat_map(|line| line.points.iter().map(|p| p.y)));
        let latencies = Scale::log(tails.iter().flat_map(|line| line.points.iter().map(|p| p.y)));
        let mut panels = vec![
            panel(Axis::new(rate_axis, 4, "throughput", format::target_rate), rates),
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

    fn median(&self, op: Op, nth: usize) -> Line {
        let line = self.line(nth, |interval| {
            let p50 = interval.p50[op].map(|value| value as f64)?;
            Some((p50, format!("{} p50 = {}", op_name(op), format::latency(p50))))
        });
        // In the colour of the operation's p99.
        Line { shape: Shape::nth(nth + self.ops.len()), ..line }
    }

    /// Dashed, as it is no measurement.
    fn offered(&self) -> Line {
        let line = self.line(0, |interval| {
            let rate = interval.offered?;
            Some((rate, format!("offered {}", format::rate(rate))))
        });
        let points = line.points.into_iter().map(|point| LinePoint { shown: false, ..point });
        Line { dashed: true, color: 3, shape: Shape::nth(3), points: points.collect(), ..line }
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
            line: Some(line.dashed),
            hollow: !self.run.valid(),
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new("").column("until", Align::Right, ALWAYS);
        if self.moves {
            table = table.column("offered, ops/s", Align::Right, ALWAYS);
        }
        table = table.column("ops/s", Align::Right, ALWAYS);
        for op in &self.ops {
            if self.moves {
                table = table.column(format!("{} p50, µs", op_name(*op)), Align::Decimal, ALWAYS);
            }
            table = table.column(format!("{} p99, µs", op_name(*op)), Align::Decimal, ALWAYS);
        }
        for interval in &self.intervals {
            let mut row = vec![crate::table::Cell::from(format::seconds(interval.at_s))];
            if self.moves {
                row.push(match interval.offered {
                    Some(rate) => format::count(rate.round() as u64).into(),
                    None => format::NONE.into(),
                });
            }
            row.push(format::count(interval.throughput().round() as u64).into());
            let micros = |nanos: Option<f64>| match nanos {
                Some(nanos) => crate::table::Cell::from(format::micros(nanos)),
                None => format::NONE.into(),
            };
            for op in &self.ops {
                if self.moves {
                    row.push(micros(interval.p50[*op].map(|value| value as f64)));
                }
                row.push(micros(interval.p99(*op)));
            }
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
    /// The rate that a profile offers; None where it does not move.
    offered: Option<f64>,
    /// Nanoseconds; None where the operation did not occur.
    p50: model::PerOp<Option<u64>>,
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
                offered: offered_at(run, point.at_s),
                p50: model::PerOp::from_fn(|_| None),
                p99: model::PerOp::from_fn(|_| None),
            });
        }
        if let Some(interval) = intervals.last_mut() {
            interval.operations = interval.operations.saturating_add(point.operations);
            if point.operations > 0 {
                interval.p50[point.op] = Some(point.p50_ns);
                interval.p99[point.op] = Some(point.p99_ns);
            }
        }
    }
    let each = intervals.len().div_ceil(MAX_POINTS).max(1);
    (intervals.chunks(each).map(merged).collect(), each > 1)
}

/// The offered rate of the interval that ends then.
fn offered_at(run: &Run, at_s: f64) -> Option<f64> {
    let series = offered_rate(run)?;
    let at = series.at_s.partition_point(|end| *end < at_s - 1e-6);
    let same = series.at_s.get(at).is_some_and(|end| (end - at_s).abs() < 1e-6);
    series.values.get(at).copied().filter(|_| same)
}

fn merged(parts: &[SeriesInterval]) -> SeriesInterval {
    let seconds: f64 = parts.iter().map(|part| part.seconds).sum();
    let offered: Option<f64> =
        parts.iter().map(|part| part.offered.map(|rate| rate * part.seconds)).sum();
    SeriesInterval {
        at_s: parts.last().map_or(0.0, |part| part.at_s),
        seconds,
        offered: offered.map(|requests| requests / seconds.max(f64::MIN_POSITIVE)),
        operations: model::total(parts.iter().map(|part| part.operations)),
        p50: model::PerOp::from_fn(|op| parts.iter().filter_map(|part| part.p50[op]).max()),
        p99: model::PerOp::from_fn(|op| parts.iter().filter_map(|part| part.p99[op]).max()),
    }
}
