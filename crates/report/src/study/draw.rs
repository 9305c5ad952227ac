//! A study's figure as a chart: columns or lines, a colour a series, a panel a level, intervals
//! as whiskers, outliers and published numbers as marks of their own.

use analyse::answer::quantity;
use model::Origin;
use model::design::FigureKind;

use super::plot::{Plot, PlotPoint, PlotValue};
use super::tables;
use super::units::{tick, written};
use crate::charts::ShownFigure;
use crate::figure::{
    Axis, Chart, Column, ColumnChart, ColumnGroup, ColumnPanel, ColumnPoint, Entry, Line,
    LineChart, LinePoint, Panel, Scale, Shape,
};
use crate::overview::REPEATS;
use crate::tables::origin_name;

const HEIGHT: f64 = 160.0;
/// The ratio of the greatest to the least value from which on an axis is logarithmic.
const LOG_FROM: f64 = 50.0;

pub(super) fn shown(plotted: &Plot) -> ShownFigure {
    let chart = match plotted.kind {
        FigureKind::Bars => Chart::Columns(columns(plotted)),
        FigureKind::Lines => Chart::Lines(lines(plotted)),
    };
    let measured = plotted.points.iter().filter_map(|point| match &point.value {
        PlotValue::Measured { of, outliers, .. } => Some((of, outliers)),
        PlotValue::Published { .. } => None,
    });
    let (mut repeated, mut single, mut odd) = (false, false, false);
    let mut within = false;
    for (of, outliers) in measured {
        repeated |= of.n > 1;
        single |= of.n == 1 && of.interval().is_err();
        within |= of.n == 1 && of.interval().is_ok();
        odd |= !outliers.is_empty();
    }
    let mut captions = vec![match (repeated, single) {
        (true, false) => "Medians of the valid runs with their 95 % intervals.".to_owned(),
        (true, true) => {
            "Medians of the valid runs with their 95 % intervals; one run has none.".to_owned()
        }
        (false, true) => "Single runs, which have no interval.".to_owned(),
        (false, false) => "Single runs.".to_owned(),
    }];
    if within {
        captions.push(
            "The 95 % interval of a single run is from within it: how another run would differ is \
             not in it."
                .to_owned(),
        );
    }
    if plotted.origin != Origin::Measured {
        captions
            .insert(0, format!("All of this is {}, not measured.", origin_name(plotted.origin)));
    }
    if odd {
        captions.push("Hollow circles: outliers, which still count.".to_owned());
    }
    if let Some(source) = &plotted.source {
        captions.push(format!("Hollow diamonds: published, not measured here; {source}."));
    }
    captions.extend(plotted.notes.iter().cloned());
    let over = if plotted.panels.len() > 1 { ", a panel each for several levels" } else { "" };
    ShownFigure {
        id: plotted.id.clone(),
        title: plotted.title.clone(),
        alt: format!("{} over {}{over}", plotted.y, plotted.x),
        captions,
        cautions: Vec::new(),
        chart,
        data: tables::plotted(plotted),
        small: false,
    }
}

/// The tooltip of a point.
fn tip(plotted: &Plot, point: &PlotPoint) -> String {
    let series = &plotted.series[point.series];
    let panel = &plotted.panels[point.panel];
    let place = [panel.as_str(), series.as_str()].into_iter().filter(|part| !part.is_empty());
    let mut place: Vec<String> = place.map(str::to_owned).collect();
    place.push(format!("{} {}", plotted.x, plotted.xs[point.x]));
    let place = place.join(", ");
    match &point.value {
        PlotValue::Published { y, read, .. } => {
            let read = if read.is_empty() { String::new() } else { format!(", {read}") };
            format!("{place}: {} published{read}", written(*y, &plotted.unit))
        }
        PlotValue::Measured { of, .. } => {
            let interval = match of.interval() {
                Ok(i) => format!(
                    ", 95 % {} to {}",
                    written(i.low, &plotted.unit),
                    written(i.high, &plotted.unit)
                ),
                Err(_) => String::new(),
            };
            let runs = if of.n == 1 { "1 run".to_owned() } else { format!("{} runs", of.n) };
            let kind = match plotted.origin {
                Origin::Measured => String::new(),
                other => format!(", {}", origin_name(other)),
            };
            format!("{place}: {}{interval}, {runs}{kind}", written(of.median, &plotted.unit))
        }
    }
}

fn whisker(value: &PlotValue) -> Option<(f64, f64)> {
    match value {
        PlotValue::Measured { of, .. } => of.interval().ok().map(|i| (i.low, i.high)),
        PlotValue::Published { .. } => None,
    }
}

fn highest(plotted: &Plot) -> impl Iterator<Item = f64> + '_ {
    plotted.points.iter().flat_map(|point| match &point.value {
        PlotValue::Published { y, .. } => vec![*y],
        PlotValue::Measured { of, values, outliers } => {
            let ends = whisker(&point.value).map_or([of.median; 2], |(low, high)| [low, high]);
            let odd = outliers.iter().map(|at| values[*at]);
            ends.into_iter().chain(odd).chain([of.median]).collect()
        }
    })
}

fn axis(plotted: &Plot, scale: Scale, count: usize) -> Axis {
    let label = match plotted.unit.as_str() {
        "" => plotted.y.clone(),
        unit => format!("{}, {}", plotted.y, unit.replace("us", "µs")),
    };
    let ticks = scale.ticks(count).into_iter().map(|v| (v, tick(v, &plotted.unit)));
    Axis { ticks: ticks.collect(), scale, label }
}

fn legend(plotted: &Plot, line: bool) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    if plotted.series.len() > 1 || plotted.series.iter().any(|name| !name.is_empty()) {
        entries.extend(plotted.series.iter().enumerate().map(|(color, name)| Entry {
            label: name.clone(),
            color: Some(color),
            shape: line.then(|| Shape::nth(color)),
            line: line.then_some(false),
            hollow: false,
        }));
    }
    let published = |point: &PlotPoint| matches!(point.value, PlotValue::Published { .. });
    if plotted.points.iter().any(published) {
        entries.push(Entry {
            label: "published".to_owned(),
            color: None,
            shape: Some(Shape::Diamond),
            line: line.then_some(true),
            hollow: true,
        });
    }
    entries
}

fn columns(plotted: &Plot) -> ColumnChart {
    let panel = |panel: usize| {
        let group = |x: usize| {
            let column = |series: usize| {
                let mut column = Column { color: series, ..Column::default() };
                let here = plotted
                    .points
                    .iter()
                    .filter(|p| (p.panel, p.x, p.series) == (panel, x, series));
                for point in here {
                    column_of(plotted, point, &mut column);
                }
                column
            };
            ColumnGroup {
                label: plotted.xs[x].clone(),
                columns: (0..plotted.series.len()).map(column).collect(),
            }
        };
        ColumnPanel {
            label: plotted.panels[panel].clone(),
            groups: (0..plotted.xs.len()).map(group).collect(),
        }
    };
    ColumnChart {
        panels: (0..plotted.panels.len()).map(panel).collect(),
        axis: axis(plotted, Scale::from_zero(highest(plotted)), 4),
        group_label: plotted.x.clone(),
        legend: legend(plotted, false),
    }
}

fn column_of(plotted: &Plot, point: &PlotPoint, column: &mut Column) {
    match &point.value {
        PlotValue::Measured { of, values, outliers } => {
            column.bar = Some((of.median, tip(plotted, point)));
            column.whisker = whisker(&point.value);
            column.points.extend(outliers.iter().take(REPEATS).map(|at| ColumnPoint {
                y: values[*at],
                shape: Shape::Circle,
                hollow: false,
                tip: run_apart(values[*at], plotted),
            }));
        }
        PlotValue::Published { y, .. } => column.points.push(ColumnPoint {
            y: *y,
            shape: Shape::Diamond,
            hollow: true,
            tip: tip(plotted, point),
        }),
    }
}

fn lines(plotted: &Plot) -> LineChart {
    // Levels that are quantities are placed by value, others at equal distances.
    let places: Vec<f64> = plotted
        .xs
        .iter()
        .map(|x| quantity(x))
        .collect::<Option<Vec<f64>>>()
        .unwrap_or_else(|| (0..plotted.xs.len()).map(|i| i as f64 + 1.0).collect());
    let scale = x_scale(&places);
    let ticks = places.iter().zip(&plotted.xs).map(|(at, name)| (*at, name.clone())).collect();
    let x_axis = Axis { scale, ticks, label: plotted.x.clone() };
    let values: Vec<f64> = highest(plotted).collect();
    let (least, most) = (
        values.iter().copied().fold(f64::INFINITY, f64::min),
        values.iter().copied().fold(0.0, f64::max),
    );
    let y_scale = match least > 0.0 && most / least > LOG_FROM {
        true => Scale::log(values),
        false => Scale::from_zero(values),
    };
    let y_axis = axis(plotted, y_scale, 5);
    let panel = |panel: usize| {
        let mut drawn = Vec::new();
        for series in 0..plotted.series.len() {
            for published in [false, true] {
                let own = plotted.points.iter().filter(|p| (p.panel, p.series) == (panel, series));
                let own =
                    own.filter(|p| matches!(p.value, PlotValue::Published { .. }) == published);
                let own: Vec<&PlotPoint> = own.collect();
                drawn.extend(apart(plotted, &own, &places));
                let mut points: Vec<LinePoint> =
                    own.iter().map(|point| point_of(plotted, point, &places)).collect();
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
                if !points.is_empty() {
                    let shape = if published { Shape::Diamond } else { Shape::nth(series) };
                    drawn.push(Line {
                        color: series,
                        dashed: published,
                        hollow: published,
                        shape,
                        joined: true,
                        points,
                    });
                }
            }
        }
        let own = &plotted.panels[panel];
        let label = match own.is_empty() {
            true => y_axis.label.clone(),
            false => format!("{own}: {}", y_axis.label),
        };
        Panel {
            axis: Axis { label, ..y_axis.clone() },
            height: HEIGHT,
            lines: drawn,
            levels: Vec::new(),
        }
    };
    LineChart {
        axis: x_axis,
        panels: (0..plotted.panels.len()).map(panel).collect(),
        legend: legend(plotted, true),
    }
}

/// Outliers of a series, as points that are not joined.
fn apart(plotted: &Plot, own: &[&PlotPoint], places: &[f64]) -> Option<Line> {
    let odd = |point: &&PlotPoint| -> Vec<LinePoint> {
        let PlotValue::Measured { values, outliers, .. } = &point.value else { return Vec::new() };
        let one = |at: &usize| LinePoint {
            x: places[point.x],
            y: values[*at],
            tip: run_apart(values[*at], plotted),
            shown: true,
            whisker: None,
        };
        outliers.iter().take(REPEATS).map(one).collect()
    };
    let points: Vec<LinePoint> = own.iter().flat_map(odd).collect();
    let color = own.first()?.series;
    let (dashed, hollow, joined) = (false, true, false);
    (!points.is_empty()).then_some(Line {
        color,
        dashed,
        hollow,
        shape: Shape::Circle,
        joined,
        points,
    })
}

fn run_apart(value: f64, plotted: &Plot) -> String {
    format!("an outlier: {}", written(value, &plotted.unit))
}

fn x_scale(places: &[f64]) -> Scale {
    let low = places.iter().copied().fold(f64::INFINITY, f64::min);
    let high = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match (low, high) {
        (l, h) if l > 0.0 && h / l >= 8.0 => Scale::log(places.iter().copied()),
        (l, h) if l > 0.0 && h > l => {
            Scale::Linear { low: l - (h - l) * 0.06, high: h + (h - l) * 0.04 }
        }
        (l, h) if h > l => Scale::Linear { low: l, high: h * 1.04 },
        (l, _) if l.is_finite() => Scale::Linear { low: l - 1.0, high: l + 1.0 },
        _ => Scale::Linear { low: 0.0, high: 1.0 },
    }
}

fn point_of(plotted: &Plot, point: &PlotPoint, places: &[f64]) -> LinePoint {
    let y = match &point.value {
        PlotValue::Measured { of, .. } => of.median,
        PlotValue::Published { y, .. } => *y,
    };
    LinePoint {
        x: places[point.x],
        y,
        tip: tip(plotted, point),
        shown: true,
        whisker: whisker(&point.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_levels_have_room() {
        for places in
            [vec![1.0], vec![0.0, 5.0], vec![1.0, 2.0, 4.0, 8.0], vec![10.0, 20.0], vec![]]
        {
            let scale = x_scale(&places);
            assert!(places.iter().all(|x| (0.0..=1.0).contains(&scale.at(*x))), "{places:?}");
        }
        assert!(matches!(x_scale(&[1.0, 8.0]), Scale::Log { .. }));
    }
}
