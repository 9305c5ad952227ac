//! From runs and rows to tables: what is shown, and in which order.

mod answer;
mod comparison;
mod doctor;
mod gathered;
mod machine;
mod method;
mod notes;
mod plan;
mod readings;
mod runs;

pub use answer::answer;
pub use comparison::{DifferenceRow, Verdict, comparison};
pub use doctor::{CheckRow, CheckState, doctor};
pub use machine::machine;
pub use method::{how_issued, method};
pub use notes::{Note, notes};
pub use plan::{PlanRow, plan};
pub use readings::{named, readings};
pub use runs::{errors, latency, throughput};

/// Stands before the name of a run that does not count, wherever it is named.
pub const INVALID_MARK: &str = "✗ ";

pub(crate) use readings::{origin, origin_name};
pub(crate) use runs::op_name;
