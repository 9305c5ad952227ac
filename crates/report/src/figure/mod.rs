//! Figures as SVG: drawn here whole, so that they are there without any script.
//!
//! Colours, fonts and strokes are classes (`c0` … `c7`, `grid`, `tick` …) that the page's
//! style sheet gives meaning to: one drawing serves light, dark and print. Each thing that
//! has a value is an element of class `m` whose `<title>` is that value in words.

mod columns;
mod legend;
mod lines;
mod marker;
mod rows;
mod scale;
mod standalone;
mod svg;
mod ticks;

pub use columns::{Column, ColumnChart, ColumnGroup, ColumnPanel, ColumnPoint};
pub use legend::Entry;
pub use lines::{LimitLine, Line, LineChart, LinePoint, Panel};
pub use marker::Shape;
pub use rows::{Bar, Dot, Group, Row, RowChart};
pub use scale::{Axis, Scale, percentile_position};
pub use standalone::standalone;
pub(crate) use svg::escaped;

/// Width that a figure is drawn at for a desk and for paper.
pub const WIDE: f64 = 880.0;
/// Width that a figure is drawn at for a phone, and for one of several beside each other.
pub const NARROW: f64 = 420.0;
/// Colours before they repeat; safe for the colour-blind in this order.
pub const COLORS: usize = 8;

pub enum Chart {
    Rows(RowChart),
    Lines(LineChart),
    Columns(ColumnChart),
}

impl Chart {
    /// One `<svg>` element; `alt` says in words what is seen.
    pub fn draw(&self, width: f64, alt: &str) -> String {
        match self {
            Chart::Rows(chart) => chart.draw(width, alt),
            Chart::Lines(chart) => chart.draw(width, alt),
            Chart::Columns(chart) => chart.draw(width, alt),
        }
    }
}
