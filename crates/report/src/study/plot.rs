//! The numbers of one of the study's figures.

use analyse::Description;
use model::Origin;
use model::design::FigureKind;

/// A figure before it is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    pub id: String,
    pub title: String,
    pub kind: FigureKind,
    /// The name of the horizontal axis, and its values in order.
    pub x: String,
    pub xs: Vec<String>,
    /// The metric by its name of `--json`, and its unit's symbol.
    pub y: String,
    pub unit: String,
    /// The origin of its own numbers; published ones are marked separately.
    pub origin: Origin,
    /// In the order of their colours; one empty name where there is one series.
    pub series: Vec<String>,
    /// In their order; one empty name where there is one panel.
    pub panels: Vec<String>,
    pub points: Vec<PlotPoint>,
    /// The source of the published numbers.
    pub source: Option<String>,
    /// Values that could not be shown, with the reason.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PlotPoint {
    pub x: usize,
    pub series: usize,
    pub panel: usize,
    pub value: PlotValue,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PlotValue {
    /// Of runs; the origin is [`Plot::origin`].
    Measured { of: Description, values: Vec<f64>, outliers: Vec<usize> },
    /// `read`: its place in the source; `nth`: which series and point of the study's published
    /// ones.
    Published { y: f64, read: String, nth: (usize, usize) },
}
