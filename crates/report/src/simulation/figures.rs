//! Figures of simulations over swept values.

use cachesim::SimOutcome;
use cachesim::sweep::SweepPoint;
use cachesim::thesis::{FigureMetric, ThesisFigure};

use super::lines::{HEIGHT, axis_of, entry, line, shown, value_table};
use super::tables::number;
use crate::charts::ShownFigure;
use crate::figure::{Axis, Line, LineChart, LinePoint, Panel, Scale};
use crate::format;
use crate::table::{ALWAYS, Align};

/// One measure of an outcome.
pub struct Measure {
    name: &'static str,
    pub label: &'static str,
    of: fn(&SimOutcome) -> Option<f64>,
    log: bool,
}

pub const WRITE_HITS: Measure = Measure {
    name: "PCIe write hit %",
    label: "lines that the card wrote and the cache had, %",
    of: |outcome| outcome.pcie_write_hit_percent,
    log: false,
};
const WORKER_MISSES: Measure = Measure {
    name: "LLC miss %",
    label: "misses of the workers at the last level, %",
    of: |outcome| outcome.worker.llc_miss_percent,
    log: false,
};
const P99: Measure = Measure {
    name: "p99 µs",
    label: "latency, 99th percentile, µs",
    of: |outcome| outcome.latency_us.as_ref().map(|latency| latency.p99),
    log: true,
};
const MEAN: Measure = Measure {
    name: "mean µs",
    label: "mean latency, µs",
    of: |outcome| outcome.latency_us.as_ref().map(|latency| latency.mean),
    log: true,
};
const MEMORY: Measure = Measure {
    name: "memory GB/s",
    label: "memory traffic, GB/s",
    of: |outcome| Some((outcome.memory.read_bytes_s + outcome.memory.write_bytes_s) / 1e9),
    log: false,
};
const NEIGHBOURS: Measure = Measure {
    name: "neighbours/s",
    label: "accesses of the neighbours a second",
    of: |outcome| {
        let all: f64 = outcome.neighbours.iter().map(|n| n.group.accesses_s).sum();
        (all > 0.0).then_some(all)
    },
    log: false,
};

/// A line: its name and its values over the axis, several measures of each.
struct Series {
    label: String,
    points: Vec<(f64, String, SimOutcome)>,
}

/// One figure over `key`, the first that was swept over several values.
pub fn swept(key: Option<&str>, points: &[SweepPoint], outcomes: &[SimOutcome]) -> ShownFigure {
    let mut series: Vec<Series> = Vec::new();
    for (i, (point, outcome)) in points.iter().zip(outcomes).enumerate() {
        let own = |name: &String| Some(name.as_str()) == key;
        let value = point.at.iter().find(|(name, _)| own(name));
        let text = value.map_or_else(|| point.policy.clone(), |(_, value)| value.clone());
        let others = point.at.iter().filter(|(name, _)| !own(name));
        let mut label: Vec<String> =
            others.map(|(name, value)| format!("{name} {value}")).collect();
        if key.is_some() {
            label.push(point.policy.clone());
        }
        let label = label.join(", ");
        let x = position(&text).unwrap_or(i as f64);
        let mark = (x, text, outcome.clone());
        match series.iter_mut().find(|series| series.label == label) {
            Some(series) => series.points.push(mark),
            None => series.push(Series { label, points: vec![mark] }),
        }
    }
    let axis = key.unwrap_or("policy");
    let measures = [WRITE_HITS, WORKER_MISSES, P99, MEMORY, NEIGHBOURS];
    draw("swept", &format!("By {axis}"), axis, &measures, &series, Vec::new())
}

/// The figures of the thesis.
pub fn thesis(plans: &[ThesisFigure], outcomes: &[SimOutcome]) -> Vec<ShownFigure> {
    let mut rest = outcomes.iter();
    let mut figures = Vec::new();
    for plan in plans {
        let mut all = Vec::new();
        for line in &plan.lines {
            let values = plan.values.iter().zip(rest.by_ref());
            let points = values.map(|(text, outcome)| {
                (position(text).unwrap_or_default(), text.clone(), outcome.clone())
            });
            all.push(Series { label: line.label.clone(), points: points.collect() });
        }
        let measures = match plan.metric {
            FigureMetric::MissRate => vec![WORKER_MISSES],
            FigureMetric::Latency => vec![MEAN, P99],
            FigureMetric::Both => vec![MEAN, WORKER_MISSES],
        };
        let id = format!("figure-{}", plan.id.replace('.', "-"));
        let title = format!("Figure {}: {}", plan.id, plan.title);
        let caption = vec![
            "The thesis prints its figures without numbers, so these have nothing to be compared \
             with."
                .to_owned(),
        ];
        figures.push(draw(&id, &title, plan.key, &measures, &all, caption));
    }
    figures
}

fn draw(
    id: &str,
    title: &str,
    key: &str,
    measures: &[Measure],
    series: &[Series],
    captions: Vec<String>,
) -> ShownFigure {
    let xs: Vec<f64> = series.iter().flat_map(|s| s.points.iter().map(|point| point.0)).collect();
    let present: Vec<&Measure> = measures
        .iter()
        .filter(|m| series.iter().any(|s| s.points.iter().any(|point| (m.of)(&point.2).is_some())))
        .collect();
    let panels = present.iter().map(|measure| panel(measure, series));
    let heads: Vec<&str> = present.iter().map(|measure| measure.name).collect();
    let mut table = value_table(key, &heads).column("line", Align::Left, ALWAYS);
    for one in series {
        for (_, text, outcome) in &one.points {
            let mut cells = vec![text.clone().into()];
            for measure in &present {
                cells.push((measure.of)(outcome).map_or(String::new(), |v| number(v, 2)).into());
            }
            cells.push(one.label.clone().into());
            table.row(cells);
        }
    }
    let legend = series.iter().enumerate().filter(|(_, s)| !s.label.is_empty());
    let chart = LineChart {
        axis: axis_of(&xs, key),
        panels: panels.collect(),
        legend: legend.map(|(i, one)| entry(i, &one.label, false)).collect(),
    };
    let alt = format!("{title}: {}", heads.join(", "));
    shown((id, title), chart, alt, captions, table)
}

fn panel(measure: &Measure, series: &[Series]) -> Panel {
    let lines: Vec<Line> = series
        .iter()
        .enumerate()
        .map(|(i, one)| {
            let marks = one.points.iter().filter_map(|(x, text, outcome)| {
                let y = (measure.of)(outcome)?;
                let tip = format!("{} {}: {y:.2} at {text}", one.label, measure.name);
                Some(LinePoint { x: *x, y, tip, shown: true, whisker: None })
            });
            line(i, false, marks.collect())
        })
        .collect();
    let ys: Vec<f64> =
        lines.iter().flat_map(|line| line.points.iter().map(|mark| mark.y)).collect();
    let scale = if measure.log { Scale::log(ys) } else { Scale::from_zero(ys) };
    Panel {
        axis: Axis::new(scale, 5, measure.label, format::plain),
        height: HEIGHT,
        lines,
        levels: Vec::new(),
    }
}

/// Where a swept value stands on an axis.
fn position(text: &str) -> Option<f64> {
    text.parse::<model::Rate>().map(|rate| rate.0).ok()
}
