//! A described workload as figures: the miss ratio by cache size, popularity by rank, and the load
//! over time.

use workload::describe::{
    Drift, DriftDistance, MissRatioCurve, PopularitySummary, TraceDescription,
};
use workload::fit::Resemblance;
use workload::trace::TraceTiming;

use super::{arrivals, miss_ratio, popularity};
use crate::charts::ShownFigure;
use crate::figure::{Axis, Chart, Entry, Line, LineChart, LinePoint, Panel, Scale, Shape};
use crate::format;
use crate::table::Table;

const HEIGHT: f64 = 260.0;
const LOW: f64 = 160.0;

/// The figures of a trace, with what was generated like it where that was compared.
pub(super) fn figures(
    description: &TraceDescription,
    timing: TraceTiming,
    check: Option<&Resemblance>,
) -> Vec<ShownFigure> {
    let mut figures = Vec::new();
    figures.extend(description.miss_ratio.as_ref().map(|curve| miss_ratios(curve, check)));
    figures.push(ranks(description, &description.popularity));
    figures.extend(description.drift.as_ref().map(|drift| drifting(description, drift)));
    if description.timeline.len() > 1 {
        figures.push(over_time(description, timing));
    }
    figures
}

fn miss_ratios(curve: &MissRatioCurve, check: Option<&Resemblance>) -> ShownFigure {
    let share = |value: f64| format::percent(value);
    let points = |of: &str, values: &mut dyn Iterator<Item = (f64, f64)>| -> Vec<LinePoint> {
        let point = |(x, y)| {
            let tip = format!("{of}: {} of reads miss with {}", share(y), share(x));
            LinePoint { x, y, tip, shown: false, whisker: None }
        };
        values.map(point).collect()
    };
    let by_items = &mut curve.points.iter().map(|point| (point.share, point.by_items));
    let by_bytes = &mut curve.points.iter().map(|point| (point.share, point.by_bytes));
    let mut series = vec![
        ("in items", false, points("in items", by_items)),
        ("in bytes", false, points("in bytes", by_bytes)),
    ];
    if let Some(check) = check.filter(|check| !check.miss_ratios.is_empty()) {
        let all = &mut check.miss_ratios.iter().map(|of| (of.share, of.generated));
        series.push(("generated, in items", true, points("generated", all)));
    }
    let legend = series
        .iter()
        .enumerate()
        .map(|(color, (label, dashed, _))| entry(label, color, *dashed))
        .collect();
    let lines = series
        .into_iter()
        .enumerate()
        .map(|(color, (_, dashed, points))| line(color, dashed, points))
        .collect();
    let y = Axis::new(Scale::Linear { low: 0.0, high: 1.0 }, 5, "reads that miss", share);
    let x = Scale::Linear { low: 0.0, high: 1.0 };
    ShownFigure {
        captions: vec![
            "An LRU cache of this share of the working set. What is missed is filled.".to_owned(),
        ],
        ..shown(
            ("miss-ratio", "Miss ratio by the size of the cache"),
            "Lines: the share of reads that miss over the size of an LRU cache",
            LineChart {
                axis: Axis::new(x, 5, "share of the working set", share),
                panels: vec![Panel { axis: y, height: HEIGHT, lines, levels: Vec::new() }],
                legend,
            },
            miss_ratio::table(curve),
        )
    }
}

fn ranks(description: &TraceDescription, popularity: &PopularitySummary) -> ShownFigure {
    let points: Vec<LinePoint> = popularity
        .ranks
        .iter()
        .map(|point| {
            let (rank, requests) = (point.rank, point.requests as f64);
            let tip = format!(
                "rank {}: {} requests",
                format::count_short(rank),
                format::count(point.requests)
            );
            LinePoint { x: rank, y: requests, tip, shown: true, whisker: None }
        })
        .collect();
    let of = |values: Vec<f64>, label| Axis::new(Scale::log(values), 6, label, format::count_short);
    let x = of(points.iter().map(|point| point.x).collect(), "rank of the key");
    let y = of(points.iter().map(|point| point.y).collect(), "requests");
    let law = popularity.zipf.as_ref().map(|zipf| {
        let verdict = if zipf.is_zipf { "It is Zipf's law" } else { "It is not Zipf's law" };
        format!("{verdict}; the most likely exponent is {:.3}.", zipf.theta)
    });
    let panel =
        Panel { axis: y, height: HEIGHT, lines: vec![line(0, false, points)], levels: Vec::new() };
    ShownFigure {
        captions: law.into_iter().collect(),
        ..shown(
            ("ranks", "Requests by rank"),
            "A line: requests of a key over its rank, both logarithmic",
            LineChart { axis: x, panels: vec![panel], legend: Vec::new() },
            popularity::table(description),
        )
    }
}

fn drifting(description: &TraceDescription, drift: &Drift) -> ShownFigure {
    let whole = DriftDistance { requests: 0, in_common: drift.within };
    let point = |point: &DriftDistance| {
        let (x, y) = (point.requests as f64, point.in_common);
        let far = format::count_short(x);
        let tip = format!("{} in common {far} requests apart", format::percent(y));
        LinePoint { x, y, tip, shown: true, whisker: None }
    };
    let points: Vec<LinePoint> =
        [&whole].into_iter().chain(&drift.by_distance).map(point).collect();
    let farthest = points.last().map_or(1.0, |point| point.x);
    let y = Axis::new(Scale::Linear { low: 0.0, high: 1.0 }, 5, "in common", format::percent);
    let x = Scale::Linear { low: 0.0, high: farthest };
    let lines = vec![line(0, false, points)];
    ShownFigure {
        captions: vec![
            "The 100 most popular keys of two intervals by their distance; at 0, of two halves of \
             the same one. A line that falls is drift."
                .to_owned(),
        ],
        ..shown(
            ("drift", "Popular keys in common by distance"),
            "A line: the share of the 100 most popular keys that two intervals have in common",
            LineChart {
                axis: Axis::new(x, 5, "requests apart", format::count_short),
                panels: vec![Panel { axis: y, height: LOW, lines, levels: Vec::new() }],
                legend: Vec::new(),
            },
            popularity::table(description),
        )
    }
}

fn over_time(description: &TraceDescription, timing: TraceTiming) -> ShownFigure {
    let timed = timing != TraceTiming::Untimed;
    let at: fn(f64) -> String = if timed { format::seconds } else { format::count_short };
    let of = |value: &dyn Fn(&workload::describe::TimelinePoint) -> f64,
              text: fn(f64) -> String| {
        let point = |point: &workload::describe::TimelinePoint| {
            let (x, y) = (point.begin, value(point));
            LinePoint {
                x,
                y,
                tip: format!("{} from {}", text(y), at(x)),
                shown: false,
                whisker: None,
            }
        };
        description.timeline.iter().map(point).collect::<Vec<LinePoint>>()
    };
    let mut panels = Vec::new();
    let mut panel = |label: &str, points: Vec<LinePoint>, text: fn(f64) -> String| {
        let scale = Scale::from_zero(points.iter().map(|point| point.y));
        let axis = Axis::new(scale, 4, label, text);
        let lines = vec![line(panels.len(), false, points)];
        panels.push(Panel { axis, height: LOW, lines, levels: Vec::new() });
    };
    if timed {
        let rate = of(&|point| point.requests as f64 / point.length, format::rate);
        panel("requests a second", rate, format::count_short);
    }
    // The last interval may be shorter, and its keys are then fewer for that alone.
    let mut keys = of(&|point| point.keys, format::count_short);
    let is_cut = |whole: f64, last: f64| last < whole * 0.99;
    if let [first, .., last] = description.timeline.as_slice()
        && is_cut(first.length, last.length)
    {
        keys.pop();
    }
    panel("distinct keys", keys, format::count_short);
    panel("working set", of(&|point| point.working_set, format::count_short), format::count_short);
    let end = description.timeline.last().map_or(1.0, |last| last.begin + last.length);
    let label = if timed { "time" } else { "requests before" };
    shown(
        ("over-time", if timed { "Over time" } else { "Over the requests" }),
        "Lines over time: requests, distinct keys of an interval, and the keys so far",
        LineChart {
            axis: Axis::new(Scale::Linear { low: 0.0, high: end }, 6, label, at),
            panels,
            legend: Vec::new(),
        },
        arrivals::timeline(description, timing),
    )
}

fn shown((id, title): (&str, &str), alt: &str, chart: LineChart, data: Table) -> ShownFigure {
    ShownFigure {
        id: id.to_owned(),
        title: title.to_owned(),
        alt: alt.to_owned(),
        captions: Vec::new(),
        cautions: Vec::new(),
        chart: Chart::Lines(chart),
        data,
        small: false,
    }
}

fn line(color: usize, dashed: bool, points: Vec<LinePoint>) -> Line {
    Line { color, dashed, hollow: false, shape: Shape::nth(color), joined: true, points }
}

fn entry(label: &str, color: usize, dashed: bool) -> Entry {
    Entry {
        label: label.to_owned(),
        color: Some(color),
        shape: None,
        line: Some(dashed),
        hollow: false,
    }
}
