//! The load of a phase: options as written, and the configuration as checked.

mod check;
mod config;
mod option;
mod options;
mod tables;
#[cfg(test)]
mod tests;
mod values;

pub use option::{Flag, FlagGroup, FlagValue, InvalidOption, LoadOption, unplaced};
pub use options::{LOAD_OPTIONS, LoadConfig, LoadOptions, MAX_RATE};
pub(crate) use tables::{load_phase_config, measure_config, trace_config};
pub use values::SteadyTable;
