//! The results file: SQLite with a versioned schema, written when each run ends; and exports. The
//! schema is described in `docs/results-file.md`.
#![forbid(unsafe_code)]

pub mod design;
mod disk_reserve;
mod error;
pub mod export;
pub mod figures;
mod file;
mod filter;
mod latency_scope;
mod load;
mod lock;
mod merge;
mod names;
mod read_extent;
mod run;
mod schema;
mod schema_check;
mod selection;
mod summary;
pub mod table;
mod write;

pub use design::Design;
pub use error::{FilterError, RecordError};
pub use file::ResultsFile;
pub use filter::RunFilter;
pub use latency_scope::LatencyScope;
pub use merge::merge;
pub use read_extent::{ReadExtent, examples};
pub use run::{
    EXPECTED_HIT_RATIO, Execution, Failures, HarnessTax, LatencyClock, LoopKind, MICRO, Phase,
    PlannedRun, Run, RunLatency, RunSettings, SIMULATE, SeriesPoint, total,
};
pub use selection::RunSelection;
