//! Simulations beside what others published.

use cachesim::validate::{Metric, Validation};

use super::figures::WRITE_HITS;
use super::lines::{HEIGHT, axis_of, entry, line, shown, value_table};
use super::tables::number;
use crate::charts::ShownFigure;
use crate::figure::{Axis, LineChart, LinePoint, Panel, Scale};
use crate::format;
use crate::table::{ALWAYS, Align, Cell, Table, Tone};

const READ_HITS: &str = "lines that the card read and the cache had, %";

/// A row a published point.
pub fn table(validation: &Validation) -> Table {
    let mut table = Table::new("PCIe hits, simulated and published")
        .column("series", Align::Left, ALWAYS)
        .column("packet B", Align::Right, ALWAYS)
        .column("cores", Align::Right, ALWAYS)
        .column("packets/s", Align::Right, 5)
        .column("descriptors", Align::Right, ALWAYS)
        .column("ways", Align::Right, ALWAYS)
        .column("published %", Align::Decimal, ALWAYS)
        .column("simulated %", Align::Decimal, ALWAYS)
        .column("error", Align::Decimal, ALWAYS);
    for point in &validation.points {
        let bad = point.error_points.abs() > validation.point_limit_points;
        table.row(vec![
            point.series.clone().into(),
            point.packet_bytes.to_string().into(),
            point.workers.to_string().into(),
            point.rate_packets_s.map_or("line rate".to_owned(), format::count_short).into(),
            point.receive_descriptors.to_string().into(),
            point.ways.to_string().into(),
            number(point.published_percent, 2).into(),
            number(point.simulated_percent, 2).into(),
            Cell::new(
                format!("{:+.2}", point.error_points),
                if bad { Tone::Bad } else { Tone::Plain },
            ),
        ]);
    }
    for series in &validation.series {
        table.note(format!(
            "{}: {} points, mean error {:.2}, largest {:.2}{}.",
            series.series,
            series.points,
            series.mean_error_points,
            series.max_error_points,
            if series.seen { ", known while the model was made" } else { "" }
        ));
    }
    table.note(format!(
        "Mean error {:.2} points (limit {:.0}), largest {:.2} (limit {:.0}): {}.",
        validation.mean_error_points,
        validation.mean_limit_points,
        validation.max_error_points,
        validation.point_limit_points,
        if validation.valid { "valid" } else { "not valid" }
    ));
    table.note(format!("Published: {}.", validation.source));
    table
}

/// Both series, published next to simulated.
pub fn figures(validation: &Validation) -> Vec<ShownFigure> {
    let mut names: Vec<&str> =
        validation.points.iter().map(|point| point.series.as_str()).collect();
    names.dedup();
    let figure = |name: &&str| {
        let points = validation.points.iter().filter(|point| point.series == *name);
        let key = points.clone().next().map_or("", |point| point.by.name());
        let reads = points.clone().any(|point| point.metric == Metric::Reads);
        let label = if reads { READ_HITS } else { WRITE_HITS.label };
        let mut lines = [("published", true, Vec::new()), ("simulated", false, Vec::new())];
        let mut table = value_table(key, &["published %", "simulated %"]);
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
        let axis = axis_of(&xs, key);
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
                        let marks = points.iter().map(|(x, y)| LinePoint {
                            x: *x,
                            y: *y,
                            tip: format!("{label}: {y:.2} % at {}", format::plain(*x)),
                            shown: true,
                            whisker: None,
                        });
                        line(i, *hollow, marks.collect())
                    })
                    .collect(),
            }],
        };
        let what = if reads { "read" } else { "write" };
        let title = match *name == key {
            true => format!("PCIe {what} hits by {key}"),
            false => format!("PCIe {what} hits by {key}: {name}"),
        };
        let alt = format!("Published and simulated hit rates by {key}");
        let caption =
            format!("Published: {}. Hollow: published, measured by others.", validation.source);
        shown((name, &title), chart, alt, vec![caption], table)
    };
    names.iter().map(figure).collect()
}
