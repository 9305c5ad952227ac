//! What is kept: one SQLite file with a versioned schema, written when each run ends, and
//! what other programs get of it. The schema is described in `docs/results-file.md`.
#![forbid(unsafe_code)]

mod asked;
pub mod design;
mod error;
pub mod export;
mod extent;
pub mod figures;
mod file;
mod filter;
mod keep;
mod load;
mod lock;
mod merge;
mod names;
mod reserve;
mod run;
mod schema;
mod selection;
mod shape;
mod summary;
pub mod table;

pub use asked::LatencyScope;
pub use design::Design;
pub use error::{Error, FilterError};
pub use extent::{ReadExtent, examples};
pub use file::ResultsFile;
pub use filter::RunFilter;
pub use merge::merge;
pub use run::{
    EXPECTED_HIT_RATIO, Execution, Failures, HarnessTax, LatencyClock, LoopKind, MICRO, Phase,
    PlannedRun, Run, RunLatency, RunSettings, SIMULATE, SeriesPoint, total,
};
pub use selection::RunSelection;
