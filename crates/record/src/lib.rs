//! The results file: SQLite with a versioned schema, written when each run ends; and exports. The
//! schema is described in `docs/results-file.md`.
#![forbid(unsafe_code)]

mod disk_reserve;
mod error;
pub mod export;
mod file;
mod filter;
mod load;
mod lock;
mod merge;
mod names;
mod read_extent;
mod schema;
mod schema_check;
mod selection;
mod summary;
pub mod table;
mod write;

pub use error::{FilterError, RecordError};
pub use file::ResultsFile;
pub use filter::RunFilter;
pub use merge::merge;
pub use read_extent::{ReadExtent, examples};
pub use selection::RunSelection;
pub use summary::summary;
