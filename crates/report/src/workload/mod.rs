//! A described workload: sentences and tables. Each says what is exact.

mod arrivals;
mod check;
mod figures;
mod miss_ratio;
mod operations;
mod popularity;
mod sentences;

use workload::describe::TraceDescription;
use workload::fit::Resemblance;
use workload::trace::TraceTiming;

pub use self::check::{check_sentences, check_tables};
pub use self::sentences::sentences;
use crate::html;
use crate::table::Table;

pub fn tables(description: &TraceDescription, timing: TraceTiming) -> Vec<Table> {
    let mut tables = vec![operations::operations(description)];
    tables.extend(operations::sizes(description));
    tables.push(popularity::table(description));
    tables.extend(description.miss_ratio.as_ref().map(miss_ratio::table));
    if !description.dispersion.is_empty() {
        tables.push(arrivals::dispersion(description));
    }
    tables.push(arrivals::timeline(description, timing));
    tables
}

/// One self-contained HTML page: what the workload is in `words`, its figures, and the tables.
pub fn page(
    title: &str,
    words: &[String],
    (description, timing): (&TraceDescription, TraceTiming),
    check: Option<&Resemblance>,
) -> String {
    let mut all = tables(description, timing);
    all.extend(check.iter().flat_map(|check| check_tables(check)));
    html::plain_page(title, words, &figures::figures(description, timing, check), &all)
}
