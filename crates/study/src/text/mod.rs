//! Studies as text: where it comes from, its tables, and errors that point into it. It knows
//! nothing of plans.

mod built_in;
mod calibrate;
mod co_runner;
mod edit;
mod factors;
mod machine_sized;
mod mbwu;
mod origin;
mod probes;
mod run_properties;
mod simulation;
mod spec;
mod study_text;
mod texts;
mod why;

pub use built_in::{BUILT_IN, BuiltInStudy};
pub use mbwu::MbwuTable;
pub use run_properties::note_run_properties_of;
pub use spec::StudySpec;
pub use study_text::StudyText;

pub(crate) use co_runner::HogTable;
pub(crate) use factors::{DesignTable, FactorTable, LevelsTable};
pub(crate) use simulation::{CacheTable, SimulationTable};
pub(crate) use spec::{AgentsTable, BenchTable, WorkloadTable, option_text};
pub(crate) use why::WhyTable;
