//! Lines, axes and tables of the figures of simulations.

use crate::charts::ShownFigure;
use crate::figure::{Axis, Chart, Entry, Line, LineChart, LinePoint, Scale, Shape};
use crate::format;
use crate::table::{ALWAYS, Align, Table};

/// Of a panel.
pub const HEIGHT: f64 = 150.0;

/// A figure with its id and title.
pub fn shown(
    (id, title): (&str, &str),
    chart: LineChart,
    alt: String,
    captions: Vec<String>,
    data: Table,
) -> ShownFigure {
    ShownFigure {
        id: id.to_owned(),
        title: title.to_owned(),
        alt,
        captions,
        cautions: Vec::new(),
        chart: Chart::Lines(chart),
        data,
        small: false,
    }
}

pub fn line(color: usize, hollow: bool, mut points: Vec<LinePoint>) -> Line {
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Line { color, dashed: hollow, hollow, shape: Shape::nth(color), joined: true, points }
}

pub fn entry(color: usize, label: &str, hollow: bool) -> Entry {
    Entry {
        label: label.to_owned(),
        color: Some(color),
        shape: Some(Shape::nth(color)),
        line: Some(hollow),
        hollow,
    }
}

/// Logarithmic where values double, from zero otherwise.
pub fn axis_of(xs: &[f64], label: &str) -> Axis {
    let least = xs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = xs.iter().copied().fold(0.0, f64::max);
    let scale = match least > 0.0 && most / least > 12.0 {
        true => Scale::log(xs.iter().copied()),
        false => Scale::from_zero(xs.iter().copied()),
    };
    Axis::new(scale, 6, label, format::count_short)
}

pub fn value_table(key: &str, heads: &[&str]) -> Table {
    let mut table = Table::new("").column(key, Align::Right, ALWAYS);
    for head in heads {
        table = table.column(*head, Align::Decimal, ALWAYS);
    }
    table
}
