//! Costs of servers: tables for the terminal and Markdown, and a page with the curves.

mod figure;
mod object;
mod tables;
mod units;

use analyse::cost::{CostAnswer, CostTerms};

use crate::html;
use crate::table::Table;

pub use object::object;
pub use units::{compared_object, saved, unit_costs, work_units};

/// An answer about cost with its title and notes.
pub struct CostView<'a> {
    /// The heading.
    pub title: &'a str,
    pub answer: &'a CostAnswer,
    pub terms: &'a CostTerms,
    /// The same costs as printed in a publication.
    pub printed: &'a [PrintedCost],
    /// The only workload whose break-even prices are shown; all if None.
    pub headline: Option<&'a str>,
    /// Sources of throughput and power, and assumptions.
    pub notes: &'a [String],
}

/// A printed row of a publication's table.
#[derive(Debug, Clone, PartialEq)]
pub struct PrintedCost {
    pub workload: String,
    pub name: String,
    /// Dollars an hour for energy by dollars for a kWh.
    pub usd_per_h: Vec<(f64, f64)>,
    pub normalised: f64,
}

/// The tables, in their order.
pub fn tables(view: &CostView<'_>) -> Vec<Table> {
    tables::all(view)
}

/// One self-contained HTML page: cost against price with the break-even prices marked, and the
/// tables.
pub fn page(view: &CostView<'_>) -> String {
    html::plain_page(view.title, &[], &figure::figures(view), &tables(view))
}
