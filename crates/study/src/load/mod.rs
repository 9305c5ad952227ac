//! The load of a phase: options as written, and the configuration as checked.

mod check;
mod config;
mod option;
mod options;
#[cfg(test)]
mod tests;
mod values;

pub use config::MovingRate;
pub use option::{Flag, FlagGroup, FlagValue, InvalidOption, LoadOption, unplaced};
pub use options::{LOAD_OPTIONS, LoadConfig, LoadOptions};
pub use values::SteadyTable;
