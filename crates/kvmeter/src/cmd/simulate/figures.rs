//! Figures of simulation results.

use std::path::Path;

use cachesim::SimOutcome;
use cachesim::thesis::{FigureMetric, ThesisFigure};
use cachesim::validate::{Metric, Validation};
use report::figure::{Axis, Chart, Entry, Line, LineChart, LinePoint as Mark, Panel, Scale, Shape};
use report::format;
use report::html::{Drawing, sheet};
use report::table::{ALWAYS, Align, Table};

use super::sweep::{KeySweep, SweepPoint};
use super::tables::number;

const HEIGHT: f64 = 150.0;
const SIMULATED: &str = "Every number is simulated, none is measured; see docs/cache-simulation.md for what the model \
     leaves out.";

/// One measure of an outcome.
struct Measure {
    name: &'static str,
    label: &'static str,
    of: fn(&SimOutcome) -> Option<f64>,
    log: bool,
}

const WRITE_HITS: Measure = Measure {
    name: "PCIe write hit %",
    label: "lines that the card wrote and the cache had, %",
    of: |outcome| outcome.pcie_write_hit_percent,
    log: false,
};
const READ_HITS: &str = "lines that the card read and the cache had, %";
const WORKER_MISSES: Measure = Measure {
    name: "LLC miss %",
    label: "misses of the workers at the last level, %",
    of: |outcome| outcome.worker.llc_miss_percent,
    log: false,
};
const P99: Measure = Measure {
    name: "p99 us",
    label: "latency, 99th percentile, us",
    of: |outcome| outcome.latency_us.as_ref().map(|latency| latency.p99),
    log: true,
};
const MEAN: Measure = Measure {
    name: "mean us",
    label: "mean latency, us",
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
    hollow: bool,
}

/// Writes a page; an existing file is replaced.
pub fn write(path: &Path, title: &str, drawings: Vec<Drawing>) -> anyhow::Result<()> {
    let page = sheet(title, &[SIMULATED.to_owned()], drawings);
    crate::output_files::write(path, page.as_bytes())
        .map_err(|error| crate::exit::request(format!("--figures {error}")))
}

/// One figure over the first key that was swept over several values.
pub fn swept(sweep: &KeySweep, points: &[SweepPoint], outcomes: &[SimOutcome]) -> Vec<Drawing> {
    let key = sweep.varied().first().map(|key| (*key).to_owned());
    let mut series: Vec<Series> = Vec::new();
    for (i, (point, outcome)) in points.iter().zip(outcomes).enumerate() {
        let own = |name: &String| Some(name) == key.as_ref();
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
            None => series.push(Series { label, points: vec![mark], hollow: false }),
        }
    }
    let axis = key.unwrap_or_else(|| "policy".to_owned());
    let measures = [WRITE_HITS, WORKER_MISSES, P99, MEMORY, NEIGHBOURS];
    vec![draw("swept", &format!("By {axis}"), &axis, &measures, &series, Vec::new())]
}

/// Both series, published next to simulated.
pub fn validation(validation: &Validation) -> Vec<Drawing> {
    let mut names: Vec<&str> =
        validation.points.iter().map(|point| point.series.as_str()).collect();
    names.dedup();
    let figure = |name: &&str| {
        let points = validation.points.iter().filter(|point| point.series == *name);
        let reads = points.clone().any(|point| point.metric == Metric::Reads);
        let label = if reads { READ_HITS } else { WRITE_HITS.label };
        let mut lines = [("published", true, Vec::new()), ("simulated", false, Vec::new())];
        let mut table = value_table(name, &["published %", "simulated %"]);
        for point in points {
            let x = point.varied();
            lines[0].2.push((x, point.published_percent));
            lines[1].2.push((x, point.simulated_percent));
            table.row(vec![
                format::plain(x).into(),
                number(point.published_percent, 2).into(),
                number(point.simulated_percent, 2).into(),
            ]);
        }
        let all = lines.iter().flat_map(|(_, _, points)| points.iter());
        let (xs, ys): (Vec<f64>, Vec<f64>) = all.copied().unzip();
        let axis = axis_of(&xs, name);
        let legend =
            lines.iter().enumerate().map(|(i, (label, hollow, _))| entry(i, label, *hollow));
        let chart = LineChart {
            axis,
            legend: legend.collect(),
            panels: vec![Panel {
                axis: Axis::new(Scale::from_zero(ys), 5, label, format::plain),
                height: HEIGHT,
                levels: Vec::new(),
                lines: lines
                    .iter()
                    .enumerate()
                    .map(|(i, (label, hollow, points))| {
                        let marks = points.iter().map(|(x, y)| Mark {
                            x: *x,
                            y: *y,
                            tip: format!("{label}: {y:.2} % at {x}"),
                            shown: true,
                            whisker: None,
                        });
                        line(i, *hollow, marks.collect())
                    })
                    .collect(),
            }],
        };
        Drawing {
            id: (*name).to_owned(),
            title: format!("PCIe {} hits by {name}", if reads { "read" } else { "write" }),
            chart: Chart::Lines(chart),
            alt: format!("Published and simulated hit rates by {name}"),
            captions: vec![format!(
                "Published: {}. Hollow: published, measured by others.",
                validation.source
            )],
            data: table,
        }
    };
    names.iter().map(figure).collect()
}

/// The figures of the thesis.
pub fn thesis(plans: &[ThesisFigure], outcomes: &[SimOutcome]) -> Vec<Drawing> {
    let mut rest = outcomes.iter();
    let mut drawings = Vec::new();
    for plan in plans {
        let mut all = Vec::new();
        for line in &plan.lines {
            let values = plan.values.iter().zip(rest.by_ref());
            let points = values.map(|(text, outcome)| {
                (position(text).unwrap_or_default(), text.clone(), outcome.clone())
            });
            all.push(Series { label: line.label.clone(), points: points.collect(), hollow: false });
        }
        let measures = match plan.metric {
            FigureMetric::MissRate => vec![WORKER_MISSES],
            FigureMetric::Latency => vec![MEAN, P99],
            FigureMetric::Both => vec![MEAN, WORKER_MISSES],
        };
        let id = format!("figure-{}", plan.id.replace('.', "-"));
        let title = format!("Figure {}: {}", plan.id, plan.title);
        let caption = vec![
            "The thesis prints its figures without numbers: nothing stands beside these."
                .to_owned(),
        ];
        drawings.push(draw(&id, &title, plan.key, &measures, &all, caption));
    }
    drawings
}

fn draw(
    id: &str,
    title: &str,
    key: &str,
    measures: &[Measure],
    series: &[Series],
    captions: Vec<String>,
) -> Drawing {
    let xs: Vec<f64> = series.iter().flat_map(|s| s.points.iter().map(|point| point.0)).collect();
    let shown: Vec<&Measure> = measures
        .iter()
        .filter(|m| series.iter().any(|s| s.points.iter().any(|point| (m.of)(&point.2).is_some())))
        .collect();
    let panels = shown.iter().map(|measure| panel(measure, series));
    let heads: Vec<&str> = shown.iter().map(|measure| measure.name).collect();
    let mut table = value_table(key, &heads).column("line", Align::Left, ALWAYS);
    for one in series {
        for (_, text, outcome) in &one.points {
            let mut cells = vec![text.clone().into()];
            for measure in &shown {
                cells.push((measure.of)(outcome).map_or(String::new(), |v| number(v, 2)).into());
            }
            cells.push(one.label.clone().into());
            table.row(cells);
        }
    }
    let legend = series.iter().enumerate().filter(|(_, s)| !s.label.is_empty());
    Drawing {
        id: id.to_owned(),
        title: title.to_owned(),
        alt: format!("{title}: {}", heads.join(", ")),
        captions,
        data: table,
        chart: Chart::Lines(LineChart {
            axis: axis_of(&xs, key),
            panels: panels.collect(),
            legend: legend.map(|(i, s)| entry(i, &s.label, s.hollow)).collect(),
        }),
    }
}

fn panel(measure: &Measure, series: &[Series]) -> Panel {
    let lines: Vec<Line> = series
        .iter()
        .enumerate()
        .map(|(i, one)| {
            let marks = one.points.iter().filter_map(|(x, text, outcome)| {
                let y = (measure.of)(outcome)?;
                let tip = format!("{} {}: {y:.2} at {text}", one.label, measure.name);
                Some(Mark { x: *x, y, tip, shown: true, whisker: None })
            });
            line(i, one.hollow, marks.collect())
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

fn line(color: usize, hollow: bool, mut points: Vec<Mark>) -> Line {
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Line { color, dashed: hollow, hollow, shape: Shape::nth(color), joined: true, points }
}

fn entry(color: usize, label: &str, hollow: bool) -> Entry {
    Entry {
        label: label.to_owned(),
        color: Some(color),
        shape: Some(Shape::nth(color)),
        line: Some(hollow),
        hollow,
    }
}

/// Logarithmic where values double, from zero otherwise.
fn axis_of(xs: &[f64], label: &str) -> Axis {
    let least = xs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = xs.iter().copied().fold(0.0, f64::max);
    let scale = match least > 0.0 && most / least > 12.0 {
        true => Scale::log(xs.iter().copied()),
        false => Scale::from_zero(xs.iter().copied()),
    };
    Axis::new(scale, 6, label, format::count_short)
}

fn value_table(key: &str, heads: &[&str]) -> Table {
    let mut table = Table::new("").column(key, Align::Right, ALWAYS);
    for head in heads {
        table = table.column(*head, Align::Decimal, ALWAYS);
    }
    table
}

/// Where a swept value stands on an axis.
fn position(text: &str) -> Option<f64> {
    text.parse::<model::Rate>().map(|rate| rate.0).ok()
}
