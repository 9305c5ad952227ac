//! Every run in its order, from a study or from one measurement.

mod agents;
mod bench;
mod calibrate;
mod cells;
mod checks;
mod co_runner;
mod document;
mod estimate;
mod factors;
mod knobs;
mod known_names;
mod load_tables;
pub mod mbwu;
mod order;
mod probes;
mod replay;
mod sections;
mod segments;
mod sequence;
mod settings;
mod single;
mod size;
mod step;
mod stores;
mod study;
mod trace;

pub use bench::{Bench, DcaJob, PlannedMicro, SIMULATOR};
pub use calibrate::{Calibration, Maximum, missing_operation};
pub use checks::check_store;
pub use co_runner::CoRunner;
pub use estimate::Estimates;
pub use replay::replay_step;
pub use segments::{Plan, Segment};
pub use single::step;
pub use step::{Activity, Estimate, Step, StoreLoad};
pub use trace::{TraceSource, placeholder_workload};
