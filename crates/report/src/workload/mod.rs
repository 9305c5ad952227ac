//! A described workload: sentences and tables. Each says what is exact.

mod arrivals;
mod check;
mod miss_ratio;
mod operations;
mod popularity;
mod sentences;

use workload::describe::TraceDescription;
use workload::trace::TraceTiming;

pub use self::check::{check_sentence, check_tables};
pub use self::sentences::sentences;
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
