//! The figures of a set of runs.

mod bars;
mod cost;
mod energy;
mod kernel_counts;
mod latency;
mod percentiles;
mod rates;
mod samples;
mod series;
mod throughput;
mod top_down;

pub use cost::{amplification, cpu};
pub use energy::energy;
pub use kernel_counts::kernel_counts;
pub use latency::latency;
pub use percentiles::percentiles;
pub use rates::rates;
pub use series::series;
pub use throughput::throughput;
pub use top_down::top_down;

use crate::cells::{ReportCell, distinct, title};
use crate::figure::{Chart, Entry, Shape};
use crate::table::Table;

/// A figure with its captions and table.
pub struct ShownFigure {
    /// Unique on the page; the name of a saved file.
    pub id: String,
    pub title: String,
    /// A description of the drawing.
    pub alt: String,
    /// How to read it and how it was obtained.
    pub captions: Vec<String>,
    /// Invalidity and warnings of its runs.
    pub cautions: Vec<Caution>,
    pub chart: Chart,
    /// The same values as text.
    pub data: Table,
    /// One of several figures in a row.
    pub small: bool,
}

pub struct Caution {
    pub invalid: bool,
    pub text: String,
}

/// The series of all cells in the order of their colours.
pub struct CellSeries(Vec<String>);

impl CellSeries {
    pub fn of(cells: &[ReportCell]) -> Self {
        CellSeries(distinct(cells, |cell| &cell.series))
    }

    pub fn color(&self, name: &str) -> usize {
        self.0.iter().position(|known| known == name).unwrap_or(0)
    }

    pub fn several(&self) -> bool {
        self.0.len() > 1
    }

    /// One entry for each series of `cells`; none if there is only one.
    fn legend(&self, cells: &[&ReportCell]) -> Vec<Entry> {
        if !self.several() {
            return Vec::new();
        }
        let used = |name: &&String| cells.iter().any(|cell| &cell.series == *name);
        let entries = self.0.iter().filter(used).map(|name| Entry {
            label: name.clone(),
            color: Some(self.color(name)),
            shape: None,
            line: None,
            hollow: false,
        });
        entries.collect()
    }
}

/// The legend entry of a hollow mark.
fn invalid_entry(shape: Shape) -> Entry {
    Entry {
        label: "invalid run".to_owned(),
        color: None,
        shape: Some(shape),
        line: None,
        hollow: true,
    }
}

/// Whether any run of the cells is invalid.
fn any_invalid(cells: &[&ReportCell]) -> bool {
    cells.iter().flat_map(|cell| &cell.runs).any(|run| !run.valid())
}

/// Cells by category, in order of appearance.
fn by_category<'c, 'a>(cells: &[&'c ReportCell<'a>]) -> Vec<(&'c str, Vec<&'c ReportCell<'a>>)> {
    let mut groups: Vec<(&str, Vec<&ReportCell>)> = Vec::new();
    for cell in cells {
        match groups.iter_mut().find(|(name, _)| *name == cell.category) {
            Some((_, members)) => members.push(cell),
            None => groups.push((&cell.category, vec![cell])),
        }
    }
    groups
}

/// A name as part of an identifier.
pub(crate) fn slug(text: &str) -> String {
    let words: Vec<String> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("-")
}
