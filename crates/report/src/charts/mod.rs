//! Which figures a set of runs has, and what is drawn in each.

mod bars;
mod cost;
mod energy;
mod latency;
mod percentiles;
mod rates;
mod samples;
mod series;
mod throughput;

pub use cost::{amplification, cpu};
pub use energy::energy;
pub use latency::latency;
pub use percentiles::percentiles;
pub use rates::rates;
pub use series::series;
pub use throughput::throughput;

use crate::cells::{Cell, distinct, title};
use crate::figure::{Chart, Entry, Shape};
use crate::table::Table;

/// A figure with everything that is said beside it.
pub struct Shown {
    /// Unique on the page; the name of a saved file.
    pub id: String,
    pub title: String,
    /// What is seen, in words.
    pub alt: String,
    /// How to read it and how it was obtained.
    pub captions: Vec<String>,
    /// Why what is drawn does not count, and warnings.
    pub cautions: Vec<Caution>,
    pub chart: Chart,
    /// The same values as text.
    pub data: Table,
    /// One of several that stand beside each other.
    pub small: bool,
}

pub struct Caution {
    pub invalid: bool,
    pub text: String,
}

/// The series of all cells in the order of their colours.
pub struct Series(Vec<String>);

impl Series {
    pub fn of(cells: &[Cell]) -> Self {
        Series(distinct(cells, |cell| &cell.series))
    }

    pub fn color(&self, name: &str) -> usize {
        self.0.iter().position(|known| known == name).unwrap_or(0)
    }

    pub fn several(&self) -> bool {
        self.0.len() > 1
    }

    /// One entry a series that `cells` holds; none where there is nothing to tell apart.
    fn legend(&self, cells: &[&Cell]) -> Vec<Entry> {
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

/// What a hollow mark means, where there is one.
fn invalid_entry(shape: Shape) -> Entry {
    Entry {
        label: "invalid run".to_owned(),
        color: None,
        shape: Some(shape),
        line: None,
        hollow: true,
    }
}

/// Whether any run of the cells does not count.
fn any_invalid(cells: &[&Cell]) -> bool {
    cells.iter().flat_map(|cell| &cell.runs).any(|run| !run.valid())
}

/// Cells by category, in order of appearance.
fn by_category<'c, 'a>(cells: &[&'c Cell<'a>]) -> Vec<(&'c str, Vec<&'c Cell<'a>>)> {
    let mut groups: Vec<(&str, Vec<&Cell>)> = Vec::new();
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
